"""Parquet files of our own: sealed when written, checked when read.

Parquet's page checksums are written and verified too, but they leave page headers and the footer unprotected, and
DuckDB verifies none. A seal covers every byte of the file. It lies between the last page and the footer, where other
readers never look, since they find everything by its offset:

    PAR1 | column chunks | seal: end and XXH3 of each chunk, their count, BLAKE2b of seal and footer, magic | footer
"""

import contextlib
import errno
import hashlib
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from scoring.core.errors import DataError

_MAGIC, _PARQUET = b"gradseal", b"PAR1"
_FLAG = b"gradsift.sealed"  # in the footer: a file that lost its seal is not taken for one written without
_CHUNK, _TRAILER = struct.Struct("<QQ"), struct.Struct("<I16s8s")
_BLOCK_BYTES = 1 << 20
_WRITERS = {"samples": "ingest", "rejects": "ingest", "shards": "shard"}
_STAGES = ("clean", "dedup", "quality", "media", "tokens", "reference", "gradients", "static", "lqs", "plan")
_FAULTS = (OSError, pa.ArrowException, UnicodeDecodeError)  # what reading a damaged file raises


class Chunk(NamedTuple):
    """One column of one row group: where its bytes end (they begin where the one before ends), and their digest."""

    end: int
    digest: int


class Tail(NamedTuple):
    """What lies behind the pages."""

    raw: bytes  # seal and footer; of a file without a seal the footer alone
    start: int  # its offset in the file
    chunks: tuple[Chunk, ...]
    sealed: bool


def stage_of(path: Path) -> str:
    """Returns the name of the stage that writes `path`; empty for a file of no stage."""
    found = (p for p in reversed(path.parts[:-1]) if p in _WRITERS or p in _STAGES)
    name = next(found, "")
    return _WRITERS.get(name, name)


def damage(path: Path, what: object) -> DataError:
    """Returns the error of a damaged file, whose time it changes: so its stage checks it again, and rewrites it."""
    with contextlib.suppress(OSError):  # not ours to touch: then not ours to rewrite either
        os.utime(path)
    stage = stage_of(path)
    remedy = f"rewrite it: gradsift run {stage}" if stage else "delete it and rerun the stage that writes it"
    return DataError(f"damaged file: {what}", where=str(path), remedy=remedy)


def fault(path: Path, error: Exception) -> DataError:
    """Returns what reading `path` failed with as an error for the user."""
    if isinstance(error, FileNotFoundError):
        return DataError("no such file", where=str(path), remedy=f"write it: gradsift run {stage_of(path)}")
    if isinstance(error, OSError) and error.errno not in (None, errno.EIO):  # pyarrow's own have no number
        return DataError(f"cannot read a file: {error}", where=str(path), remedy="check its permissions and the disk")
    return damage(path, error)


def write_table(table: pa.Table, path: str, **options: Any) -> None:
    """Writes `table` to `path` with page checksums and a seal; `options` are those of pyarrow."""
    with writer(path, table.schema, **{k: v for k, v in options.items() if k != "row_group_size"}) as file:
        file.write_table(table, row_group_size=options.get("row_group_size"))


@contextmanager
def writer(path: str, schema: pa.Schema, **options: Any) -> Iterator[pq.ParquetWriter]:
    """Gives a Parquet writer with page checksums; seals the file when the block ends well."""
    with open_writer(path, schema, **options) as file:
        yield file
    seal(path)


def open_writer(path: str, schema: pa.Schema, **options: Any) -> pq.ParquetWriter:
    """Returns a Parquet writer with page checksums; its caller seals the file once it is closed."""
    marked = schema.with_metadata({**(schema.metadata or {}), _FLAG: b"1"})
    return pq.ParquetWriter(path, marked, write_page_checksum=True, **options)


def seal(path: str) -> None:
    """Adds the seal to a finished Parquet file."""
    ends = list(_ends(pq.read_metadata(path)))
    with open(path, "r+b") as file:
        start, footer = _footer(file, Path(path))
        digests = _digests(file, ends)
        chunks = b"".join(_CHUNK.pack(end, digest) for end, digest in zip(ends, digests, strict=True))
        file.seek(start)
        file.write(chunks + _trailer(chunks, footer) + footer)


def _ends(metadata: pq.FileMetaData) -> Iterator[int]:
    """Yields where each chunk ends, in the order in which they lie in the file: that of row groups and columns."""
    end = len(_PARQUET)
    for k in range(metadata.num_row_groups):
        for j in range(metadata.num_columns):
            column = metadata.row_group(k).column(j)
            start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
            end = max(end, start + column.total_compressed_size)  # a chunk without pages, of no rows, is at offset 0
            yield end


def _trailer(chunks: bytes, footer: bytes) -> bytes:
    count = len(chunks) // _CHUNK.size
    return _TRAILER.pack(count, hashlib.blake2b(chunks + footer, digest_size=16).digest(), _MAGIC)


def read_tail(file: BinaryIO, path: Path) -> Tail:
    """Returns the tail of an open file, checked against its seal if it has one.

    Raises:
      DataError: it is not a whole Parquet file, or not as it was written.
    """
    start, footer = _footer(file, path)
    file.seek(max(0, start - _TRAILER.size))
    trailer = file.read(min(start, _TRAILER.size))
    if not trailer.endswith(_MAGIC):
        if _FLAG in footer:
            raise damage(path, "its seal is broken")
        return Tail(footer, start, (), sealed=False)
    return _sealed_tail(file, path, start, trailer, footer)


def _footer(file: BinaryIO, path: Path) -> tuple[int, bytes]:
    """Returns where the footer begins, and its bytes to the end of the file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    last = file.read(8)
    start = size - 8 - int.from_bytes(last[:4], "little")
    if len(last) < 8 or last[4:] != _PARQUET or start < len(_PARQUET):
        raise damage(path, "the Parquet file is incomplete")
    file.seek(start)
    return start, file.read()


def _sealed_tail(file: BinaryIO, path: Path, start: int, trailer: bytes, footer: bytes) -> Tail:
    count, _, _ = _TRAILER.unpack(trailer)
    begin = start - _TRAILER.size - count * _CHUNK.size
    file.seek(max(0, begin))
    chunks = file.read(count * _CHUNK.size) if begin >= len(_PARQUET) else b""
    if _trailer(chunks, footer) != trailer:
        raise damage(path, "the footer is not as it was written")
    found = tuple(Chunk(*c) for c in _CHUNK.iter_unpack(chunks))
    return Tail(chunks + trailer + footer, begin, found, sealed=True)


def _digests(file: BinaryIO, ends: Sequence[int], wanted: Callable[[int], bool] = lambda _: True) -> Iterator[int]:
    """Yields the digest of each wanted chunk."""
    buffer, start = memoryview(bytearray(_BLOCK_BYTES)), len(_PARQUET)
    for k, end in enumerate(ends):
        if wanted(k):
            found, left = xxhash.xxh3_64(), end - start
            file.seek(start)
            while left > 0 and (size := file.readinto(buffer[: min(left, _BLOCK_BYTES)])):  # type: ignore[attr-defined]
                found.update(buffer[:size])
                left -= size
            yield found.intdigest()
        start = end


def check(path: Path) -> bool:
    """Returns whether the file has a seal, after comparing every byte of it.

    Raises:
      DataError: the file is missing, cannot be read, or is not as it was written.
    """
    try:
        with path.open("rb") as file:
            tail = read_tail(file, path)
            if not tail.sealed:
                return False
            ends, digests = [c.end for c in tail.chunks], [c.digest for c in tail.chunks]
            file.seek(0)
            whole = file.read(len(_PARQUET)) == _PARQUET and [len(_PARQUET), *ends][-1] == tail.start
            if not whole or list(_digests(file, ends)) != digests:
                raise damage(path, "its bytes are not those that were written")
    except OSError as error:
        raise fault(path, error) from error
    return True


def sha256(path: Path) -> str:
    """Returns the hex digest of a file's bytes, as manifests list it.

    Raises:
      DataError: as `check`.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise fault(path, error) from error


@contextmanager
def reader(path: Path, columns: Sequence[str] | None = None) -> Iterator[pq.ParquetFile]:
    """Gives the file, the bytes of `columns` (all when None) compared with the seal; page checksums are verified.

    The block is for reading alone: what fails in it is told as a fault of the file.

    Raises:
      DataError: the file is missing, cannot be read, or is not as it was written.
    """
    try:
        with path.open("rb") as raw:
            tail = read_tail(raw, path)
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                _check_columns(raw, path, tail.chunks, file, columns)
                yield file
    except _FAULTS as error:
        raise fault(path, error) from error


def _check_columns(
    raw: BinaryIO, path: Path, chunks: Sequence[Chunk], file: pq.ParquetFile, columns: Sequence[str] | None
) -> None:
    leaves = [file.schema.column(k).path.split(".")[0] for k in range(len(file.schema))]

    def wanted(k: int) -> bool:
        return columns is None or leaves[k % len(leaves)] in columns

    kept = [c.digest for k, c in enumerate(chunks) if wanted(k)]
    for k, digest in enumerate(_digests(raw, [c.end for c in chunks], wanted)):
        if digest != kept[k]:
            raise damage(path, "its bytes are not those that were written")


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Returns the named columns of a file, those of them that it has; all when None.

    Raises:
      DataError: as `reader`.
    """
    with reader(path, columns) as file:
        return file.read(columns=None if columns is None else list(columns), use_threads=False)
