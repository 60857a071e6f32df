"""Boilerplate of whole sources: what is found does not depend on how the corpus is cut, and what changes for a part."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.builders import empty_project, sample, write_rows

from pipelines.core.project import Project
from pipelines.passes import boilerplate
from transforms.clean.config import BoilerplateConfig
from transforms.clean.lines import load_boilerplate
from transforms.core import parts

MENU, NOTE = "Home | News | Contact", "All rights reserved."
LIMITS = {"min_docs": 4, "min_doc_ratio": 0.25, "min_chars": 10, "remove": True, "skip_sources": ()}


def config(**changes: Any) -> BoilerplateConfig:
    return BoilerplateConfig(**{**LIMITS, **changes})


def page(number: int, *lines: str) -> str:
    return "\n".join([*lines, f"Story {number} of the many that are told here.", "short"])


def corpus() -> list[tuple[str, str | None]]:
    web = [page(k, MENU, NOTE) if k < 4 else page(k, f"  {MENU} ") for k in range(8)]
    shop = [page(k, MENU) if k < 3 else page(k) for k in range(12)]
    copies = [page(99, "This text was copied many times.")] * 9
    return [
        *(("web", t) for t in web), *(("shop", t) for t in shop), *(("copied", t) for t in copies),
        ("web", None), ("web", " \n "),
    ]  # fmt: skip


def build(root: Path, rows: list[tuple[str, str | None]], size: int = 100, start: int = 0) -> Project:
    project = empty_project(root)
    full = [sample(k, sample_id=f"{start + k:03d}", source=s, text=t) for k, (s, t) in enumerate(rows)]
    for k in range(0, len(full), size):
        write_rows(project, "samples", f"part-{start:02x}-{k:04d}.parquet", full[k : k + size])
    return project


def table(found: boilerplate.Found) -> list[dict[str, Any]]:
    assert found.path is not None
    rows = pq.read_table(found.path).to_pylist()
    return sorted(({k: v for k, v in r.items() if k != "line"} for r in rows), key=lambda r: (r["source"], r["text"]))


EXPECTED = [
    {"source": "web", "documents": 4, "source_documents": 8, "text": NOTE},
    {"source": "web", "documents": 8, "source_documents": 8, "text": MENU},
]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_lines_of_many_distinct_documents_are_found(tmp_path: Path, size: int) -> None:
    found = boilerplate.find(build(tmp_path, corpus(), size), config())
    assert table(found) == EXPECTED, "3 of 12 shops are too few, and copies of one document are one"
    assert boilerplate.summary(found) == {"web": {"lines": 2, "documents": 8}}
    assert load_boilerplate(found.path).bounds == {"web": (0, 2)}


def test_order_does_not_matter(tmp_path: Path) -> None:
    assert table(boilerplate.find(build(tmp_path, corpus()[::-1], 5), config())) == EXPECTED


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"min_doc_ratio": 0.5}, 2), ({"min_doc_ratio": 0.51}, 1), ({"min_doc_ratio": 0.0}, 2), ({"min_docs": 9}, 0),
        ({"min_docs": 3}, 3), ({"min_chars": 21}, 1), ({"min_chars": 22}, 0), ({"skip_sources": ("web",)}, 0),
        ({"skip_sources": ("it's", "shop")}, 2),
    ],
)  # fmt: skip
def test_limits(tmp_path: Path, change: dict[str, Any], lines: int) -> None:
    assert len(table(boilerplate.find(build(tmp_path, corpus()), config(**change)))) == lines


def test_off_and_without_samples(tmp_path: Path) -> None:
    project = build(tmp_path, corpus())
    assert boilerplate.find(project, config()).path
    assert boilerplate.find(project, config(min_docs=0)) == (None, {})
    assert not parts.names(project.folder("clean/lines"))
    assert boilerplate.find(empty_project(tmp_path / "empty"), config()) == (None, {})


def test_a_second_run_reads_and_writes_nothing(tmp_path: Path) -> None:
    project = build(tmp_path, corpus(), 4)
    first = boilerplate.find(project, config())
    files = {p: p.stat().st_mtime_ns for p in project.folder("clean").rglob("*.parquet")}
    assert boilerplate.find(project, config()) == first
    assert {p: p.stat().st_mtime_ns for p in project.folder("clean").rglob("*.parquet")} == files
    boilerplate.find(project, config(min_docs=5))
    counts = {p for p in files if p.parent.name == "lines"}
    assert {p: p.stat().st_mtime_ns for p in counts} == {p: files[p] for p in counts}, "new limits count nothing anew"


def test_new_rows_touch_only_parts_that_have_their_lines(tmp_path: Path) -> None:
    rows = [("web", page(k, MENU)) for k in range(8)] + [("shop", page(k, NOTE)) for k in range(3)]
    before = boilerplate.find(build(tmp_path, rows, 1), config())
    assert sorted(before.shares) == [f"part-00-{k:04d}.parquet" for k in range(8)]
    after = boilerplate.find(build(tmp_path, [("shop", page(9, NOTE))], start=64), config())
    assert {r["source"] for r in table(after)} == {"web", "shop"}
    assert {n: d for n, d in after.shares.items() if n in before.shares} == before.shares
    new = {"part-00-0008.parquet", "part-00-0009.parquet", "part-00-0010.parquet", "part-40-0000.parquet"}
    assert set(after.shares) - set(before.shares) == new
