"""Tables as text: a row that does not fit the header is a fault, and the rows behind it stay."""

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reading import faults, read

from transforms.readers.csv_table import read_csv

CASES: list[tuple[bytes, list[tuple[int, Any]]]] = [
    (b"", []),
    (b"id,text\n", []),
    (b"id,text\n1,a\n\n2,b\r\n", [(0, {"id": "1", "text": "a"}), (1, {"id": "2", "text": "b"})]),
    (b"\xef\xbb\xbftext\na", [(0, {"text": "a"})]),
    (b"id;text\n1;a,b\n", [(0, {"id": "1", "text": "a,b"})]),
    (b"id\ttext\n1\ta\n", [(0, {"id": "1", "text": "a"})]),
    (b'text,n\n"two\nlines, ""quoted""",1\n', [(0, {"text": 'two\nlines, "quoted"', "n": "1"})]),
    (b"text,n\na\nb,1\nc,1,2\nd,2", [(0, "bad_value"), (1, {"text": "b", "n": "1"}), (2, "bad_value"),
                                      (3, {"text": "d", "n": "2"})]),
    (b"text,n\n\xff,1\nb,2", [(0, "bad_encoding"), (1, {"text": "b", "n": "2"})]),
    (b'text,n\n"a"b,1\nc,2', [(0, "bad_value"), (1, {"text": "c", "n": "2"})]),
    (b'text,n\na,1\n"never ends,2\n', [(0, {"text": "a", "n": "1"}), (1, "bad_value")]),
    (b"text,x,x\na,1,2", [(0, {"text": "a", "x": "1", "x.1": "2"})]),
    (b"id,body\n1,a", [(0, "missing_column")]),
    (b'"te"xt\na', [(0, "bad_value")]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), CASES, ids=lambda v: str(v)[:40])
def test_a_table(tmp_path: Path, data: bytes, expected: Any) -> None:
    assert read(read_csv, tmp_path / "f.csv", data) == expected


@given(cells=st.lists(st.lists(st.text('ab",\n;é', max_size=5), min_size=2, max_size=2), max_size=6))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_a_writer_writes_is_read(tmp_path: Path, cells: list[list[str]]) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL)
    writer.writerows([["text", "n"], *cells])
    found = read(read_csv, tmp_path / "f", buffer.getvalue().encode())
    assert [list(fields.values()) for _, fields in found] == cells


def test_another_encoding(tmp_path: Path) -> None:
    found = read(read_csv, tmp_path / "f", "text\ncafé\n".encode("latin-1"), encoding="latin-1")
    assert found == [(0, {"text": "café"})]


def test_cells_and_lines_beyond_the_limit(tmp_path: Path) -> None:
    cell = b'"' + b"x\n" * 40 + b'"'
    found = read(read_csv, tmp_path / "f", b"text\na\n" + cell + b"\nb\n", limit=50)
    assert (0, {"text": "a"}) in found
    assert "too_large" in [f for _, f in found]
    found = read(read_csv, tmp_path / "g", b"text\na\n" + b"x" * 100 + b"\nb\n", limit=50)
    assert found == [(0, {"text": "a"}), (1, "too_large")]


def test_damage_and_absence(tmp_path: Path) -> None:
    rows = b"text\n" + b"".join(b"%d\n" % (k * 7919) for k in range(5000))
    found = read(read_csv, tmp_path / "f.csv.gz", gzip.compress(rows)[:-2000])
    assert found[-1] == (len(found) - 1, "broken_archive")
    assert len(found) > 100
    assert read(read_csv, tmp_path / "gone") == [(0, "unreadable_file")]


def test_a_missing_column_is_told_with_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"id,body\n1,a")
    [fault] = faults(read_csv, tmp_path / "f")
    assert fault.error == "no text column (text) and no media column; map one in ingest.sources; columns: id, body"
    [fault] = faults(read_csv, tmp_path / "f", columns={"text": "body", "label": "lable"})
    assert fault.error == "no column 'lable'; columns: id, body"
