"""Shards on disk: what is in them, what they do not depend on, and what a broken run leaves."""

import hashlib
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support import planned
from support.places import ROOT

from pipelines import plan, shard
from pipelines.core import exits
from pipelines.core.project import Project
from scoring.core.errors import DataError
from transforms.core import parts, schemas
from transforms.shard.config import ShardConfig


def shards(project: Project) -> list[Path]:
    return sorted(project.folder("shards").glob("shard-*.parquet"))


def read(project: Project) -> list[dict[str, Any]]:
    return [row for path in shards(project) for row in pq.read_table(path).to_pylist()]


def manifest(project: Project) -> dict[str, Any]:
    return dict(json.loads((project.folder("shards") / "manifest.json").read_text()))


@pytest.fixture(scope="module")
def rows() -> list[planned.Row]:
    return planned.rows(100)


@pytest.fixture(scope="module")
def done(rows: list[planned.Row], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that has run; tests only read it."""
    project = planned.write(tmp_path_factory.mktemp("done"), rows)
    planned.run(project)
    return project


def test_every_planned_row_stands_at_its_rank(done: Project, rows: list[planned.Row]) -> None:
    wanted = pq.read_table(done.folder("plan") / "plan.parquet").to_pylist()
    found = read(done)
    by_id = {r["sample_id"]: r for r in rows}
    assert [r["sample_id"] for r in found] == [r["sample_id"] for r in wanted]
    for row, place in zip(found, wanted, strict=True):
        given = by_id[row["sample_id"]]
        assert row["text"] == given["text"]
        assert [i["bytes"] for i in row["images"]] == ([given["picture"]] if given["picture"] else [])
        assert (row["score"], row["lqs"], row["quality"], row["static_score"]) == (given["score"],) * 2 + (0.75, 0.5)
        assert (row["band"], row["tokens"], row["flops"]) == (place["band"], place["tokens"], place["flops"])
        assert row["language"] == "en"


def test_files_have_the_declared_schema_and_small_row_groups(done: Project) -> None:
    sizes = {r["sample_id"]: r["bytes"] for r in pq.read_table(done.folder("plan") / "plan.parquet").to_pylist()}
    groups = []
    for path in shards(done):
        with pq.ParquetFile(path) as file:
            assert file.schema_arrow.remove_metadata() == schemas.SHARDS.remove_metadata()
            assert file.schema_arrow.metadata[b"huggingface"] == schemas.SHARDS.metadata[b"huggingface"]
            for k in range(file.num_row_groups):
                ids = file.read_row_group(k, columns=["sample_id"])["sample_id"].to_pylist()
                groups.append(sum(sizes[i] for i in ids) if len(ids) > 1 else 0)
    assert max(groups) <= planned.ROW_GROUP_BYTES
    assert len(groups) > len(shards(done))


def test_the_manifest_says_what_the_files_hold(done: Project) -> None:
    found = manifest(done)
    assert found["format"] == {"name": "gradsift-shards", "version": 1}
    assert (found["order"], found["columns"]) == ("mixed", schemas.SHARDS.names)
    assert [s["file"] for s in found["shards"]] == [p.name for p in shards(done)]
    places = pq.read_table(done.folder("plan") / "plan.parquet").to_pylist()
    for number, (one, path) in enumerate(zip(found["shards"], shards(done), strict=True)):
        rows, place = pq.read_table(path).to_pylist(), [p for p in places if p["shard"] == number]
        scores = [r["score"] for r in rows if r["score"] is not None]
        assert one["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert (one["bytes"], one["rows"]) == (path.stat().st_size, len(rows))
        assert sum(one["tokens"].values()) == sum(r["tokens"] for r in rows)
        assert one["tokens"]["image"] == 256 * sum(bool(r["images"]) for r in rows)
        assert one["flops"] == pytest.approx(sum(r["flops"] for r in rows))
        assert one["decoded_bytes"] == sum(p["bytes"] for p in place)
        assert (one["bands"], one["tiers"]) == tuple(dict(Counter(p[k] for p in place)) for k in ("band", "tier"))
        assert (one["phase"], one["pool"]) == (0, place[0]["pool"])
        assert one["score"] == {"min": min(scores, default=None), "max": max(scores, default=None)}
    assert found["totals"] == json.loads(done.metrics("shard").read_text())
    assert found["totals"]["rows"] == json.loads(done.metrics("plan").read_text())["planned"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_datasets_loads_the_folder_with_pictures(
    done: Project, rows: list[planned.Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    files = [str(p) for p in shards(done)]
    whole = datasets.load_dataset(str(done.folder("shards")), split="train", cache_dir=str(tmp_path / "a"))
    listed = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "b"))
    ids = [r["sample_id"] for r in read(done)]
    assert whole["sample_id"][:] == listed["sample_id"][:] == ids
    row = next(r for r in listed if r["images"])
    given = next(r for r in rows if r["sample_id"] == row["sample_id"])
    assert row["images"][0].size == (4, 3)
    assert row["images"][0].getpixel((0, 0))[0] == int(given["text"].split()[0]) % 256


def test_a_rerun_writes_nothing_and_a_forced_one_the_same_bytes(rows: list[planned.Row], tmp_path: Path) -> None:
    project = planned.write(tmp_path, rows[:60])
    planned.run(project)
    before, times = planned.files(project), [p.stat().st_mtime_ns for p in project.folder("shards").iterdir()]
    planned.run(project)
    assert [p.stat().st_mtime_ns for p in project.folder("shards").iterdir()] == times
    planned.run(Project(project.root, project.params, project.runtime, force=True))
    assert planned.files(project) == before
    assert not (project.data / ".unpacked").exists()


def test_worker_processes_and_another_folder_give_the_same_bytes(
    done: Project, rows: list[planned.Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT}/tests")
    project = planned.write(tmp_path / "elsewhere", rows, params={"engine": "processes"})
    planned.run(project)
    assert planned.files(project) == planned.files(done)


@pytest.mark.parametrize(("part_rows", "turned"), [(4, False), (200, True)])
def test_parts_of_another_size_or_order_give_the_same_rows(
    done: Project, rows: list[planned.Row], tmp_path: Path, part_rows: int, turned: bool
) -> None:
    project = planned.write(tmp_path, rows[::-1] if turned else rows, part_rows=part_rows)
    planned.run(project)
    assert [p.name for p in shards(project)] == [p.name for p in shards(done)]
    assert read(project) == read(done)
    own = ("fingerprint", "shards")
    one, other = ({k: v for k, v in manifest(p).items() if k not in own} for p in (project, done))
    one["totals"].pop("bytes"), other["totals"].pop("bytes")
    assert one == other


def test_only_what_changed_is_written_again(rows: list[planned.Row], tmp_path: Path) -> None:
    project = planned.write(tmp_path, rows[:80])
    planned.run(project)
    before, part = {p.name: p.stat().st_mtime_ns for p in shards(project)}, parts.names(project.folder("samples"))[2]
    touched = {r["shard"] for r in pq.read_table(project.folder("plan") / "plan.parquet").to_pylist()
               if r["part"] == part}  # fmt: skip
    changed = [{**r, "text": r["text"].replace("words", "other")} for r in rows]  # of the same cost
    planned.write_part(project, part, changed[20:30])
    shard.run(project)
    after = {p.name: p.stat().st_mtime_ns for p in shards(project)}
    assert {int(n[6:11]) for n in after if after[n] != before[n]} == touched


def test_shards_that_the_plan_no_longer_has_go(rows: list[planned.Row], tmp_path: Path) -> None:
    project = planned.write(tmp_path, rows[:80])
    planned.run(project)
    (project.folder("shards") / ".tmp-left.parquet").write_bytes(b"half")
    smaller = planned.make_project(tmp_path, top_ratio=0.2)
    planned.run(smaller)
    names = {p.name for p in smaller.folder("shards").iterdir()}
    assert names == {"manifest.json", "README.md", *(s["file"] for s in manifest(smaller)["shards"])}


@pytest.mark.parametrize("text", [None, ""])
def test_one_row_without_text_or_score(rows: list[planned.Row], tmp_path: Path, text: str | None) -> None:
    row = {**rows[7], "clean_text": text, "score": None, "dropped": None}
    project = planned.write(tmp_path, [row])
    planned.run(project)
    (found,) = read(project)
    assert (found["text"], found["band"]) == (text, "base")
    assert manifest(project)["shards"][0]["score"] == {"min": None, "max": None}


def code(project: Project) -> int:
    return exits.guard("shard", lambda: shard.run(project))


def test_no_plan_is_an_error_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code(planned.make_project(tmp_path)) == 1
    assert "there is no plan yet" in capsys.readouterr().err


def test_a_plan_of_other_samples_is_refused(
    rows: list[planned.Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = planned.write(tmp_path, rows[:40])
    plan.run(project)
    planned.write(tmp_path, rows[40:80])
    assert code(project) == 1
    assert "the plan is older than the parts" in capsys.readouterr().err
    assert not (project.folder("shards") / "manifest.json").exists()


def test_a_shard_with_other_rows_is_found(rows: list[planned.Row], tmp_path: Path) -> None:
    """Two shards that have changed places: footers and counts are right, only the ids tell."""
    project = planned.write(tmp_path, rows[:80])
    planned.run(project)
    tasks = list(shard._tasks(project, project.section("shard", ShardConfig)))
    twins = [t for t in tasks if t.rows == 16][:2]
    tables = [pq.read_table(project.folder("shards") / t.name) for t in twins]
    for task, table in zip(twins, tables[::-1], strict=True):
        record = {"fingerprint": task.fingerprint}
        meta = parts.footer_metadata(schemas.SHARDS, record)
        pq.write_table(table.replace_schema_metadata(meta), project.folder("shards") / task.name)
    with pytest.raises(DataError, match="32 out of place"):
        shard._verify(project, tasks)


LIMITED = """
import resource, sys
sys.path[:0] = [sys.argv[2], sys.argv[2] + "/tests"]
from pathlib import Path
from support import planned
from pipelines import shard
from pipelines.core import exits, stage
project = planned.make_project(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
sys.exit(exits.guard("shard", lambda: shard.run(project)))
"""


def test_a_full_disk_is_one_error_and_leaves_no_half_shard(rows: list[planned.Row], tmp_path: Path) -> None:
    noise = random.Random(0)
    big = [{**r, "text": f"{k} {noise.randbytes(5000).hex()}"} for k, r in enumerate(rows[:60])]
    project = planned.write(
        tmp_path, big, part_rows=3
    )  # an unpacked part fits below the limit, a shared shard does not
    planned.run(project)
    before = planned.files(project)
    largest = max(shards(project), key=lambda p: p.stat().st_size)
    small = min(shards(project), key=lambda p: p.stat().st_size)
    largest.unlink(), small.unlink()
    command = [sys.executable, "-c", LIMITED, tmp_path, ROOT]
    out = subprocess.run(command, check=False, capture_output=True, text=True)
    assert out.returncode == 1, out.stderr
    assert "Traceback" not in out.stderr
    assert out.stderr.count("gradsift shard: cannot write") == 1
    assert "File too large" in out.stderr
    left = planned.files(project)
    assert {n: left[n] for n in left if n.startswith("shards/shard-")}.items() <= before.items()
    assert f"shards/{largest.name}" not in left
    assert not [n for n in left if ".tmp" in n or "manifest" in n]
    planned.run(project)
    assert planned.files(project) == before


KILLED = """
import os, signal, sys
sys.path[:0] = [sys.argv[2], sys.argv[2] + "/tests"]
from pathlib import Path
from support import planned

replace, renamed = os.replace, []

def replace_or_die(source, target):
    renamed.extend([target] if "shard-" in str(target) else [])
    if len(renamed) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

os.replace = replace_or_die
planned.run(planned.make_project(Path(sys.argv[1])))
"""


def test_a_killed_run_goes_on_and_leaves_the_same_bytes(done: Project, rows: list[planned.Row], tmp_path: Path) -> None:
    project = planned.write(tmp_path, rows)
    out = subprocess.run([sys.executable, "-c", KILLED, tmp_path, ROOT], check=False, capture_output=True)
    assert out.returncode == -9, out.stderr
    survivors = {p.name: p.stat().st_mtime_ns for p in shards(project)}
    assert len(survivors) == 3
    assert list(project.folder("shards").glob(".tmp-*"))
    assert not (project.folder("shards") / "manifest.json").exists()
    planned.run(project)
    assert {p.name: p.stat().st_mtime_ns for p in shards(project) if p.name in survivors} == survivors
    assert planned.files(project) == planned.files(done)
    assert not (project.data / ".unpacked").exists()
