"""JSON lines: every kind of bad line is one fault, and pieces of a file give what the file gives."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.reading import extent, faults, read

from transforms.readers.base import Record
from transforms.readers.jsonl import read_jsonl

DEEP = "[" * 100_000 + "]" * 100_000

# (line, fields or reason code)
CASES: list[tuple[bytes, Any]] = [
    (b'{"text": "a"}', {"text": "a"}),
    (b'  {"text": "a"}\t\r', {"text": "a"}),
    (b"", None),
    (b" \t\r", None),
    (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    (b"{", "bad_json"),
    (b'{"a": 1} x', "bad_json"),
    (b"{'a': 1}", "bad_json"),
    (b'{"a": 1,}', "bad_json"),
    (b"\x00\x01", "bad_json"),
    (b"[1]", "not_an_object"),
    (b'"text"', "not_an_object"),
    (b"7", "not_an_object"),
    (b"null", "not_an_object"),
    (b"true", "not_an_object"),
    (b'{"a": "\xff"}', "bad_encoding"),
    (b'{"a": "\xed\xa0\x80"}', "bad_encoding"),  # a surrogate as bytes
    (b'{"a": "\\ud800"}', {"a": "\ud800"}),
    (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
    (b'{"a": "\\u0000"}', {"a": "\0"}),
    (b'{"a": 1, "a": 2}', {"a": 2}),
    (b'{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
    (b'{"a": [{"b": -9223372036854775809}]}', {"a": [{"b": -9223372036854775809}]}),
    (b'{"a": 18446744073709551615}', {"a": 18446744073709551615}),
    (b'{"a": 1e300}', {"a": 1e300}),
    (b'{"a": 1e999}', {"a": float("inf")}),
    (b'{"a": -Infinity}', {"a": float("-inf")}),
    (b'{"a": ' + b"9" * 5000 + b"}", "bad_json"),  # beyond Python's limit of digits
    (f'{{"a": {DEEP}}}'.encode(), "bad_json"),
]


@pytest.mark.parametrize(("line", "expected"), CASES, ids=lambda v: str(v)[:30])
def test_a_line_is_a_row_a_fault_or_nothing(tmp_path: Path, line: bytes, expected: Any) -> None:
    data = b'{"first": 1}\n' + line + b'\n{"last": 1}'
    found = read(read_jsonl, tmp_path / "f.jsonl", data)
    middle = [] if expected is None else [(13, expected)]
    assert found == [(0, {"first": 1}), *middle, (13 + len(line) + 1, {"last": 1})]


def test_nan_is_read(tmp_path: Path) -> None:
    [(_, fields)] = read(read_jsonl, tmp_path / "f", b'{"a": NaN}')
    assert fields["a"] != fields["a"]


def test_a_fault_names_the_byte_and_shows_the_line(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b'{"a": "caf\xe9"}')
    [fault] = faults(read_jsonl, tmp_path / "f")
    assert fault.error == "byte 0xe9 at 10 of the row is not valid utf-8"
    assert fault.excerpt == '{"a": "caf\ufffd"}'


def test_a_long_line_is_one_fault(tmp_path: Path) -> None:
    data = b'{"a": 1}\n{"a": "' + b"x" * 500 + b'"}\n{"a": 2}\n'
    assert read(read_jsonl, tmp_path / "f", data, limit=100) == [(0, {"a": 1}), (9, "too_large"), (519, {"a": 2})]


def test_another_encoding_is_read_as_it_says(tmp_path: Path) -> None:
    data = '{"text": "你好"}\n{"text": "再见"}'.encode("gb18030")
    found = read(read_jsonl, tmp_path / "f", data, encoding="gb18030")
    assert [f["text"] for _, f in found] == ["你好", "再见"]
    assert read(read_jsonl, tmp_path / "g", b'{"text": "\xff"}', encoding="gb18030") == [(0, "bad_encoding")]


def test_rows_before_the_damage_stay(tmp_path: Path) -> None:
    rows = b"".join(b'{"n": %d, "t": "%x"}\n' % (k, k * k * 2654435761 % 2**48) for k in range(20000))
    found = read(read_jsonl, tmp_path / "f.jsonl.gz", gzip.compress(rows)[:-20_000])
    assert found[-1][1] == "broken_archive"
    assert [f["n"] for _, f in found[:-1]] == list(range(len(found) - 1))
    assert len(found) > 1000


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    assert read(read_jsonl, tmp_path / "gone") == [(0, "unreadable_file")]


def test_pieces_give_what_the_file_gives(tmp_path: Path) -> None:
    data = b'{"a": 1}\n\n{"bb": 22}\r\nrubbish\n{"c": "' + b"x" * 30 + b'"}\n{"d": 4}'
    whole = read(read_jsonl, tmp_path / "f", data, limit=25)
    for a in range(len(data) + 1):
        for b in (a, a + 1, a + 7, len(data)):
            bounds = [(0, a), (a, b), (b, None)]
            found = [row for s, e in bounds for row in read(read_jsonl, tmp_path / "f", start=s, end=e, limit=25)]
            assert found == whole


def test_only_rows_that_hold_a_pattern(tmp_path: Path) -> None:
    import re

    (tmp_path / "f").write_bytes(b'{"image": 1}\n{"text": 2}\n')
    items = list(read_jsonl(extent(tmp_path / "f"), re.compile(b'"image"')))
    assert items == [Record(0, {"image": 1}, plain=True)]


def test_shared_corpora_read_whole(shared: Path) -> None:
    for path in sorted(shared.glob("text_*/*.jsonl")):
        expected = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
        assert [fields for _, fields in read(read_jsonl, path)] == expected
