"""HTTP responses as stored in web archives: status, headers and the body as the server meant it."""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import zstandard

HEADER_BYTES = 1 << 16
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})")
_BLANK = re.compile(rb"\r?\n\r?\n")
_CHUNK_HEAD = re.compile(rb"(?:\r?\n)?[ \t]*([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([^\s"';,]+)""", re.I)


class BodyError(Exception):
    """The body cannot be had; holds the reason code and the words."""

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason, error)
        self.reason, self.error = reason, error


@dataclass(frozen=True)
class Answer:
    """An answer. `status` is None, and there are no headers, where there is no HTTP in front of the body."""

    status: int | None
    headers: Mapping[str, str]  # lower-case names
    raw: bytes  # the body as it was sent

    @classmethod
    def of(cls, data: bytes) -> "Answer":
        """Returns the answer that `data` holds."""
        status, blank = _STATUS.match(data), _BLANK.search(data, 0, HEADER_BYTES)
        if status is None:
            return cls(None, {}, data)
        end = blank.start() if blank else len(data)
        return cls(int(status[1]), headers(data[:end].split(b"\n")[1:]), data[blank.end() if blank else end :])

    def body(self, limit: int) -> bytes:
        """Returns the body without chunks and content encoding.

        Raises:
          BodyError: `too_large`, `broken_archive` or `unsupported_format`.
        """
        is_chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        data = dechunked(self.raw) if is_chunked else self.raw
        for name in reversed(self.headers.get("content-encoding", "").lower().split(",")):
            data = decoded(data, name.strip(), limit)
        return data


def headers(lines: list[bytes]) -> dict[str, str]:
    """Returns header lines by lower-case name; of a name given twice the last value counts."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        if line[:1] in (b" ", b"\t") and name:
            found[name] += f" {text}"
        elif ":" in text:
            name, _, value = text.partition(":")
            name = name.strip().lower()
            found[name] = value.strip()
    return found


def media_type(value: str) -> tuple[str, str]:
    """Returns the type of a Content-Type header in lower case, and its charset; empty where there is none."""
    charset = _CHARSET.search(value)
    return value.partition(";")[0].strip().lower(), charset[1].lower() if charset else ""


def dechunked(data: bytes) -> bytes:
    """Returns a body of chunks in one; one that a crawler has put together already stays as it is."""
    pieces, at = [], 0
    while head := _CHUNK_HEAD.match(data, at):
        size = int(head[1], 16)
        pieces.append(data[head.end() : head.end() + size])
        at = head.end() + size
        if size == 0:
            break
    return b"".join(pieces) if pieces else data


def decoded(data: bytes, name: str, limit: int) -> bytes:
    """Returns the decoded body in content encoding `name`; one that a crawler has already decoded is unchanged.

    Raises:
      BodyError: as `Answer.body`.
    """
    try:
        return _decoded(data, name, limit)
    except BodyError as error:
        if error.reason == "broken_archive" and _is_utf8(data):
            return data
        raise


def _decoded(data: bytes, name: str, limit: int) -> bytes:
    if name in ("gzip", "x-gzip"):
        return _inflated(data, 31, limit)
    if name == "deflate":
        is_zlib = data[:1] and data[0] & 15 == 8 and int.from_bytes(data[:2]) % 31 == 0
        return _inflated(data, 15 if is_zlib else -15, limit)
    if name == "zstd":
        return _zstd(data, limit)
    if name == "br":
        return _brotli(data, limit)
    if name in ("", "identity", "none", "utf-8"):
        return data
    raise BodyError("unsupported_format", f"content encoding {name[:50]!r}")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _inflated(data: bytes, wbits: int, limit: int) -> bytes:
    engine = zlib.decompressobj(wbits)
    try:
        found = engine.decompress(data, limit + 1)
    except zlib.error as error:
        raise BodyError("broken_archive", f"the body is corrupt: {error}") from error
    return _bounded(found, limit, ended=engine.eof)


def _zstd(data: bytes, limit: int) -> bytes:
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
            return _bounded(reader.read(limit + 1), limit, ended=True)
    except zstandard.ZstdError as error:
        raise BodyError("broken_archive", f"the body is corrupt: {error}") from error


def _brotli(data: bytes, limit: int) -> bytes:
    try:
        import brotli
    except ImportError:
        raise BodyError("unsupported_format", "content encoding br: pip install brotli to read it") from None
    engine, pieces, size = brotli.Decompressor(), [], 0
    try:
        piece = engine.process(data, output_buffer_limit=limit + 1)
        while piece:
            pieces.append(piece)
            size += len(piece)
            piece = b"" if size > limit else engine.process(b"", output_buffer_limit=limit + 1 - size)
    except brotli.error as error:
        raise BodyError("broken_archive", f"the body is corrupt: {error}") from error
    return _bounded(b"".join(pieces), limit, ended=engine.is_finished())


def _bounded(data: bytes, limit: int, *, ended: bool) -> bytes:
    if len(data) > limit:
        raise BodyError("too_large", f"the decompressed body is larger than {limit} bytes")
    if not ended:
        raise BodyError("broken_archive", "the compressed body is truncated")
    return data
