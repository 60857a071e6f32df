"""HTTP answers of web archives: chunks, content encodings and headers, right, wrong and already undone."""

import gzip
import zlib
from contextlib import suppress

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from transforms.readers.http_message import Answer, BodyError, dechunked, decoded, media_type

PAGE = b"<html>" + b"words and more words " * 50
LIMIT = 1 << 16


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def chunked(data: bytes, size: int) -> bytes:
    pieces = [data[k : k + size] for k in range(0, len(data), size)]
    return b"".join(b"%x;x=1\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


@given(st.binary(min_size=1, max_size=300), st.integers(1, 50))
def test_chunks_are_put_together(data: bytes, size: int) -> None:
    assert dechunked(chunked(data, size)) == data


def test_what_a_crawler_put_together_stays() -> None:
    assert dechunked(PAGE) == PAGE
    assert dechunked(b"") == b""
    cut = dechunked(chunked(PAGE, 100)[:-300])
    assert cut
    assert PAGE.startswith(cut)


@pytest.mark.parametrize("name", ENCODERS)
def test_content_encodings(name: str) -> None:
    data = ENCODERS[name](PAGE)
    assert decoded(data, name, LIMIT) == PAGE
    assert decoded(PAGE, name, LIMIT) == PAGE  # the crawler undid it and kept the header
    for limit in (len(PAGE) - 1, 10):
        with pytest.raises(BodyError) as caught:
            decoded(data, name, limit)
        assert caught.value.reason == "too_large"


@pytest.mark.parametrize("name", ["gzip", "deflate", "br"])
def test_a_damaged_body(name: str) -> None:
    data = ENCODERS[name](bytes(range(256)) * 20)
    for broken in (data[:-9], b"\xff\xfe\xfd" + data):
        with pytest.raises(BodyError) as caught:
            decoded(broken, name, LIMIT)
        assert caught.value.reason == "broken_archive"


def test_deflate_without_its_header_and_an_unknown_encoding() -> None:
    assert decoded(raw_deflate(PAGE), "deflate", LIMIT) == PAGE
    with pytest.raises(BodyError, match="sdch"):
        decoded(PAGE, "sdch", LIMIT)


def test_an_answer() -> None:
    body = chunked(gzip.compress(PAGE), 77)
    head = b"HTTP/1.1 200 OK\r\nContent-TYPE: text/html\r\nX: 1\r\n folded\r\nno colon\r\n"
    data = head + b"Content-Encoding: gzip\r\nTransfer-Encoding: Chunked\r\n\r\n" + body
    answer = Answer.of(data)
    assert (answer.status, answer.headers["content-type"], answer.headers["x"]) == (200, "text/html", "1 folded")
    assert answer.body(LIMIT) == PAGE
    assert Answer.of(b"HTTP/2 404\n\nno").status == 404
    assert Answer.of(b"HTTP/1.0 200 OK").body(LIMIT) == b""
    assert Answer.of(b"<html>").raw == b"<html>"


@given(st.binary(max_size=200))
def test_any_answer_has_a_body_or_a_reason(data: bytes) -> None:
    for head in (
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200\nTransfer-Encoding: chunked\nContent-Encoding: br\n\n",
    ):
        with suppress(BodyError):
            assert len(Answer.of(head + data).body(LIMIT)) <= LIMIT


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/html; charset=UTF-8", ("text/html", "utf-8")),
        ('Text/HTML;charset="gb2312"', ("text/html", "gb2312")),
        ("text/html;charset='koi8-r' ; x=y", ("text/html", "koi8-r")),
        ("", ("", "")),
        ("text/plain\r\n", ("text/plain", "")),
    ],
)
def test_media_types(value: str, expected: tuple[str, str]) -> None:
    assert media_type(value) == expected
