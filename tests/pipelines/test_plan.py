"""The plan: what is selected, in what order, where it is cut; and what it does not depend on."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_type_hints

import duckdb
import pyarrow.parquet as pq
import pytest
from support import planned

from pipelines import plan
from pipelines.core import exits
from pipelines.core.project import Project
from scoring.core.errors import ConfigError, DataError
from scoring.order import ordering
from scoring.order.config import MixedConfig, PlanConfig, SegmentConfig, TransitionConfig
from transforms.core import parts


def read(project: Project) -> list[dict[str, Any]]:
    return pq.read_table(project.folder("plan") / "plan.parquet").to_pylist()


def metrics(project: Project) -> dict[str, Any]:
    return dict(json.loads(project.metrics("plan").read_text()))


def by_score(rows: list[planned.Row]) -> list[planned.Row]:
    """Returns `rows` from the lowest score; rows without one last."""
    return sorted(rows, key=lambda r: (r["score"] is None, r["score"] or 0, r["sample_id"]))


def test_all_kept_rows_are_planned_once_and_the_rest_is_accounted_for(tmp_path: Path) -> None:
    rows = planned.rows(200)
    project = planned.write(tmp_path, rows)
    plan.run(project)
    found = read(project)
    assert sorted(r["sample_id"] for r in found) == sorted(r["sample_id"] for r in planned.kept(rows))
    assert [r["rank"] for r in found] == list(range(len(found)))
    said = metrics(project)
    assert said["samples"] == 200 == said["planned"] + sum(said["not_planned"].values())
    for name in ("clean", "dedup", "quality"):
        assert said["not_planned"][name] == sum(r["dropped"] == name for r in rows)
    assert said["unscored"] == sum(r["score"] is None for r in planned.kept(rows))


def test_part_and_row_lead_to_the_sample(tmp_path: Path) -> None:
    project = planned.write(tmp_path, planned.rows(120), part_rows=7)
    plan.run(project)
    for row in read(project):
        ids = parts.read_part(project.folder("samples") / row["part"], ["sample_id"])["sample_id"]
        assert ids[row["row"]].as_py() == row["sample_id"]


def test_sorting_goes_from_easy_to_hard_with_the_unscored_last_of_base(tmp_path: Path) -> None:
    rows = planned.rows(150)
    project = planned.write(tmp_path, rows, params={"order": "sorting"})
    plan.run(project)
    ascending = by_score(planned.kept(rows))
    scored = [r["sample_id"] for r in ascending if r["score"] is not None]
    unscored = [r["sample_id"] for r in ascending if r["score"] is None]
    before = round(0.4 * len(ascending)) - len(unscored)
    assert [r["sample_id"] for r in read(project)] == [*scored[:before], *unscored, *scored[before:]]


def test_each_order_is_laid_over_the_rows_from_easy_to_hard(tmp_path: Path) -> None:
    rows = [{**r, "score": float(k)} for k, r in enumerate(planned.rows(80))]
    ascending = [r["sample_id"] for r in planned.kept(rows)]
    planned.write(tmp_path, rows)
    found = {}
    for order in get_args(get_type_hints(PlanConfig)["order"]):
        project = planned.make_project(tmp_path, order=order)
        plan.run(project)
        settings = project.section("plan", PlanConfig)
        found[order] = [r["sample_id"] for r in read(project)]
        assert found[order] == [ascending[k] for k in ordering.ordered(len(ascending), settings)]
        assert metrics(project)["order"] == order
    assert len({tuple(ids) for ids in found.values()}) == len(found) == 8


def test_top_ratio_takes_the_best_and_drops_the_unscored_first(tmp_path: Path) -> None:
    rows = planned.rows(100)
    project = planned.write(tmp_path, rows, params={"top_ratio": 0.3})
    plan.run(project)
    best = sorted(planned.kept(rows), key=lambda r: (r["score"] is None, -(r["score"] or 0), r["sample_id"]))
    count = round(0.3 * len(best))
    assert {r["sample_id"] for r in read(project)} == {r["sample_id"] for r in best[:count]}
    assert metrics(project)["not_planned"]["top_ratio"] == len(best) - count


def test_tiers_are_the_best_by_score(tmp_path: Path) -> None:
    project = planned.write(tmp_path, planned.rows(100), params={"hot_ratio": 0.1})
    plan.run(project)
    found = read(project)
    best = sorted(found, key=lambda r: (r["score"] is None, -(r["score"] or 0), r["sample_id"]))
    assert {r["sample_id"] for r in found if r["tier"] == "hot"} == {r["sample_id"] for r in best[:9]}
    assert metrics(project)["tiers"] == {"hot": 9, "cold": 81}


def test_shards_and_positions_count_the_ranks(tmp_path: Path) -> None:
    project = planned.write(tmp_path, planned.rows(300))
    plan.run(project)
    found, said = read(project), metrics(project)
    sizes = [sum(r["shard"] == k for r in found) for k in range(said["shards"])]
    assert [(r["shard"], r["position"]) for r in found] == [(k, p) for k, n in enumerate(sizes) for p in range(n)]
    pools = [next(r["pool"] for r in found if r["shard"] == k) for k in range(said["shards"])]
    assert set(zip(pools[:-1], sizes[:-1], strict=True)) == {("dedicated", 2), ("shared", 16)}
    dedicated = [n for n, pool in zip(sizes, pools, strict=True) if pool == "dedicated"]
    assert said["pools"]["dedicated"] == {"shards": len(dedicated), "rows": sum(dedicated)}
    flops = [sum(r["flops"] for r in found if r["shard"] == k) for k in range(said["shards"])]
    assert said["flops_per_shard"]["max"] == pytest.approx(max(flops))
    assert said["tokens"] == sum(r["tokens"] for r in found)


def test_row_groups_hold_whole_shards_and_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "GROUP_ROWS", 20)
    project = planned.write(tmp_path, planned.rows(300))
    plan.run(project)
    with pq.ParquetFile(project.folder("plan") / "plan.parquet") as file:
        groups = [file.read_row_group(k)["shard"].to_pylist() for k in range(file.num_row_groups)]
    assert len(groups) > 3
    assert all(20 <= len(g) < 36 for g in groups[:-1])
    assert all(not set(a) & set(b) for a, b in pairwise(groups))


@pytest.mark.parametrize("order", ["mixed", "folding", "segment", "saw"])
def test_every_order_ends_the_same_whatever_the_parts_are(tmp_path: Path, order: str) -> None:
    rows = planned.rows(90)
    kinds = {"small": (rows, 4), "large": (rows, 50), "turned": (rows[::-1], 13)}
    found = []
    for name, (given, part_rows) in kinds.items():
        keys = {"order": order, "jitter_window": 3 if order == "saw" else 0}
        project = planned.write(tmp_path / name, given, part_rows=part_rows, params=keys)
        plan.run(project)
        found.append([{k: v for k, v in r.items() if k not in ("part", "row")} for r in read(project)])
        found.append(metrics(project))
    assert found[0] == found[2] == found[4]
    assert found[1] == found[3] == found[5]


def test_a_rerun_gives_the_same_bytes_and_does_nothing_when_nothing_changed(tmp_path: Path) -> None:
    rows = planned.rows(100)
    one, other = (planned.write(tmp_path / name, rows) for name in ("one", "other"))
    for project in (one, other):
        plan.run(project)
    assert planned.files(one) == planned.files(other)
    before = (one.folder("plan") / "plan.parquet").stat().st_mtime_ns
    one.metrics("plan").unlink()
    plan.run(one)
    assert (one.folder("plan") / "plan.parquet").stat().st_mtime_ns == before
    assert planned.files(one) == planned.files(other)
    plan.run(Project(one.root, one.params, one.runtime, force=True))
    assert (one.folder("plan") / "plan.parquet").stat().st_mtime_ns > before
    assert planned.files(one) == planned.files(other)


@pytest.mark.parametrize("change", ["config", "input"])
def test_a_change_makes_another_plan(tmp_path: Path, change: str) -> None:
    rows = planned.rows(60)
    project = planned.write(tmp_path, rows)
    plan.run(project)
    before = read(project)
    if change == "input":
        rows[20]["score"] = 99.0
    project = planned.write(tmp_path, rows, params={"seed": 8} if change == "config" else None)
    plan.run(project)
    assert read(project) != before


def test_one_row_is_one_shard(tmp_path: Path) -> None:
    project = planned.write(tmp_path, [{**planned.rows(1)[0], "dropped": None, "score": None}])
    plan.run(project)
    (row,) = read(project)
    assert (row["shard"], row["position"], row["tier"], row["pool"]) == (0, 0, "cold", "shared")
    assert row["band"] == "base"


def run_code(project: Project, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    return exits.guard("plan", lambda: plan.run(project)), capsys.readouterr().err


def test_nothing_kept_is_an_error_that_says_what_dropped_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**r, "dropped": "clean" if k % 3 else "quality"} for k, r in enumerate(planned.rows(9))]
    code, said = run_code(planned.write(tmp_path, rows), capsys)
    assert code == 1
    assert "no rows left to plan: 9 samples, dropped or not selected by clean 6, quality 3" in said
    assert "remedy: " in said
    assert not list((tmp_path / "data").glob("plan/*"))


def test_a_share_of_zero_selects_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run_code(planned.write(tmp_path, planned.rows(20), params={"top_ratio": 0.0}), capsys)
    assert code == 1
    assert "by clean 1, quality 1, top_ratio 18" in said


def test_a_share_that_rounds_to_nothing_is_a_config_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run_code(planned.write(tmp_path, planned.rows(20), params={"top_ratio": 0.001}), capsys)
    assert code == 2
    assert "plan.top_ratio = 0.001 selects no rows: the share of 18 rows rounds to 0" in said


def test_no_samples_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run_code(planned.make_project(tmp_path), capsys)
    assert (code, "no parts to read" in said) == (1, True)
    code, said = run_code(planned.write(tmp_path, []), capsys)
    assert (code, "0 samples" in said) == (1, True)


@pytest.mark.parametrize("breach", ["missing part", "other samples", "no costs"])
def test_a_folder_that_does_not_fit_is_refused(tmp_path: Path, breach: str) -> None:
    rows = planned.rows(30)
    project = planned.write(tmp_path, rows)
    if breach == "missing part":
        sorted(project.folder("lqs").iterdir())[0].unlink()
    elif breach == "other samples":
        first, second = sorted(project.folder("quality").iterdir())[:2]
        first.write_bytes(second.read_bytes())
    else:
        first = sorted(project.folder("tokens").iterdir())[0]
        table = pq.read_table(first)
        gone = table["flops"].to_pylist()
        gone[1] = None
        batch = table.set_column(table.schema.names.index("flops"), table.schema.field("flops"), [gone])
        parts.write_part(
            project.folder("tokens"), parts.Part(first.name, "x", batch.to_batches()[0]), plan.schemas.TOKENS
        )
    with pytest.raises(DataError, match=r"parts as samples|different samples|1 kept rows have no token counts"):
        plan.run(project)


def test_duckdb_zips_sidecars_of_uneven_parts_by_position(tmp_path: Path) -> None:
    """The position of a row is its file and row number, over many parts and threads."""
    project = planned.write(tmp_path, planned.rows(240), part_rows=3)
    plan.run(project)
    rows = {r["sample_id"]: r for r in planned.rows(240)}
    for found in duckdb.sql(f"FROM '{project.folder('plan')}/plan.parquet'").to_arrow_table().to_pylist():
        wanted = rows[found["sample_id"]]
        assert found["score"] == wanted["score"]
        assert found["tokens"] == len(wanted["text"].split()) + (256 if wanted["picture"] else 0)
        assert found["row"] == int(wanted["text"].split()[0]) % 3


@pytest.mark.parametrize(
    ("key", "value"),
    [("top_ratio", 1.1), ("hot_ratio", -0.1), ("folding_layers", 0), ("zigzag_layers", 0), ("jitter_window", -1),
     ("shard_rows", 0), ("seed", -1), ("complexity_threshold", 0.0), ("complexity_threshold", float("nan"))],
)  # fmt: skip
def test_values_out_of_range_are_refused_by_name(key: str, value: float) -> None:
    made = {
        "mixed": MixedConfig(**{**planned.PLAN["mixed"], "draw": (1, 2, 1)}),
        "segment": SegmentConfig(**planned.PLAN["segment"]),
        **{name: TransitionConfig(**planned.PLAN[name]) for name in ("stair", "saw")},
    }
    with pytest.raises(ValueError, match=key):
        PlanConfig(**{**planned.PLAN, **made, key: value})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"segment": {"low_ratio": 0.7, "high_ratio": 0.7}}, r"plan\.segment: low_ratio and high_ratio"),
        ({"saw": {"sections": 0, "transition_ratio": 0.1, "layers": 2}}, r"plan\.saw: sections must be"),
        ({"order": "spiral"}, r"plan\.order"),
    ],
)
def test_what_an_order_is_told_is_checked_by_its_path(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        planned.make_project(tmp_path, **keys).section("plan", PlanConfig)
