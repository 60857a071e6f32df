"""Boilerplate and shared lines of one part, against sets of strings."""

from collections import Counter
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from hypothesis import given
from hypothesis import strategies as st
from support.text_oracle import FIRST_IS_SLOW

from transforms.clean import lines
from transforms.clean.config import BoilerplateConfig
from transforms.clean.lines import dup_ratios, line_documents, line_keys, strip_boilerplate
from transforms.core import schemas
from transforms.core.parts import Part
from transforms.text.lines import hash_lines

LINES = st.sampled_from(["Home", "All rights reserved", "a story", "another", "汉字", "", " "])
TEXT = st.one_of(st.none(), st.lists(LINES, max_size=6).map("\n".join))
ROWS = st.lists(st.tuples(st.sampled_from(["web", "news", "a"]), TEXT), max_size=8)


def samples(rows: list[tuple[str, str | None]], modality: str = "text") -> pa.RecordBatch:
    columns = {
        "sample_id": pa.array([str(k) for k in range(len(rows))], pa.string()),
        "samples.source": pa.array([s for s, _ in rows], pa.string()),
        "samples.modality": pa.array([modality] * len(rows), pa.string()),
        "samples.text": pa.array([t for _, t in rows], pa.large_string()),
    }
    return pa.record_batch(columns)


def clean(texts: list[str | None], kept: list[bool | None] | None = None) -> pa.RecordBatch:
    columns = {
        "sample_id": pa.array([str(k) for k in range(len(texts))], pa.string()),
        "clean.clean_text": pa.array(texts, pa.large_string()),
        "clean.kept": pa.array([True] * len(texts) if kept is None else kept, pa.bool_()),
    }
    return pa.record_batch(columns)


def hash_of(line: str) -> int:
    return int(hash_lines(pa.array([line], pa.large_string())).lines.hashes[0])


def filled(text: str | None) -> list[str]:
    return [] if text is None else [line for line in text.split("\n") if line.strip()]


@FIRST_IS_SLOW
@given(ROWS)
def test_each_distinct_document_lists_its_long_lines_once(rows: list[tuple[str, str | None]]) -> None:
    found = line_documents(samples(rows), min_chars=7)
    documents = {(s, tuple(filled(t))) for s, t in rows if filled(t)}
    expected = Counter((s, hash_of(x)) for s, doc in documents for x in set(doc) if len(x) >= 7)
    listed = Counter((r["source"], r["line"]) for r in found.to_pylist() if r["line"] is not None)
    assert listed == expected
    alone = [(r["source"], r["document"]) for r in found.to_pylist() if r["line"] is None]
    assert len(alone) == len(set(alone)) == len(documents)
    assert found.equals(line_documents(samples(rows[::-1]), min_chars=7)), "the order of rows does not matter"
    assert found.schema == lines.LINE_DOCUMENTS


def test_captions_have_no_lines() -> None:
    assert line_documents(samples([("web", "a caption")], "image"), min_chars=1).num_rows == 0


@FIRST_IS_SLOW
@given(st.lists(st.tuples(TEXT, st.sampled_from([True, True, False, None])), max_size=6))
def test_keys_and_ratios_are_those_of_sets(rows: list[tuple[str | None, bool | None]]) -> None:
    batch = clean([t for t, _ in rows], [k for _, k in rows])
    texts = [t if kept else None for t, kept in rows]
    by_line = Counter(hash_of(line) for t in texts for line in set(filled(t)))
    keys = dict(zip(*(c.to_pylist() for c in line_keys(batch).columns), strict=True))
    assert {k: n for k, n in keys.items() if k in by_line} == by_line
    shared = np.array(sorted(k for k, n in keys.items() if n > 1), np.uint64)
    common = {line for t in texts for line in filled(t) if by_line[hash_of(line)] > 1}
    for row, text in zip(dup_ratios(batch, shared).to_pylist(), texts, strict=True):
        chars = sum(map(len, filled(text)))
        hit = sum(len(line) for line in filled(text) if line in common)
        expected = None if text is None else hit / max(1, chars)
        assert row["corpus_dup_line_ratio"] == expected


def test_a_paragraph_is_shared_only_whole() -> None:
    batch = clean(["one\ntwo\n\nthree", "one\ntwo\n\nfour", "one\n\nthree\n", "one one"])
    keys = line_keys(batch)
    shared = np.array([r["key"] for r in keys.to_pylist() if r["rows"] > 1], np.uint64)
    found = dup_ratios(batch, shared)
    assert found["corpus_dup_line_ratio"].to_pylist() == [1, 6 / 10, 1, 0]
    assert found["corpus_dup_paragraph_ratio"].to_pylist() == [1, 6 / 10, 5 / 8, 0]
    assert found.schema == schemas.DEDUP_LINES


def test_repeats_inside_a_row_are_not_shared() -> None:
    assert line_keys(clean(["same\nsame\n\nsame\nsame"]))["rows"].to_pylist() == [1, 1]


@pytest.mark.parametrize("texts", [[], [None], [""], ["\n \n"]])
def test_nothing_to_share(texts: list[str | None]) -> None:
    batch = clean(texts)
    assert line_keys(batch).num_rows == 0
    values = dup_ratios(batch, np.ones(1, np.uint64))["corpus_dup_line_ratio"].to_pylist()
    assert values == [None if t is None else 0.0 for t in texts]


def boilerplate(tmp_path: Any, rows: list[tuple[str, str]]) -> lines.Boilerplate:
    columns = {name: [] for name in lines.BOILERPLATE.names}
    for source, line in sorted((s, hash_of(x)) for s, x in rows):
        for name, value in zip(columns, (source, line, 2, 3, "x"), strict=True):
            columns[name].append(value)
    path = tmp_path / "boilerplate.parquet"
    pq.write_table(pa.table(columns, schema=lines.BOILERPLATE), path)
    return lines.load_boilerplate(path)


def test_each_source_loses_its_own_lines(tmp_path: Any) -> None:
    found = boilerplate(tmp_path, [("web", "Home"), ("web", "Log in"), ("news", "Share")])
    texts = pa.array(["Home\nShare\n x", "Home\nShare", "Home", None, "Home\n Log  in"], pa.large_string())
    sources = pa.array(["web", "news", "other", "web", "web"])
    stripped, counts = strip_boilerplate(texts, sources, found, remove=True)
    assert stripped.to_pylist() == ["Share\n x", "Home", "Home", None, ""]
    assert counts.to_pylist() == [1, 1, 0, None, 2]
    same, counted = strip_boilerplate(texts, sources, found, remove=False)
    assert same is texts
    assert counted.equals(counts)
    assert strip_boilerplate(texts, sources, None, remove=True)[0] is texts
    assert strip_boilerplate(texts, sources, None, remove=True)[1].null_count == 5
    nobody = boilerplate(tmp_path, [])
    assert strip_boilerplate(texts, sources, nobody, remove=True)[1].to_pylist() == [0, 0, 0, None, 0]
    assert strip_boilerplate(texts[:0], sources[:0], found, remove=True)[1].to_pylist() == []


def test_examples_are_normal_forms() -> None:
    batch = samples([("web", "x\r\n  All \trights\n"), ("web", "y" * 300)])
    wanted = {hash_of("All rights"), hash_of("y" * 300)}
    assert lines.example_lines(batch, wanted) == {hash_of("All rights"): "All rights", hash_of("y" * 300): "y" * 200}
    assert lines.example_lines(batch, {1}) == {}


def test_limits_are_checked() -> None:
    good = {"min_docs": 20, "min_doc_ratio": 0.05, "min_chars": 12, "remove": True, "skip_sources": ()}
    BoilerplateConfig(**good)
    for name, value in (("min_docs", 1), ("min_docs", -1), ("min_doc_ratio", 1.1), ("min_chars", 0)):
        with pytest.raises(ValueError, match=name):
            BoilerplateConfig(**{**good, name: value})


def test_the_transforms_are_those_functions(tmp_path: Any) -> None:
    text, page = clean(["a\nb", "b"]), samples([("web", "a line of text")])
    shared = np.array([hash_of("b")], np.uint64)
    np.save(tmp_path / "shared.npy", shared)
    steps = (
        (lines.ListLines(3), page, line_documents(page, min_chars=3)),
        (lines.ListLineKeys(), text, line_keys(text)),
        (lines.MeasureSharedLines(tmp_path / "shared.npy"), text, dup_ratios(text, shared)),
    )
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        for number, (step, batch, expected) in enumerate(steps):
            parts = pipeline | f"List{number}" >> beam.Create([Part("p", "f", batch)]).with_output_types(Part)
            out = parts | f"Step{number}" >> step
            _ = out | f"Check{number}" >> beam.Map(_same, expected).with_output_types(bool)


def _same(part: Part, expected: pa.RecordBatch) -> bool:
    assert part.batch.equals(expected)
    return True
