"""Text files: whole or by paragraphs."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from support.reading import faults, read

from transforms.readers.text import read_text

PARAGRAPHS = b"\n\none\ntwo\n \t\r\n\nthree\r\nfour\n\n\nfive"

CASES: list[tuple[bytes, bool, list[tuple[int, Any]]]] = [
    (b"a\n\nb\n", True, [(0, {"text": "a\n\nb\n"})]),
    (b"\xef\xbb\xbfa", True, [(0, {"text": "a"})]),
    (b"caf\xe9", True, [(0, "bad_encoding")]),
    (b"x" * 101, True, [(0, "too_large")]),
    (PARAGRAPHS, False, [(0, {"text": "one\ntwo"}), (1, {"text": "three\r\nfour"}), (2, {"text": "five"})]),
    (b"\n\n", False, []),
    (b"a\n\n\xff\n\nb", False, [(0, {"text": "a"}), (1, "bad_encoding"), (2, {"text": "b"})]),
    (b"a\n\n" + b"xy\n" * 60 + b"\nb", False, [(0, {"text": "a"}), (1, "too_large"), (2, {"text": "b"})]),
    (b"a\n\n" + b"x" * 200 + b"\ny\n\nb", False, [(0, {"text": "a"}), (1, "too_large"), (2, {"text": "b"})]),
]


@pytest.mark.parametrize(("data", "whole", "expected"), CASES, ids=lambda v: str(v)[:30])
def test_a_text_file(tmp_path: Path, data: bytes, whole: bool, expected: Any) -> None:
    assert read(read_text, tmp_path / "f.txt", data, whole_file=whole, limit=100) == expected


def test_another_encoding(tmp_path: Path) -> None:
    found = read(read_text, tmp_path / "f", "你好".encode("gbk"), encoding="gbk")
    assert found == [(0, {"text": "你好"})]


def test_packed_and_damaged(tmp_path: Path) -> None:
    packed = gzip.compress(b"one\n\n" + bytes(range(32, 127)) * 40)
    assert len(read(read_text, tmp_path / "f", packed, whole_file=False)) == 2
    assert read(read_text, tmp_path / "g", packed[:-5]) == [(0, "broken_archive")]
    assert read(read_text, tmp_path / "h", packed[:-5], whole_file=False)[-1] == (1, "broken_archive")
    [fault] = faults(read_text, tmp_path / "g")
    assert fault.excerpt.startswith("one")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert read(read_text, tmp_path / "gone") == [(0, "unreadable_file")]
