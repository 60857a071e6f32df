"""JSON documents: the scanner cuts where a parser would, whatever the chunks; one bad element is one fault."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reading import read

from transforms.readers import base
from transforms.readers.json_array import Scanner, read_json

SCALARS = st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\[]{},: \n\u4f60', max_size=8)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text('k"],{', max_size=2), v))
ROWS = st.lists(st.dictionaries(st.sampled_from(["text", 'i"d', "x{"]), VALUES, max_size=3), max_size=5)
SPLITS = st.integers(1, 12)


def fed(document: bytes, size: int, limit: int = 1 << 20) -> list[bytes]:
    scanner = Scanner(limit)
    found = [e for k in range(0, len(document), size) for e, _ in scanner.feed(document[k : k + size])]
    rest = scanner.finish()
    return [*found, rest[0]] if rest else found


@given(rows=ROWS, indent=st.sampled_from([None, 2]), ascii_only=st.booleans(), size=SPLITS)
@settings(max_examples=60, deadline=None)
def test_an_array_is_cut_into_its_elements(rows: list[Any], indent: int | None, ascii_only: bool, size: int) -> None:
    document = json.dumps(rows, indent=indent, ensure_ascii=ascii_only).encode()
    assert [json.loads(e) for e in fed(document, size)] == rows


@given(rows=ROWS, indent=st.sampled_from([None, 2]), gap=st.sampled_from(["", "\n", " \r\n\n"]), size=SPLITS)
@settings(max_examples=60, deadline=None)
def test_objects_may_follow_one_another(rows: list[Any], indent: int | None, gap: str, size: int) -> None:
    document = gap.join(json.dumps(r, indent=indent) for r in rows).encode()
    assert [json.loads(e) for e in fed(document, size)] == rows


CASES: list[tuple[bytes, list[tuple[int, Any]]]] = [
    (b"[]", []),
    (b" \n", []),
    (b'\xef\xbb\xbf[{"a": 1}]', [(0, {"a": 1})]),
    (b'[{"a": 1}, {a: 2}, {"a": 3}]', [(0, {"a": 1}), (1, "bad_json"), (2, {"a": 3})]),
    (b'[{"a": 1}, 7, "x,]", null, {"a": 3},]',
     [(0, {"a": 1}), (1, "not_an_object"), (2, "not_an_object"), (3, "not_an_object"), (4, {"a": 3})]),
    (b'[{"a": 1}, {"a": "\xff"}]', [(0, {"a": 1}), (1, "bad_encoding")]),
    (b'[{"a": 1}, {"a": ', [(0, {"a": 1}), (1, "bad_json")]),
    (b'[{"a": 1}, {"a": "never', [(0, {"a": 1}), (1, "bad_json")]),
    (b'[{"a": 1},', [(0, {"a": 1}), (1, "bad_json")]),
    (b'[{"a": 1}] rubbish', [(0, {"a": 1}), (1, "bad_json")]),
    (b'{"a": 1}', [(0, {"a": 1})]),
    (b"42", [(0, "not_an_object")]),
    (b"]]}{", [(0, "bad_json"), (1, "bad_json"), (2, "bad_json"), (3, "bad_json")]),
]  # fmt: skip


@pytest.mark.parametrize(("document", "expected"), CASES, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_what_is_no_row_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: bytes, expected: Any, chunk: int
) -> None:
    monkeypatch.setattr(base, "CHUNK_BYTES", chunk)
    assert read(read_json, tmp_path / "f.json", document) == expected


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_an_element_beyond_the_limit_is_one_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(base, "CHUNK_BYTES", chunk)
    document = b'[{"a": 1}, {"a": "' + b'\\"]},' * 50 + b'"}, {"a": 3}]'
    found = read(read_json, tmp_path / "f", document, limit=60)
    assert found == [(0, {"a": 1}), (1, "too_large"), (2, {"a": 3})]


def test_a_cut_gzip_keeps_the_rows_before_it(tmp_path: Path) -> None:
    rows = [{"n": k, "t": str(k * k * 7919)} for k in range(5000)]
    found = read(read_json, tmp_path / "f.json.gz", gzip.compress(json.dumps(rows).encode())[:-5000])
    assert found[-1][1] == "broken_archive"
    assert [f for _, f in found[:-1]] == rows[: len(found) - 1]
    assert len(found) > 500


def test_an_encoding_whose_bytes_look_like_json(tmp_path: Path) -> None:
    rows = [{"text": "誠"}, {"text": "功許\\"}]  # in Big5 their second bytes are a backslash and the like
    document = json.dumps(rows, ensure_ascii=False).encode("big5")
    assert [f for _, f in read(read_json, tmp_path / "f", document, encoding="big5")] == rows
    bad = read(read_json, tmp_path / "g", b'[{"text": "a"}, {"text": "\xff"}]', encoding="big5")
    assert bad == [(0, {"text": "a"}), (1, "bad_encoding")]


@pytest.mark.parametrize("name", ["labelled/alpaca_zh_demo.json", "multimodal/llama_factory/mllm_demo.json"])
def test_shared_arrays(shared: Path, name: str) -> None:
    expected = json.loads((shared / name).read_text())
    assert [f for _, f in read(read_json, shared / name)] == expected


@given(data=st.binary(max_size=40) | st.text('[]{}",:\\ a1', max_size=40).map(str.encode), size=SPLITS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rubbish_never_raises_and_chunks_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, size: int
) -> None:
    if base.compression(data):
        return
    monkeypatch.setattr(base, "CHUNK_BYTES", size)
    found = read(read_json, tmp_path / "f", data)
    monkeypatch.setattr(base, "CHUNK_BYTES", 1 << 20)
    assert found == read(read_json, tmp_path / "f")
