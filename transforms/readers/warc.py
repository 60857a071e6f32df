"""WARC and WET archives: a row for each page and text; the position of a row is its record's byte offset, unpacked.

Libraries stop silently at a truncated archive, and find nothing in one whose line ends were
changed; the format is simple, and here both are accounted for.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from transforms.decode.probe import sniff
from transforms.readers.base import (
    CHUNK_BYTES,
    BrokenError,
    Extent,
    Fault,
    Item,
    Record,
    Row,
    excerpt,
    stream,
    unreadable,
)
from transforms.readers.base import too_large as too_large_words
from transforms.readers.html import Page
from transforms.readers.http_message import HEADER_BYTES, Answer, BodyError, headers, media_type

_VERSION = re.compile(rb"WARC/\d+\.\d+[ \t]*\r?\n?$")
_HEADER_LINES = 1000
_HTML = ("text/html", "application/xhtml+xml")
_VAGUE = ("", "application/octet-stream", "binary/octet-stream", "unknown/unknown", "application/unknown")
_BINARY = ("image", "audio", "video", "parquet", "gzip", "zstd", "tar", "warc")


class Head(NamedTuple):
    """The header of a record. `size` is that of its block; None: its lines were changed, and it says nothing true."""

    offset: int
    fields: dict[str, str]
    size: int | None


class _LostError(Exception):
    """The archive cannot be read further."""


class Archive:
    """The records of an archive, one after another; the block of each must be taken before the next."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = os.fstat(file.fileno()).st_size if file.seekable() else None
        self._ahead: tuple[int, bytes] | None = None  # offset and first line of a record whose header comes next

    @property
    def offset(self) -> int:
        """Where the next record begins, or the blank lines before it."""
        return self._ahead[0] if self._ahead else self._file.tell()

    def next(self) -> Head | None:
        """Returns the header of the next record, or None at the end."""
        offset, line = self._ahead or self._first_line()
        self._ahead = None
        if not line:
            return None
        if not _VERSION.match(line):
            raise _LostError(f"no WARC record starts at byte {offset}")
        fields = self._fields()
        size = fields.get("content-length", "")
        if line.endswith(b"\r\n") and not (size.isascii() and size.isdigit() and len(size) < 19):
            raise _LostError(f"the record at byte {offset} has no length")
        return Head(offset, fields, int(size) if line.endswith(b"\r\n") else None)

    def block(self, head: Head, limit: int) -> tuple[bytes, int]:
        """Returns the first `limit` bytes of the record's block, and how many it has."""
        if head.size is None:
            return self._lines(limit)
        data = self._file.read(min(limit, head.size))
        if len(data) + self._skip(head.size - len(data)) < head.size:
            raise _LostError(f"the file is truncated inside the record at byte {head.offset}")
        return data, head.size

    def _first_line(self) -> tuple[int, bytes]:
        while True:
            offset = self._file.tell()
            line = self._file.readline(HEADER_BYTES)
            if line not in (b"\r\n", b"\n"):
                return offset, line

    def _fields(self) -> dict[str, str]:
        found = []
        while (line := self._file.readline(HEADER_BYTES)) not in (b"\r\n", b"\n"):
            found.append(line)
            if not line.endswith(b"\n") or len(found) > _HEADER_LINES:
                raise _LostError("a record header is truncated or corrupt")
        return headers(found)

    def _skip(self, size: int) -> int:
        """Passes over `size` bytes; returns how many there were."""
        if self._end is not None:
            at = self._file.tell()
            return self._file.seek(min(self._end, at + size)) - at
        left = size
        while left and (data := self._file.read(min(left, CHUNK_BYTES))):
            left -= len(data)
        return size - left

    def _lines(self, limit: int) -> tuple[bytes, int]:
        """Returns the block of a record with bare line feeds: all up to the line that begins the next record."""
        kept, size, blank = bytearray(), 0, True
        while line := self._file.readline(HEADER_BYTES):
            if blank and _VERSION.match(line):
                self._ahead = self._file.tell() - len(line), line
                break
            kept += line[: max(0, limit - size)]
            size += len(line)
            blank = line in (b"\n", b"\r\n")
        return bytes(kept), size


def read_warc(extent: Extent) -> Iterator[Item]:
    """Yields the pages and texts whose records begin in [start, end) of an archive.

    Requests, warcinfo, metadata, revisits, DNS answers, redirects and what a crawler logged hold no document.
    """
    at = extent.start
    limit = max(extent.max_row_bytes, extent.source.html.max_bytes)
    try:
        with stream(extent.path, extent.start) as file:
            archive = Archive(file)
            while (head := archive.next()) and (extent.end is None or head.offset < extent.end):
                at = head.offset
                wanted = _may_hold_document(head.fields)
                data, size = archive.block(head, limit + HEADER_BYTES if wanted else 0)
                at = archive.offset
                if wanted and (item := _item(head, data, size, limit)):
                    yield item
    except (BrokenError, _LostError) as error:
        yield Fault(at, "broken_archive", f"{error}; records from byte {at} onwards are skipped")
    except OSError as error:
        yield unreadable(error, at)


def piece_bounds(path: Path, piece_bytes: int) -> list[int]:
    """Returns the offset of the first record of each piece of at least `piece_bytes`; the last holds what is broken."""
    bounds = [0]
    try:
        with path.open("rb") as file:
            archive = Archive(file)
            while head := archive.next():
                if head.offset - bounds[-1] >= piece_bytes:
                    bounds.append(head.offset)
                archive.block(head, 0)
    except (_LostError, OSError):
        pass
    return bounds


def _may_hold_document(fields: dict[str, str]) -> bool:
    kind, address = fields.get("warc-type", "").lower(), fields.get("warc-target-uri", "").lstrip("<")
    logged = address.startswith(("dns:", "metadata:")) or fields.get("content-type", "").startswith("text/dns")
    return kind in ("response", "resource", "conversion", "continuation") and not logged


def _item(head: Head, data: bytes, size: int, limit: int) -> Item | None:
    """Returns the row of a record, its fault, or None where it holds no document."""
    fields = head.fields
    is_http = media_type(fields.get("content-type", ""))[0] == "application/http"
    answer = Answer.of(data) if is_http else Answer(None, fields, data)
    status = answer.status
    if status is not None and (status < 200 or 300 <= status < 400):
        return None
    facts = _facts(fields, answer)
    try:
        if fields["warc-type"].lower() == "continuation":
            raise BodyError("unsupported_format", "a segmented record")
        if status is not None and status >= 400:
            raise BodyError("http_error", f"HTTP status {status}")
        return Record(head.offset, {"text": _page(answer, size, limit), **facts})
    except BodyError as error:
        shown = f"{facts.get('url', '')}\n{excerpt(answer.raw)}"
        return Fault(head.offset, error.reason, f"{error.error}, {facts.get('url', 'no address')}", shown)


def _facts(fields: dict[str, str], answer: Answer) -> Row:
    """Returns the columns of a record beside its text."""
    found = {
        "url": fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">"),
        "date": fields.get("warc-date"),
        "record_id": fields.get("warc-record-id", "").removeprefix("<").removesuffix(">"),
        "content_type": answer.headers.get("content-type"),
        "http_status": answer.status,
        "languages": fields.get("warc-identified-content-language"),
        "truncated": fields.get("warc-truncated"),
    }
    return {k: v for k, v in found.items() if v}


def _page(answer: Answer, size: int, limit: int) -> Page:
    """Returns the document of an answer.

    Raises:
      BodyError: it is neither HTML nor plain text, too large or damaged.
    """
    declared, charset = media_type(answer.headers.get("content-type", ""))
    if declared not in (*_HTML, "text/plain", *_VAGUE):
        raise BodyError("unsupported_format", f"{declared}: neither HTML nor plain text")
    if size > limit + HEADER_BYTES:
        raise BodyError("too_large", too_large_words(size, limit))
    body = answer.body(limit) if answer.status is not None else answer.raw
    found = sniff(body[:4096], "")
    if found in _BINARY or body.startswith(b"%PDF") or (declared in _VAGUE and found not in ("html", "text", "empty")):
        words = f"{declared or 'no content type'}, but the body is {'PDF' if body.startswith(b'%PDF') else found}"
        raise BodyError("unsupported_format", words)
    return Page(body, charset, is_html=declared in _HTML or found == "html")
