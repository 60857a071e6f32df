"""What every reader yields, and how it gets at the bytes of a file in bounded memory."""

import codecs
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

import zstandard

from transforms.readers.source import SourceConfig

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK_BYTES = 1 << 20
EXCERPT_BYTES = 2048
BOM = b"\xef\xbb\xbf"
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# A zstd block of 4 bytes can hold 128 kB: small bites bound a decompression bomb.
_FEED_BYTES = {"gzip": 65536, "zstd": 8192}


Row: TypeAlias = dict[str, Any]  # column → value, of whatever type its format gives
Engine: TypeAlias = Any  # what decompresses: zlib's or zstandard's


class Record(NamedTuple):
    """One row: where it stands, and its columns. `plain` rows came from strict JSON and hold its types only."""

    position: int
    fields: Row
    plain: bool = False


class Fault(NamedTuple):
    """A row, or the rest of a file, that cannot be read: a reason code, the words, the first bytes."""

    position: int
    reason: str
    error: str
    excerpt: str = ""


Item = Record | Fault


@dataclass(frozen=True)
class Extent:
    """What a reader is to read: a file, or the rows of it that begin in [start, end)."""

    root: Path  # of the project
    path: Path
    source: SourceConfig
    max_row_bytes: int
    start: int = 0
    end: int | None = None


class BrokenError(Exception):
    """The compressed file ends early or is damaged."""


class Line(NamedTuple):
    """A line without its newline. `reason` is set where `data` is only the beginning of it."""

    offset: int
    data: bytes
    reason: str = ""
    error: str = ""


def excerpt(data: bytes) -> str:
    """Returns the first 2 kB of `data` as text."""
    return data[:EXCERPT_BYTES].decode("utf-8", "replace").replace("\0", "")


def unreadable(error: OSError, position: int = 0) -> Fault:
    """Returns the fault of a file that cannot be opened, or not be read from `position` on."""
    return Fault(position, "unreadable_file", error.strerror or str(error))


def compression(head: bytes) -> str:
    """Returns gzip, zstd or an empty string."""
    skippable = head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50  # pzstd begins with such a frame
    return "gzip" if head.startswith(GZIP) else "zstd" if head.startswith(ZSTD) or skippable else ""


def chunks(path: Path, start: int = 0) -> Iterator[bytes]:
    """Yields the bytes of `path` from `start`, decompressed, about 1 MB at a time.

    Raises:
      BrokenError: after the last good byte of a damaged compressed file.
      OSError: the file cannot be opened or read.
    """
    with path.open("rb") as file:
        packing = compression(file.read(4))
        file.seek(0 if packing else start)
        yield from (_joined(_unpack(file, packing)) if packing else iter(lambda: file.read(CHUNK_BYTES), b""))


def _unpack(file: BinaryIO, packing: str) -> Iterator[bytes]:
    """Yields the contents of all members (frames) of a gzip or zstd file."""
    engine, begun, rest = _engine(packing), False, b""
    while feed := rest or file.read(_FEED_BYTES[packing]):
        try:
            data, rest = _inflate(packing, engine, feed)
        except (zlib.error, zstandard.ZstdError) as error:
            raise BrokenError(f"{packing}: {error}") from error
        if data:
            yield data
        begun = not engine.eof
        if engine.eof:
            engine = _engine(packing)
            rest = rest.lstrip(b"\0")  # tape blocks are padded with zeros
    if begun:
        raise BrokenError(f"{packing}: the file is truncated")


def _engine(packing: str) -> Engine:
    return zlib.decompressobj(wbits=31) if packing == "gzip" else zstandard.ZstdDecompressor().decompressobj()


def _inflate(packing: str, engine: Engine, feed: bytes) -> tuple[bytes, bytes]:
    """Returns what `feed` decompresses to, and what of it is left to feed."""
    if packing == "zstd":
        return engine.decompress(feed), engine.unused_data
    return engine.decompress(feed, CHUNK_BYTES), engine.unconsumed_tail or engine.unused_data


def _joined(stream: Iterator[bytes]) -> Iterator[bytes]:
    """Yields `stream` in pieces of at least 1 MB, and what came before an error before it."""
    held: list[bytes] = []
    try:
        for data in stream:
            held.append(data)
            if sum(map(len, held)) >= CHUNK_BYTES:
                yield b"".join(held)
                held.clear()
    except BrokenError:
        if held:
            yield b"".join(held)
        raise
    if held:
        yield b"".join(held)


def stream(path: Path, start: int = 0) -> BinaryIO:
    """Returns `path` from byte `start` as a file, decompressed; `tell` counts what was read, decompressed.

    Raises:
      OSError: the file cannot be opened. Reading raises what `chunks` raises.
    """
    file = path.open("rb")
    if not compression(file.read(4)):
        file.seek(start)
        return file
    file.close()
    return io.BufferedReader(_Unpacked(chunks(path)), CHUNK_BYTES)


class _Unpacked(io.RawIOBase):
    """The pieces of a decompressed file as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._piece, self._given = pieces, memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._given

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._piece = self._piece or memoryview(next(self._pieces, b""))
        room = memoryview(buffer)
        size = min(len(room), len(self._piece))
        room[:size], self._piece = self._piece[:size], self._piece[size:]
        self._given += size
        return size


def utf8_chunks(extent: Extent) -> Iterator[bytes]:
    """Yields the bytes of a file as UTF-8; what its encoding does not know stays as it is, and is no UTF-8.

    Raises:
      BrokenError, OSError: as `chunks`.
    """
    stream = chunks(extent.path)
    if extent.source.encoding == "utf-8":
        yield from stream
        return
    decoder = codecs.getincrementaldecoder(extent.source.encoding)("surrogateescape")
    for data in stream:
        yield decoder.decode(data).encode("utf-8", "surrogateescape")
    yield decoder.decode(b"", final=True).encode("utf-8", "surrogateescape")


def lines(path: Path, limit: int, start: int = 0) -> Iterator[Line]:
    """Yields the lines of `path` from byte `start`; one longer than `limit` bytes is cut and marked `too_large`.

    A damaged compressed file ends in a line marked `broken_archive`.

    Raises:
      OSError: the file cannot be opened or read.
    """
    offset, pending, dropped, head = start, b"", 0, b""
    stream = chunks(path, start)
    while True:
        try:
            chunk = next(stream, b"")
        except BrokenError as error:
            yield Line(offset, pending[:EXCERPT_BYTES], "broken_archive", str(error))
            return
        *whole, pending = (pending + chunk).split(b"\n") if chunk else [pending, b""]
        for data in whole:
            size = dropped + len(data)
            if size <= limit:
                yield Line(offset, data)
            else:
                yield Line(offset, (head + data)[:EXCERPT_BYTES], "too_large", too_large(size, limit))
            offset, dropped, head = offset + size + 1, 0, b""
        if not chunk:
            return
        if dropped or len(pending) > limit:
            head = (head + pending)[:EXCERPT_BYTES]
            pending, dropped = b"", dropped + len(pending)


def too_large(size: int, limit: int) -> str:
    """Returns the words of a `too_large` fault."""
    return f"{size} bytes, more than max_row_bytes = {limit}"
