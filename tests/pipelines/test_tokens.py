"""The stage `tokens`: two folders, the median, metrics, and what a second run does."""

import dataclasses
import json
from pathlib import Path

import duckdb
import pytest
from support import builders, prose
from support.places import SHIPPED

from pipelines import tokens
from pipelines.core.project import Project
from transforms.core import schemas

TEXTS = ["wind", "wind and rain", "wind and rain and snow", None]


def project(root: Path, texts: list[str | None] = TEXTS, part_rows: int = 2) -> Project:
    found = builders.empty_project(root)
    prose.write_corpus(found, texts, part_rows=part_rows)
    return found


def folders(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted((root / "data/tokens").rglob("*.parquet"))}


def rows(root: Path, columns: str = "*") -> list[tuple[object, ...]]:
    pattern = root / "data/tokens/part-*.parquet"
    return list(duckdb.sql(f"SELECT {columns} FROM '{pattern}' ORDER BY sample_id").fetchall())


def test_costs_against_the_median_of_rows_that_have_any(tmp_path: Path) -> None:
    tokens.run(project(tmp_path))
    found = rows(tmp_path, "tokens, flops, complexity")
    assert [t for t, _, _ in found] == [1, 3, 5, 0]
    assert [c for *_, c in found] == [pytest.approx(f / found[1][1]) for _, f, _ in found]  # type: ignore[operator]
    metrics = json.loads((tmp_path / "metrics/tokens.json").read_text())
    assert metrics["rows"] == 4
    assert metrics["tokens"] == metrics["text_tokens"] == 9
    assert metrics["image_tokens"] == metrics["video_tokens"] == metrics["audio_tokens"] == 0
    assert metrics["median_flops"] == found[1][1]
    assert metrics["flops"] == pytest.approx(sum(f for _, f, _ in found))  # type: ignore[misc]


def test_part_size_changes_nothing_and_a_second_run_writes_nothing(tmp_path: Path) -> None:
    for name, part_rows in (("a", 1), ("b", 4)):
        tokens.run(project(tmp_path / name, part_rows=part_rows))
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    before = folders(tmp_path / "a")
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "a/data/tokens").rglob("*.parquet")}
    tokens.run(builders.empty_project(tmp_path / "a"))
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps
    tokens.run(dataclasses.replace(builders.empty_project(tmp_path / "a"), force=True))
    assert folders(tmp_path / "a") == before


def test_a_new_row_is_counted_alone_and_moves_the_median(tmp_path: Path) -> None:
    tokens.run(project(tmp_path))
    raw = {p: p.stat().st_mtime_ns for p in (tmp_path / "data/tokens/raw").glob("*.parquet")}
    prose.write_part(project(tmp_path), "part-bb-0000.parquet", [builders.sample(9, text="rain " * 50)])
    tokens.run(builders.empty_project(tmp_path))
    assert {p: p.stat().st_mtime_ns for p in raw} == raw
    counts = dict(rows(tmp_path, "tokens, complexity"))
    assert counts[3] < 1 < counts[5]  # type: ignore[operator]  # the median was 3 tokens, now it is 4


@pytest.mark.parametrize("texts", [[None, None], []])
def test_nothing_that_costs(tmp_path: Path, texts: list[str | None]) -> None:
    tokens.run(project(tmp_path, texts))
    assert [c for (c,) in rows(tmp_path, "complexity")] == [0.0] * len(texts)
    assert json.loads((tmp_path / "metrics/tokens.json").read_text())["median_flops"] is None


def test_a_corpus_with_every_fate(tmp_path: Path) -> None:
    tokens.run(builders.complete_project(tmp_path, until="dedup"))
    counted = dict(rows(tmp_path, "sample_id, tokens"))
    assert {k for k, v in counted.items() if v is None} == {"s01", "s05", "s06"}
    assert counted["s08"] == counted["s09"] == 256
    assert len(schemas.TOKENS) == len(rows(tmp_path)[0])


def test_worker_processes_count_alike(tmp_path: Path) -> None:
    tokens.run(project(tmp_path / "a"))
    found = project(tmp_path / "b")
    tokens.run(dataclasses.replace(found, runtime=dataclasses.replace(found.runtime, engine="processes")))
    assert folders(tmp_path / "a") == folders(tmp_path / "b")


def test_a_tokenizer_that_is_not_here_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project(tmp_path)
    text = SHIPPED.read_text()
    (tmp_path / "params.yaml").write_text(text.replace("tokenizer: package:", "tokenizer: no/such  # "))
    assert tokens.main(["--params", str(tmp_path / "params.yaml")]) == 3
    assert "hf download no/such" in capsys.readouterr().err
