"""The stage clean, on small projects on disk: what is written, skipped, computed anew and counted."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.builders import PICTURE, empty_project, sample, write_rows
from support.text_corpus import NEWS, real, rows_of

from pipelines import clean
from pipelines.core.project import Project
from transforms.core import parts, schemas


def written(project: Project) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(project.folder("clean").glob("part-*"))}


def table(project: Project) -> list[dict[str, Any]]:
    found = [parts.read_part(project.folder("clean") / n, schemas.CLEAN.names) for n in written(project)]
    return [row for batch in found for row in batch.to_pylist()]


def build(root: Path, rows_per_part: int = 4, **sections: Any) -> Project:
    project = empty_project(root, **sections)
    rows = rows_of(NEWS)
    for k in range(0, len(rows), rows_per_part):
        write_rows(project, "samples", f"part-aa-{k:04d}.parquet", rows[k : k + rows_per_part])
    return project


def test_writes_verdicts_and_counts_them(tmp_path: Path) -> None:
    project = build(tmp_path)
    clean.run(project)
    metrics = json.loads(project.metrics("clean").read_text())
    folder = project.folder("clean")
    counted = duckdb.sql(f"SELECT count(*), sum(kept::int) FROM read_parquet('{folder}/part-*.parquet')").fetchall()
    assert counted == [(metrics["inputs"], metrics["kept"])]
    assert metrics["inputs"] == metrics["kept"] + metrics["dropped"] == len(NEWS)
    assert metrics["by_reason"]["empty"] == 2
    assert metrics["by_reason"]["gopher_short_doc"] >= 1
    assert set(metrics["by_source"]) == {"news", "web"}


def test_rows_do_not_depend_on_the_size_of_parts(tmp_path: Path) -> None:
    found = []
    for size in (1, 3, 50):
        project = build(tmp_path / str(size), size)
        clean.run(project)
        found.append(sorted(table(project), key=lambda row: row["sample_id"]))
    assert found[0] == found[1] == found[2]


def test_a_second_run_computes_nothing_and_new_params_everything(tmp_path: Path) -> None:
    project = build(tmp_path)
    clean.run(project)
    before = {p: p.stat().st_mtime_ns for p in project.folder("clean").glob("part-*")}
    clean.run(project)
    assert {p: p.stat().st_mtime_ns for p in project.folder("clean").glob("part-*")} == before
    first = table(project)
    strict = build(tmp_path, clean={"language": {**project.params.tree["clean"]["language"], "allow": ["de"]}})
    clean.run(strict)
    assert not {p for p in before if p.stat().st_mtime_ns == before[p]}
    assert sum(r["kept"] for r in first) > sum(r["kept"] for r in table(strict)) == 0


def test_worker_processes_write_the_same_bytes(tmp_path: Path) -> None:
    local, many = build(tmp_path / "local"), build(tmp_path / "many")
    clean.run(local)
    clean.run(replace(many, runtime=replace(many.runtime, engine="processes")))
    assert written(local) == written(many)
    clean.run(replace(local, force=True))
    assert written(local) == written(many)


@pytest.mark.parametrize("rows", [[], [sample(0)], [sample(0, text=None)]])
def test_parts_of_one_row_and_of_none(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    project = empty_project(tmp_path)
    write_rows(project, "samples", "part-aa-0000.parquet", rows)
    clean.run(project)
    assert len(table(project)) == len(rows)


def test_media_without_words_stay(tmp_path: Path) -> None:
    project = empty_project(tmp_path)
    write_rows(project, "samples", "part-aa-0000.parquet", [sample(0, modality="image", text=None, images=[PICTURE])])
    clean.run(project)
    (row,) = table(project)
    assert (row["kept"], row["reasons"], row["clean_text"]) == (True, [], None)


def test_main_answers_with_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert clean.main(["--params", str(tmp_path / "none.yaml")]) == 2
    assert "no params file" in capsys.readouterr().err


def test_real_texts(tmp_path: Path, shared: Path) -> None:
    project = empty_project(tmp_path)
    folders = {"news_lee_abc": "text_en", "news_long_1998": "text_zh", "llm_synthetic_topics": "text_en"}
    for number, (name, folder) in enumerate(folders.items()):
        write_rows(
            project,
            "samples",
            f"part-{number:02x}-0000.parquet",
            rows_of(real(shared / folder / f"{name}.jsonl", 60), name),
        )
    clean.run(project)
    kept = {s: v["kept"] for s, v in json.loads(project.metrics("clean").read_text())["by_source"].items()}
    assert kept["news_lee_abc"] >= 58, "whole news stories"
    assert kept["news_long_1998"] >= 50, "whole Chinese news stories"
    assert kept["llm_synthetic_topics"] <= 2, "two-sentence texts are too short"
