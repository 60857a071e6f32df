"""The static stage on disk: quantiles over kept rows, invariances, and what a change recomputes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support import scored_corpus
from support.places import ROOT, SHIPPED

from pipelines import static
from pipelines.core import exits, tables
from pipelines.core.params import Params
from pipelines.core.project import Project
from scoring.static.dimensions import DIMENSIONS
from transforms.core import parts, schemas
from transforms.static.config import StaticConfig
from transforms.static.transform import load_unigrams

ROWS = [scored_corpus.row(n) for n in range(36)]


def scores(project: Project, folder: str = "static") -> dict[str, dict[str, Any]]:
    columns = [n for n in schemas.PARTS[folder].names if n != "sample_id"]
    batches = parts.iter_columns(project.data, parts.names(project.folder("samples")), {folder: columns})
    rows = [r for b in batches for r in b.to_pylist()]
    return {r.pop("sample_id"): {k.split(".")[-1]: v for k, v in r.items()} for r in rows}


def metrics(project: Project) -> dict[str, Any]:
    return dict(json.loads(project.metrics("static").read_text()))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = scored_corpus.write(tmp_path_factory.mktemp("static"), ROWS, 10)
    static.run(project)
    return project


def test_kept_rows_have_a_score_and_dropped_rows_nothing(done: Project) -> None:
    for number, row in enumerate(scores(done).values()):
        known = {k for k, v in row.items() if v is not None}
        assert bool(known) == ("static_score" in known) == (number % 12 not in (3, 4))
        assert all(0 <= row[k] <= 1 for k in known)


def test_bounds_are_the_quantiles_of_the_kept_rows_of_a_group(done: Project) -> None:
    raw, bounds = scores(done, "static/raw"), metrics(done)["quantiles"]
    texts = [r for n, r in enumerate(raw.values()) if n % 12 < 9]
    values = [r["length"] for r in texts if r["length"] is not None]
    np.testing.assert_allclose(bounds["length"]["text"], np.quantile(values, [0.01, 0.99]), rtol=1e-12)
    assert set(bounds["length"]) == {"text", "image", "video", "audio"}
    assert set(bounds["reading_difficulty"]) == {"text/en", "text/other", "image", "video", "audio"}
    assert set(bounds["rare_words"]) == {"text"}
    assert tuple(bounds) == tuple(sorted(DIMENSIONS))


def test_metrics_explain_the_score(done: Project) -> None:
    found, rows = metrics(done), scores(done)
    known = [r["static_score"] for r in rows.values() if r["static_score"] is not None]
    assert found["rows_scored"] == len(known) == 30
    texts = [r["static_score"] for n, r in enumerate(rows.values()) if n % 12 < 9 and r["static_score"] is not None]
    assert found["mean_score"]["text"] == pytest.approx(np.mean(texts))
    assert found["consistency_ratio"] < 0.1
    assert found["lambda_max"] >= 12
    assert sum(found["weights"].values()) == pytest.approx(1)


def test_the_unigrams_are_those_of_all_kept_texts(done: Project) -> None:
    found = load_unigrams(done.folder("static") / "unigrams.parquet")
    texts = [r["clean"]["clean_text"] for n, r in enumerate(ROWS) if n % 12 in (0, 1, 2, 5, 6, 7, 8)]
    assert found.char_total == sum(map(len, texts))
    assert found.words["river"] == " ".join(texts).count("river")


@pytest.mark.parametrize("size", [5, 36])
def test_part_size_and_order_change_nothing(tmp_path: Path, done: Project, size: int) -> None:
    project = scored_corpus.write(tmp_path, ROWS[::-1], size)
    static.run(project)
    expected = scores(done)
    for name, row in scores(project).items():
        for key, value in row.items():
            assert value == (None if expected[name][key] is None else pytest.approx(expected[name][key], abs=1e-12))


def test_a_second_run_writes_the_same_bytes_and_computes_nothing(tmp_path: Path) -> None:
    project = scored_corpus.write(tmp_path, ROWS[:8], 5)
    static.run(project)
    files = list(project.folder("static").rglob("part-*.parquet"))
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in files}
    static.run(project)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in files} == before
    forced = Project(project.root, project.params, project.runtime, force=True)
    static.run(forced)
    assert {p: p.read_bytes() for p in files} == {p: data for p, (data, _) in before.items()}
    assert len(files) == 3 * 3


def test_new_weights_recompute_the_scores_alone(tmp_path: Path) -> None:
    project = scored_corpus.write(tmp_path, ROWS[:8], 5)
    static.run(project)
    times = {p: p.stat().st_mtime_ns for p in project.folder("static").rglob("part-*.parquet")}
    project = scored_corpus.builders.empty_project(
        tmp_path, static={"ahp": {d: [1] * (11 - k) for k, d in enumerate(DIMENSIONS[:-1])}}
    )
    static.run(project)
    assert {p.parent.name for p, t in times.items() if p.stat().st_mtime_ns != t} == {"static"}
    assert project.section("static", StaticConfig).priorities.consistency_ratio == pytest.approx(0, abs=1e-12)


def test_a_small_vocabulary_leaves_the_rest_unseen(tmp_path: Path) -> None:
    project = scored_corpus.write(tmp_path, ROWS[:8], 5, static={"vocabulary": 3})
    static.run(project)
    found = load_unigrams(project.folder("static") / "unigrams.parquet")
    assert set(found.words) == {"the", "and", "of"} or len(found.words) == 3
    assert sum(found.words.values()) < found.word_total


@pytest.mark.parametrize("rows", [[], [ROWS[0]], [ROWS[3]], [ROWS[9]]])
def test_no_row_one_row_and_none_kept(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    project = scored_corpus.write(tmp_path, rows, 5)
    static.run(project)
    for row in scores(project).values():
        kept = rows != [ROWS[3]]
        assert row["static_score"] == (pytest.approx(0.5) if kept else None)  # alone, each dimension is constant


def test_no_parts_at_all(tmp_path: Path) -> None:
    static.run(scored_corpus.builders.empty_project(tmp_path))
    assert metrics(scored_corpus.builders.empty_project(tmp_path))["rows_scored"] == 0


@pytest.mark.slow
def test_worker_processes_write_the_same_bytes(tmp_path: Path, done: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    project = scored_corpus.write(tmp_path, ROWS, 10, runtime={"engine": "processes"})
    static.run(Project(project.root, project.params, project.section("runtime", type(project.runtime))))
    for path in project.folder("static").rglob("*.parquet"):
        twin = done.folder("static") / path.relative_to(project.folder("static"))
        assert path.read_bytes() == twin.read_bytes()


def test_contradicting_judgements_are_found_before_anything_runs(tmp_path: Path, capsys: Any) -> None:
    tree = yaml.safe_load(SHIPPED.read_text())
    tree["static"]["ahp"] |= {"length": [9, 0.2] * 5 + [9], "coherence": [9, 0.2, 9]}
    read = Params(tmp_path / "params.yaml", {"static": tree["static"]})
    assert exits.guard("static", lambda: read.section("static", StaticConfig)) == 2
    said = capsys.readouterr().err
    assert "consistency ratio" in said
    assert said.count("a consistent value is") == 3


def test_the_command_scores_a_folder(tmp_path: Path) -> None:
    project = scored_corpus.write(tmp_path, ROWS[:12], 5)
    (tmp_path / "params.yaml").write_text(SHIPPED.read_text())
    assert static.main(["--params", str(tmp_path / "params.yaml")]) == 0
    with tables.connect(project) as connection:
        rows = tables.zipped(project, {"samples": ["sample_id"], "static": ["static_score"]})
        found = connection.sql(f"SELECT count(*), count(static_score), min(static_score) > 0 FROM ({rows})").fetchall()
    assert found == [(12, 10, True)]
