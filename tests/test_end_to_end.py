"""The whole pipeline on the embedded corpus, through the command line, as a user runs it.

No step of ours hands on elements of unknown type: Beam would pickle them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apache_beam as beam
import duckdb
import pytest
from support import command, small, whole
from support.command import ENV, ROOT, gradsift, within

from pipelines.catalog import query
from pipelines.core import stage
from pipelines.core.options import RuntimeConfig, make_pipeline
from pipelines.core.project import open_project

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(whole_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole.copy(whole_run, tmp_path_factory.mktemp("finished"))


def test_every_step_declares_what_it_yields(finished: Path) -> None:
    seen = json.loads((finished / whole.SEEN).read_text())
    assert seen["pipelines"] >= 10
    assert seen["untyped"] == []


def test_the_visitor_sees_an_untyped_step() -> None:
    visitor = whole.Untyped()
    pipeline = make_pipeline(RuntimeConfig(engine="local", workers=1, threads=1, beam_args=()))
    _ = pipeline | "ListNumbers" >> beam.Create(["1"]) | "Forget" >> beam.Map(json.loads)
    pipeline.visit(visitor)
    assert [label for label in visitor.labels if "Forget" in label]


def ask(root: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(root / "data/catalog.duckdb"), read_only=True) as connection:
        return connection.sql(sql).fetchall()


def test_the_summary_says_what_became_of_everything(finished: Path) -> None:
    said = (finished / whole.SUMMARY).read_text().lower()
    for word in ("rows", "kept", "dropped", "rejects", "tokens", "shards", "reports/index.html"):
        assert word in said


def test_every_row_has_one_fate(finished: Path) -> None:
    rows, kept, dropped = ask(
        finished, "SELECT count(*), count(*) FILTER (kept), count(*) FILTER (dropped_by IS NOT NULL) FROM samples_all"
    )[0]
    assert rows == kept + dropped
    assert 0 < dropped < rows
    shards = ask(finished, "SELECT count(*), count(DISTINCT sample_id) FROM shards")[0]
    assert shards == (kept, kept)


def test_planted_faults_are_found(finished: Path) -> None:
    found = {r for (r,) in ask(finished, "SELECT DISTINCT unnest(reasons) FROM samples_all")}
    assert {"empty", "gopher_short_doc", "duplicate_exact"} <= found
    assert {"bad_json", "duplicate_id", "broken_image", "broken_video", "empty_file"} <= {
        r for (r,) in ask(finished, "SELECT DISTINCT reason FROM rejects")
    }


def test_scores_are_finite_and_complete_for_kept_rows(finished: Path) -> None:
    (bad,) = ask(finished, "SELECT count(*) FROM samples_all WHERE kept AND (score IS NULL OR NOT isfinite(score))")[0]
    assert bad == 0
    notes = dict(ask(finished, "SELECT modality, any_value(score_note) FROM samples_all WHERE kept GROUP BY 1"))
    assert notes["text"] is None
    assert "static only" in notes["image"]


def test_the_manifest_describes_the_shards(finished: Path) -> None:
    import hashlib

    manifest = json.loads((finished / "data/shards/manifest.json").read_text())
    files = {p.name: p for p in (finished / "data/shards").glob("*.parquet")}
    listed = {s["file"]: s for s in manifest["shards"]}
    assert set(files) == set(listed)
    for name, path in files.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == listed[name]["sha256"]


def test_datasets_loads_the_shards_with_pictures(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import Audio, load_dataset
    from PIL.Image import Image

    monkeypatch.setenv("HF_DATASETS_CACHE", str(finished / "cache"))
    rows = load_dataset(str(finished / "data/shards"), split="train", cache_dir=str(finished / "cache"))
    rows = rows.cast_column("audio", Audio(sampling_rate=16_000, decode=False))
    pictures = [row for row in rows if row["modality"] == "image"]
    assert pictures
    assert all(isinstance(row["images"][0], Image) and max(row["images"][0].size) <= 512 for row in pictures)


@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "pipelines/catalog/sql").glob("*.sql")))
def test_every_shipped_query_answers(finished: Path, name: str) -> None:
    out = within(finished, "query", name, "--json")
    assert out.returncode == 0, out.stderr
    assert isinstance(json.loads(out.stdout), list)


def test_query_cannot_write(finished: Path, tmp_path: Path) -> None:
    for sql in (f"COPY (SELECT 1) TO '{tmp_path}/x.csv'", "DROP VIEW samples_all", "CREATE TABLE t(a int)"):
        out = within(finished, "query", sql)
        assert out.returncode == 2, out
    assert list(tmp_path.iterdir()) == []


def test_explain_tells_the_life_of_a_kept_and_of_a_dropped_row(finished: Path) -> None:
    for sql, words in (
        ("SELECT min(sample_id) FROM samples_all WHERE kept AND modality = 'text'", ("shard", "gopher_short_doc")),
        ("SELECT min(sample_id) FROM samples_all WHERE dropped_by = 'dedup'", ("duplicate",)),
    ):
        (sample_id,) = ask(finished, sql)[0]
        out = within(finished, "explain", sample_id)
        assert out.returncode == 0, out.stderr
        assert all(word in out.stdout.lower() for word in words), out.stdout
    assert gradsift(finished, "explain", "nobody").returncode == 2


def test_a_second_run_writes_nothing(finished: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (finished / "data").rglob("*.parquet")}
    assert within(finished, "run").returncode == 0
    assert {p: p.stat().st_mtime_ns for p in (finished / "data").rglob("*.parquet")} == before


def test_one_stage_runs_from_its_module(finished: Path) -> None:
    plan = [sys.executable, "-m", "pipelines.plan", "--params", str(finished / "params.yaml")]
    assert subprocess.run(plan, env=ENV, check=False, capture_output=True).returncode == 0


def test_doctor_is_content(finished: Path) -> None:
    out = gradsift(finished, "doctor")
    assert out.returncode == 0, out.stdout + out.stderr
    assert "all checks passed" in out.stdout


def test_nightly_is_idle_when_nothing_is_new(finished: Path) -> None:
    before = small.outputs(finished)
    assert within(finished, "nightly").returncode == 0
    assert small.outputs(finished) == before


def test_queries_are_listed_with_what_they_answer(finished: Path) -> None:
    out = gradsift(finished, "query")
    assert out.returncode == 0
    assert "top_lqs" in out.stdout
    assert query is not None


# The first file of a stage that a run has only begun.
BEGUN = ("sample/pictures/*", "samples/part-*", "quality/part-*", "gradients/part-*", "shards/shard-*")


def killed_at(root: Path, begun: str) -> None:
    """Runs in `root` until a file `begun` is there, then kills the run and its children."""
    process = subprocess.Popen(
        command.argv("run"), cwd=root, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not next(root.glob(begun), None) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert next(root.glob(begun), None)


def test_a_run_killed_again_and_again_ends_in_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    small.write(tmp_path)
    for begun in BEGUN:
        killed_at(tmp_path, f"data/{begun}")
    last = gradsift(tmp_path, "run")
    assert last.returncode == 0, last.stderr
    ours, theirs = small.outputs(tmp_path), small.outputs(finished)
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []


def test_a_new_file_leaves_the_parts_of_others_alone(finished: Path, tmp_path: Path) -> None:
    project = open_project(small.write(tmp_path))
    del project
    docs = [{"id": f"d{k}", "text": f"The {k} of it and that to be have with. " * 30} for k in range(40)]
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/one.jsonl").write_text("\n".join(json.dumps(d) for d in docs[:20]))
    small.write(tmp_path, ingest__sources=[{"name": "raw", "paths": ["raw"]}])
    assert within(tmp_path, "run", "ingest", "clean").returncode == 0
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "data/clean").glob("part-*")}
    (tmp_path / "raw/two.jsonl").write_text("\n".join(json.dumps(d) for d in docs[20:]))
    assert within(tmp_path, "run", "ingest", "clean").returncode == 0
    after = {p: p.stat().st_mtime_ns for p in (tmp_path / "data/clean").glob("part-*")}
    assert {p: t for p, t in after.items() if p in before} == before
    assert len(after) == len(before) + 1
    assert set(stage.ORDER) >= {"ingest", "clean"}


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"clean__gopher__min_words": "many"}, 2, "clean.gopher.min_words"),
        ({"ingest__sources": [{"name": "none", "paths": ["nowhere/*.jsonl"]}]}, 2, "nowhere/*.jsonl"),
        ({"plan__order": "backwards"}, 2, "plan.order"),
        ({"quality__model": "package:no_such_package"}, 3, "no_such_package"),
    ],
)
def test_bad_params_are_one_clear_message(
    finished: Path, tmp_path: Path, change: dict[str, Any], code: int, said: str
) -> None:
    small.write(tmp_path, **change)
    (tmp_path / "data").symlink_to(finished / "data") if code == 3 else None
    out = within(tmp_path, "run", "ingest") if code == 2 else gradsift(tmp_path, "run", "quality")
    assert out.returncode == code, out.stderr
    assert said in out.stderr
    assert "Traceback" not in out.stderr
