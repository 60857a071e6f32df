"""What rows share with others: the same however the corpus is cut, and kept where nothing changes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builders import empty_project, write_rows

from pipelines.core.project import Project
from pipelines.passes import corpus_lines
from transforms.core import parts, schemas

KEPT = {"clean": ["kept"]}
TEXTS: list[tuple[str | None, bool | None]] = [
    ("one line\nanother line\n\nthe end", True), ("  one  line\n\nalone", True), ("the end", False),
    ("this\nthis\nthis", True), (None, True), ("", True), ("one line\nanother line\n\nother", True), ("dropped", None),
]  # fmt: skip
LINES = [20 / 27, 8 / 13, None, 0, None, 0, 20 / 25, None]
PARAGRAPHS = [20 / 27, 0, None, 0, None, 0, 20 / 25, None]


def build(root: Path, rows: list[tuple[str | None, bool | None]], size: int = 100, start: int = 0) -> Project:
    project = empty_project(root)
    full = [{"sample_id": f"{start + k:03d}", "clean_text": t, "kept": kept} for k, (t, kept) in enumerate(rows)]
    for k in range(0, len(full), size):
        name = f"part-{start:02x}-{k:04d}.parquet"
        write_rows(project, "samples", name, [{"sample_id": r["sample_id"]} for r in full[k : k + size]])
        write_rows(project, "clean", name, full[k : k + size])
    return project


def values(project: Project) -> dict[str, tuple[Any, ...]]:
    folder = project.folder("dedup/lines")
    rows = [r for n in parts.names(folder) for r in parts.read_part(folder / n, schemas.DEDUP_LINES.names).to_pylist()]
    return {r["sample_id"]: tuple(r.values())[1:] for r in rows}


def written(project: Project) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in project.folder("dedup/lines").glob("part-*")}


@pytest.mark.parametrize("size", [1, 3, 100])
def test_ratios_by_hand_whatever_the_parts(tmp_path: Path, size: int) -> None:
    project = build(tmp_path, TEXTS, size)
    corpus_lines.run(project, kept=KEPT)
    expected = zip(LINES, PARAGRAPHS, strict=True)
    assert values(project) == {f"{k:03d}": pair for k, pair in enumerate(expected)}
    shared = np.load(project.folder("dedup/lines") / "shared.npy")
    assert (shared.dtype, len(shared)) == (np.dtype("<u8"), 3), "two lines and a paragraph"
    assert (np.diff(shared.astype(object)) > 0).all()


def test_order_and_workers_do_not_matter(tmp_path: Path) -> None:
    straight, turned = build(tmp_path / "a", TEXTS, 3), build(tmp_path / "b", TEXTS[::-1], 2)
    corpus_lines.run(straight, kept=KEPT)
    corpus_lines.run(replace(turned, runtime=replace(turned.runtime, engine="processes")), kept=KEPT)
    assert sorted(map(str, values(straight).values())) == sorted(map(str, values(turned).values()))


def test_a_second_run_writes_nothing_and_force_the_same(tmp_path: Path) -> None:
    project = build(tmp_path, TEXTS, 3)
    corpus_lines.run(project, kept=KEPT)
    before = {p: p.stat().st_mtime_ns for p in project.folder("dedup").rglob("part-*")}
    content = written(project)
    corpus_lines.run(project, kept=KEPT)
    assert {p: p.stat().st_mtime_ns for p in project.folder("dedup").rglob("part-*")} == before
    corpus_lines.run(replace(project, force=True), kept=KEPT)
    assert written(project) == content


def test_new_rows_change_only_the_parts_that_share_with_them(tmp_path: Path) -> None:
    project = build(tmp_path, TEXTS, 1)
    corpus_lines.run(project, kept=KEPT)
    before = written(project)
    build(tmp_path, [("alone", True), ("nobody has this", True)], start=64)
    corpus_lines.run(project, kept=KEPT)
    after = written(project)
    assert {n for n in before if before[n] != after[n]} == {"part-00-0001.parquet"}
    assert values(project)["001"] == (1, 5 / 13)
    assert values(project)["064"] == (1, 1)


def test_rows_that_are_no_more_count_no_more(tmp_path: Path) -> None:
    project = build(tmp_path, [("a", True), ("a", True)], 1)
    corpus_lines.run(project, kept=KEPT)
    assert set(values(project).values()) == {(1, 1)}
    for folder in ("samples", "clean"):
        (project.folder(folder) / "part-00-0001.parquet").unlink()
    corpus_lines.run(project, kept=KEPT)
    assert values(project) == {"000": (0, 0)}


def test_other_verdicts_are_heard(tmp_path: Path) -> None:
    project = build(tmp_path, [("a", True), ("a", True), ("b\na", True)])
    rows = [{"sample_id": f"{k:03d}", "kept": kept} for k, kept in enumerate([True, False, True])]
    write_rows(project, "dedup", "part-00-0000.parquet", rows)
    corpus_lines.run(project, kept={**KEPT, "dedup": ["kept"]})
    assert values(project) == {"000": (1, 0), "001": (None, None), "002": (0.5, 0)}


@pytest.mark.parametrize("rows", [[], [(None, True)]])
def test_nothing_to_share(tmp_path: Path, rows: list[Any]) -> None:
    project = build(tmp_path, rows)
    if not rows:
        write_rows(project, "samples", "part-00-0000.parquet", [])
        write_rows(project, "clean", "part-00-0000.parquet", [])
    corpus_lines.run(project, kept=KEPT)
    assert values(project) == {f"{k:03d}": (None, None) for k in range(len(rows))}
    empty = empty_project(tmp_path / "none")
    corpus_lines.run(empty, kept=KEPT)
    assert values(empty) == {}
