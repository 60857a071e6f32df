"""WARC and WET archives: real ones with a trap each, packed both ways, in pieces, cut, damaged and made up."""

import gzip
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reading import LIMIT, extent, faults, read

from transforms.readers.base import Fault, Record
from transforms.readers.html import Page
from transforms.readers.source import HtmlConfig
from transforms.readers.warc import piece_bounds, read_warc

HTML = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=koi8-r\r\n\r\n<html>page"


def record(
    kind: str, block: str | bytes, content_type: str = "application/http; msgtype=response", **keys: str
) -> bytes:
    data = block if isinstance(block, bytes) else block.encode()
    extra = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in keys.items())
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Type: {content_type}\r\n{extra}Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data + b"\r\n\r\n"


def answer(status: int, content_type: str, body: str = "words") -> bytes:
    return record("response", f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n\r\n{body}")


def outcome(found: list[tuple[int, Any]]) -> list[str]:
    return [v if isinstance(v, str) else "row" for _, v in found]


REAL = [
    ("ccnet-sample.warc.wet", 3, 0),
    ("daft-example.warc", 1, 10),
    ("daft-example.warc.gz", 1, 10),
    ("dolma-sample-0000.warc.gz", 22, 0),
    ("dolma-sample-0001.warc.gz", 15, 0),
    ("warcio-example-digest.warc", 0, 0),
    ("warcio-example-iana.org-chunked.warc", 1, 0),
    ("warcio-example-wget-bad-target-uri.warc.gz", 1, 0),
    ("warcio-example.warc", 1, 0),
    ("warcio-example.warc.gz", 1, 0),
    ("warcio-post-test.warc.gz", 0, 3),
]


@pytest.mark.parametrize(("name", "rows", "rejects"), REAL)
def test_real_archives(shared: Path, name: str, rows: int, rejects: int) -> None:
    found = read(read_warc, shared / "web" / name)
    assert outcome(found).count("row") == rows
    assert outcome(found).count("unsupported_format") == rejects
    assert len(found) == rows + rejects
    positions = [p for p, _ in found]
    assert positions == sorted(set(positions))
    for position, fields in found:
        if not isinstance(fields, str):
            assert {"url", "date", "record_id", "content_type"} <= set(fields)
            assert fields["url"].startswith("http")
            data = (shared / "web" / name).read_bytes()
            assert (gzip.decompress(data) if name.endswith("gz") else data)[position:].startswith(b"WARC/1.")


def test_what_real_records_hold(shared: Path) -> None:
    [(_, iana)] = read(read_warc, shared / "web/warcio-example-iana.org-chunked.warc")
    assert iana["text"].data.startswith(b"<!doctype html>")
    assert iana["text"].data.rstrip().endswith(b"</html>")
    assert iana["text"].charset == "utf-8"
    [(_, wget)] = read(read_warc, shared / "web/warcio-example-wget-bad-target-uri.warc.gz")
    assert (wget["url"], wget["http_status"]) == ("http://example.com/", 200)
    texts = [
        fields["text"].data.decode().strip() for _, fields in read(read_warc, shared / "web/ccnet-sample.warc.wet")
    ]
    assert texts[0].endswith("Truth isn't.")
    assert texts[1].startswith("馬克")
    assert not any("WARC" in t for t in texts)


def test_one_gzip_member_or_many_is_the_same(shared: Path, tmp_path: Path) -> None:
    for name in ("daft-example.warc", "warcio-example.warc"):
        plain = read(read_warc, shared / "web" / name)
        assert read(read_warc, shared / "web" / f"{name}.gz") == plain


KINDS: list[tuple[bytes, list[str]]] = [
    (answer(200, "text/html", "<html>a"), ["row"]),
    (answer(200, "application/xhtml+xml"), ["row"]),
    (answer(200, "text/plain"), ["row"]),
    (answer(200, "TEXT/HTML;x", ""), ["row"]),
    (answer(200, "application/octet-stream", "<!DOCTYPE html><p>a"), ["row"]),
    (answer(200, "application/octet-stream", "%PDF-1.7"), ["unsupported_format"]),
    (answer(200, "text/html", "%PDF-1.7"), ["unsupported_format"]),
    (answer(200, "text/html", "GIF89a"), ["unsupported_format"]),
    (answer(200, "", '{"a": 1}'), ["unsupported_format"]),
    (answer(200, "application/json"), ["unsupported_format"]),
    (answer(200, "application/pdf"), ["unsupported_format"]),
    (answer(301, "text/html"), []),
    (answer(304, "text/html"), []),
    (answer(404, "text/html"), ["http_error"]),
    (answer(503, "image/png"), ["http_error"]),
    (record("response", "rubbish without a header"), ["row"]),
    (record("response", HTML.replace("charset", "\r\nContent-Encoding: gzip\r\nX")), ["row"]),
    (record("response", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08rubbish"), ["broken_archive"]),
    (record("response", "answer", "text/dns", WARC_Target_URI="dns:example.com"), []),
    (record("resource", "log", "text/plain", WARC_Target_URI="metadata://x/wget.log"), []),
    (record("resource", "words", "text/plain", WARC_Target_URI="file:///a.txt"), ["row"]),
    (record("resource", "x", "image/png"), ["unsupported_format"]),
    (record("conversion", "words", "text/plain"), ["row"]),
    (record("continuation", "words", "text/plain"), ["unsupported_format"]),
    (record("request", HTML) + record("revisit", HTML) + record("warcinfo", "x: y") + record("metadata", "x"), []),
    (record("from the future", HTML), []),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), KINDS, ids=lambda v: v[:60] if isinstance(v, bytes) else str(v))
def test_what_a_record_becomes(tmp_path: Path, data: bytes, expected: list[str]) -> None:
    assert outcome(read(read_warc, tmp_path / "a.warc", data)) == expected


def test_columns_of_a_row(tmp_path: Path) -> None:
    keys = {"WARC_Target_URI": "<http://x/é>", "WARC_Date": "2024-01-01T00:00:00Z", "WARC_Record_ID": "<urn:uuid:1>",
            "WARC_Truncated": "length", "WARC_Identified_Content_Language": "eng,fra"}  # fmt: skip
    [(position, fields)] = read(read_warc, tmp_path / "a.warc", b"\r\n\r\n" + record("response", HTML, **keys))
    assert (position, fields) == (4, {
        "text": Page(b"<html>page", "koi8-r"), "url": "http://x/é", "date": "2024-01-01T00:00:00Z",
        "record_id": "urn:uuid:1", "content_type": "text/html; charset=koi8-r", "http_status": 200,
        "languages": "eng,fra", "truncated": "length",
    })  # fmt: skip


def test_a_reject_tells_its_address(tmp_path: Path) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nbody"
    (tmp_path / "a.warc").write_bytes(record("response", head, WARC_Target_URI="http://x/a.png"))
    [fault] = faults(read_warc, tmp_path / "a.warc")
    assert fault.error == "image/png: neither HTML nor plain text, http://x/a.png"
    assert fault.excerpt == "http://x/a.png\nbody"


def test_too_large(tmp_path: Path) -> None:
    big = answer(200, "text/html", "x" * (LIMIT + 200_000)) + answer(200, "video/mp4", "x" * (LIMIT + 200_000))
    bomb = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(
        b"x" * 9_999_999
    )
    data = big + record("response", bomb) + answer(200, "text/html")
    found = read(read_warc, tmp_path / "a.warc", data, html=HtmlConfig(max_bytes=1000))
    assert outcome(found) == ["too_large", "unsupported_format", "too_large", "row"]


THREE = [answer(200, "text/html", f"<html>{k}") for k in range(3)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_cut_archive_yields_its_good_records_and_one_reject(tmp_path: Path, pack: Any) -> None:
    data = pack(b"".join(THREE))
    whole = read(read_warc, tmp_path / "a.warc", data)
    assert outcome(whole) == ["row"] * 3
    for cut in range(1, len(data) - 4):
        found = read(read_warc, tmp_path / "a.warc", data[:cut])
        kept = [f for f in found if not isinstance(f[1], str)]
        assert kept == whole[: len(kept)]
        assert outcome(found[len(kept) :]) in ([], ["broken_archive"])
        assert len({p for p, _ in found}) == len(found)
        if pack is gzip.compress:
            assert outcome(found)[-1] == "broken_archive"


BROKEN = [
    random.Random(7).randbytes(3000),
    b"WARC/1.0\r\n" + random.Random(7).randbytes(3000),
    b"WARC/1.0\r\nContent-Length: 1e9\r\n\r\n",
    b"WARC/1.0\r\nContent-Length: -5\r\n\r\n",
    b"WARC/1.0\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"WARC/1.0\r\nWARC-Type: response\r\n\r\n",
    b"WARC/1.0\r\n" + b"a: b\r\n" * 5000 + b"Content-Length: 0\r\n\r\n",
    b"<html>",
]


@pytest.mark.parametrize("data", BROKEN, ids=lambda d: repr(d[:30]))
def test_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    assert outcome(read(read_warc, tmp_path / "a.warc", data)) == ["broken_archive"]
    after = read(read_warc, tmp_path / "a.warc", THREE[0] + data)
    assert outcome(after) == ["row", "broken_archive"]
    assert after[1][0] >= len(THREE[0]) - 4


def test_nothing_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert read(read_warc, tmp_path / "a.warc", b"\r\n\r\n") == []
    assert read(read_warc, tmp_path / "gone") == [(0, "unreadable_file")]


@pytest.mark.parametrize("name", ["daft-example.warc", "warcio-example.warc", "ccnet-sample.warc.wet"])
def test_pieces_hold_what_the_whole_holds(shared: Path, name: str) -> None:
    path = shared / "web" / name
    whole = read(read_warc, path)
    for size in (1, 700, 5000, 1 << 30):
        bounds: list[int | None] = [*piece_bounds(path, size), None]
        assert [item for a, b in pairwise(bounds) for item in read(read_warc, path, start=a or 0, end=b)] == whole


def test_pieces_of_a_broken_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(THREE) + b"rubbish")
    bounds: list[int | None] = [*piece_bounds(path, 1), None]
    found = [outcome(read(read_warc, path, start=a or 0, end=b)) for a, b in pairwise(bounds)]
    assert found == [["row"], ["row"], ["row", "broken_archive"]]


@given(seed=st.integers(0, 10**6), count=st.integers(1, 20))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_bytes_end_in_rows_and_reasons(tmp_path: Path, seed: int, count: int) -> None:
    dice, data = random.Random(seed), bytearray(b"".join(b for b, _ in KINDS))
    for _ in range(count):
        at = dice.randrange(len(data))
        data[at : at + dice.randrange(3)] = bytes([dice.randrange(256)])
    (tmp_path / "a.warc").write_bytes(data)
    found = list(read_warc(extent(tmp_path / "a.warc")))
    assert all(isinstance(i, Record | Fault) for i in found)
    assert [i.position for i in found] == sorted({i.position for i in found})
    piece_bounds(tmp_path / "a.warc", 100)
