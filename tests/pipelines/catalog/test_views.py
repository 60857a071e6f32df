"""The catalog: one row a sample, whatever has run, wherever the project lies."""

import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import builders
from support.places import SHIPPED

from pipelines.catalog import current
from pipelines.catalog import views as catalog
from pipelines.core import params
from pipelines.core.project import Project
from pipelines.quality_models import also_columns
from scoring.core.errors import DataError
from transforms.core import schemas
from transforms.quality.labels import write_labels

ODD = "it's [a] folder *"
ORDER = [*schemas.PARTS, "plan", "shards"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return builders.complete_project(tmp_path / ODD)


def ask(project: Project, sql: str) -> list[tuple[Any, ...]]:
    with current.reading(project) as connection:
        return list(connection.execute(sql).fetchall())


def plan_of(project: Project, sql: str) -> str:
    return str(ask(project, f"EXPLAIN {sql}")[0][1])


def test_samples_all_is_one_row_a_sample_with_its_own_sidecars(project: Project) -> None:
    found = ask(project, "SELECT sample_id, part, row, quality, tokens, lqs, raw_length FROM samples_all ORDER BY 1")
    wanted = [
        (
            r["sample_id"], part, k, builders.QUALITY.get(r["sample_id"], {}).get("quality"),
            *(side.get(r["sample_id"], {}).get(name)
              for side, name in ((builders.TOKENS, "tokens"), (builders.LQS, "lqs"), (builders.STATIC_RAW, "length"))),
        )
        for part, rows in builders.SAMPLES.items() for k, r in enumerate(rows)
    ]  # fmt: skip
    assert found == sorted(wanted)


def test_verdicts_name_the_first_stage_that_dropped_the_row(project: Project) -> None:
    rows = ask(project, "SELECT sample_id, kept, dropped_by, reasons FROM samples_all ORDER BY sample_id")
    found = {sample_id: verdict for sample_id, *verdict in rows}
    assert found["s00"] == [True, None, []]
    assert found["s01"] == [False, "clean", ["gopher_short_doc", "gopher_few_stop_words"]]
    assert found["s02"] == [False, "dedup", ["duplicate_exact"]]
    assert found["s03"] == [False, "quality", ["low_quality"]]
    assert [s for s, (kept, _, _) in found.items() if kept] == list(builders.SURVIVORS)


def test_places_come_from_the_plan(project: Project) -> None:
    found = ask(project, "SELECT sample_id, shard, shard_position FROM samples_all WHERE selected ORDER BY rank")
    assert tuple(found) == builders.PLANNED
    assert ask(project, "SELECT count(*) FROM samples_all WHERE kept AND NOT selected") == [(1,)]


def test_payloads_are_reachable_through_samples(project: Project) -> None:
    assert ask(project, "SELECT images[1].bytes FROM samples WHERE sample_id = 's08'") == [(b"\xff\xd8picture",)]
    assert ask(project, "SELECT DISTINCT shard_file FROM shards ORDER BY 1")[0] == ("shard-00000.parquet",)


def test_only_the_columns_that_are_asked_for_are_read(project: Project) -> None:
    """A corpus is mostly text: a question about scores must not read it, nor join the plan."""
    plan = plan_of(project, "SELECT source, avg(quality) FROM samples_all WHERE kept GROUP BY source")
    projected = [line for line in plan.split("\n") if "Projections" in line]
    assert any("source" in line for line in projected)
    assert "text" not in plan
    assert "Hash Join" not in plan
    assert "Hash Join" in plan_of(project, "SELECT shard FROM samples_all")
    assert "text" not in plan_of(project, "SELECT code FROM rule_values WHERE failed")


@pytest.mark.parametrize("until", ORDER)
def test_the_catalog_works_half_way_through_a_run(tmp_path: Path, until: str) -> None:
    project = builders.complete_project(tmp_path, until=until)
    ran = ORDER[: ORDER.index(until) + 1]
    filters = [f for f in ("clean", "dedup", "quality") if f in ran]
    lost = {"clean": 3, "dedup": 1, "quality": 1}
    assert ask(project, "SELECT count(*) FILTER (kept), count(*) FROM samples_all") == [
        (11 - sum(lost[f] for f in filters), 11)
    ]
    drops = ask(project, "SELECT dropped_by, count(*) FROM samples_all WHERE NOT kept GROUP BY 1 ORDER BY 1")
    assert drops == [(f, lost[f]) for f in filters]
    views = {name for (name,) in ask(project, "SHOW TABLES")}
    assert {catalog.view_name(f) for f in ran} <= views
    assert not views & {catalog.view_name(f) for f in ORDER if f not in ran and f != "rejects"}
    assert ("rule_values" in views) == ("clean" in ran)


def test_without_a_rejects_folder_there_is_an_empty_view(tmp_path: Path) -> None:
    project = builders.complete_project(tmp_path, until="samples")
    assert ask(project, "SELECT reason, position + 1, partial FROM rejects") == []
    assert ask(project, "SELECT column_name FROM (DESCRIBE rejects)") == [(n,) for n in schemas.REJECTS.names]


def test_labels_are_a_view_of_the_same_columns_with_and_without_their_file(project: Project, tmp_path: Path) -> None:
    there = ask(project, "SELECT column_name, column_type FROM (DESCRIBE labels)")
    assert [name for name, _ in there] == schemas.LABELS.names
    assert ask(project, "SELECT text_id FROM labels WHERE len(reasons) > 0 ORDER BY priority") == [("t1",), ("t2",)]
    (project.data / schemas.LABELS_FILE).unlink()
    assert ask(project, "SELECT column_name, column_type FROM (DESCRIBE labels)") == there
    assert ask(project, "SELECT text_id, reasons[1], priority + 1 FROM labels") == []


def test_new_labels_make_a_new_catalog(project: Project) -> None:
    assert ask(project, "SELECT count(*) FROM labels") == [(3,)]
    first = current.fresh(project).stat().st_ino
    path = project.data / schemas.LABELS_FILE
    write_labels(path, builders.batch(schemas.LABELS, builders.LABELS[:1]))
    assert current.fresh(project).stat().st_ino != first
    assert ask(project, "SELECT text_id FROM labels") == [("t0",)]


def test_a_sidecar_of_other_samples_is_left_out(project: Project) -> None:
    """A part that was ingested anew must not be zipped with the values of the rows that stood there before."""
    rows = [{**r, "sample_id": f"new-{k}"} for k, r in enumerate(builders.SAMPLES[builders.PARTS[0]])]
    builders.write_rows(project, "samples", builders.PARTS[0], rows)
    assert catalog.complete(project) == ["samples", "rejects"]
    assert ask(project, "SELECT count(*), count(*) FILTER (kept) FROM fates") == [(11, 11)]


def test_a_sidecar_that_lacks_a_part_is_left_out(project: Project) -> None:
    (project.folder("dedup") / builders.PARTS[2]).unlink()
    assert "dedup" not in catalog.complete(project)
    assert ask(project, "SELECT dropped_by, count(*) FROM fates WHERE NOT kept GROUP BY ALL") == [("clean", 3)]


def test_without_samples_the_remedy_is_ingest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gradsift run ingest"):
        catalog.build(builders.empty_project(tmp_path))
    assert not current.path(builders.empty_project(tmp_path)).exists()


def test_a_corpus_of_no_rows_is_a_corpus(tmp_path: Path) -> None:
    project = builders.empty_project(tmp_path)
    for folder in schemas.PARTS:
        builders.write_rows(project, folder, builders.PARTS[0], [])
    assert ask(project, "SELECT * FROM samples_all") == []
    assert ask(project, "SELECT * FROM rule_values") == []


def test_rules_hold_the_thresholds_of_params(tmp_path: Path) -> None:
    project = builders.complete_project(tmp_path, until="quality", quality={"min_quality": 0.7})
    rules = ask(project, "SELECT stage, value, bound, threshold, param FROM rules WHERE code = 'low_quality'")
    assert rules == [("quality", "quality", "min", 0.7, "quality.min_quality")]
    assert ask(project, "SELECT threshold, sentence FROM rules WHERE code = 'gopher_short_doc'") == [
        (50.0, "the text has too few words")
    ]
    assert ask(project, "SELECT count(*) FROM reasons WHERE stage = 'dedup'")[0][0] >= 1


def test_rule_values_tell_how_far_each_row_is_from_each_threshold(project: Project) -> None:
    rows = ask(project, "SELECT code, value, margin, failed, failures FROM rule_values WHERE sample_id = 's05'")
    found = {code: values for code, *values in rows}
    assert found["gopher_short_doc"] == [47, pytest.approx(-3 / 50), True, 1]
    assert found["gopher_long_doc"] == [47, pytest.approx((100_000 - 47) / 100_000), False, 1]
    assert len(found) == len(
        [r for r in catalog.rules() if r.value in builders.CLEAN["s01"]]
    )  # quality has not judged it
    assert ask(project, "SELECT count(*) FROM rule_values WHERE sample_id IN ('s06', 's08')") == [(0,)]
    failed = ask(
        project, "SELECT sample_id, list(code ORDER BY code) FROM rule_values WHERE failed GROUP BY 1 ORDER BY 1"
    )
    assert failed == [
        ("s01", ["gopher_few_stop_words", "gopher_short_doc"]), ("s03", ["low_quality"]), ("s05", ["gopher_short_doc"]),
    ]  # fmt: skip


def test_a_sample_that_the_plan_repeats_stays_one_row(project: Project) -> None:
    path = project.folder("plan") / "plan.parquet"
    plan = pq.read_table(path)
    again = plan.slice(0, 1).set_column(0, "rank", pa.array([99], pa.int64()))
    pq.write_table(pa.concat_tables([plan, again]), path)
    catalog.build(project)
    assert ask(project, "SELECT rank FROM samples_all WHERE sample_id = 's00'") == [(0,)]


def test_the_catalog_is_built_anew_when_what_it_shows_has_changed(project: Project) -> None:
    first = os.stat(current.fresh(project)).st_ino
    assert os.stat(current.fresh(project)).st_ino == first
    builders.write_folder(project, "lqs")
    second = os.stat(current.fresh(project)).st_ino
    assert second != first
    looser = builders.empty_project(project.root, quality={"min_quality": 0.1})
    assert ask(looser, "SELECT threshold FROM rules WHERE code = 'low_quality'") == [(0.1,)]


def test_a_project_that_was_moved_finds_its_parts(project: Project, tmp_path: Path) -> None:
    catalog.build(project)
    shutil.move(project.root, tmp_path / "moved")
    moved = builders.empty_project(tmp_path / "moved")
    assert ask(moved, "SELECT count(*) FROM samples_all") == [(11,)]


def test_a_damaged_catalog_is_built_anew(project: Project) -> None:
    catalog.build(project).write_bytes(b"not a database, but long enough to be one" * 200)
    assert ask(project, "SELECT count(*) FROM fates") == [(11,)]
    assert not [p.name for p in project.data.iterdir() if p.name.startswith(".tmp-")]


def test_a_failed_build_leaves_the_old_catalog(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = catalog.build(project).read_bytes()
    monkeypatch.setattr(catalog, "_samples_all", lambda _: "CREATE VIEW broken AS SELECT")
    with pytest.raises(duckdb.Error):
        catalog.build(project)
    assert current.path(project).read_bytes() == before
    assert not [p.name for p in project.data.iterdir() if p.name.startswith(".tmp-")]


def test_a_threshold_without_end_drops_nothing(tmp_path: Path) -> None:
    gopher = {**params.read(SHIPPED).tree["clean"]["gopher"], "max_hash_ratio": float("inf")}
    project = builders.complete_project(tmp_path, clean={"gopher": gopher})
    found = ask(project, "SELECT DISTINCT threshold FROM rule_values WHERE code = 'gopher_too_many_hashes'")
    assert found == [(float("inf"),)]


def test_the_state_watches_every_folder_that_the_catalog_shows() -> None:
    assert set(current.FOLDERS) == {*schemas.PARTS, also_columns.FOLDER, "plan", "shards"}
