"""Units: what is ingested, skipped and retried as one. A unit's parts are named after its content.

A unit is a file of rows (a long one in pieces), or a group of files that hold one sample each. Groups
are cut where the hash of a file's name says so, so a new file changes only the group it falls into.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from scoring.core.files import file_digest
from transforms.core import parts
from transforms.core.rejects import REASONS
from transforms.decode.probe import HEAD_BYTES
from transforms.ingest import named_media
from transforms.ingest.stamps import change, stamp
from transforms.readers import parquet, warc, webdataset
from transforms.readers.base import BrokenError, Extent, chunks, compression
from transforms.readers.files import list_files, uri_of, walk
from transforms.readers.huggingface import local_paths
from transforms.readers.kinds import reader_of
from transforms.readers.source import SourceConfig

PIECE_BYTES = 64 << 20  # a longer file of rows becomes several units
GROUP_BYTES = 256 << 20
_PIECES: dict[str, Callable[[Path, int], list[int]]] = {
    "parquet": parquet.piece_bounds, "warc": warc.piece_bounds, "webdataset": webdataset.piece_bounds,
}  # fmt: skip
_GROUP_CUT = 64  # a group ends after a file whose hash is divisible by it


class SourceFile(NamedTuple):
    """A file as it was found: `reader` takes it, or is the reason code of why none does."""

    uri: str
    digest: str
    reader: str
    size: int
    packed: bool = False
    error: str = ""
    stamp: str = ""  # before it was read

    @property
    def is_fault(self) -> bool:
        """Whether the file is a reject as a whole."""
        return self.reader in REASONS


@dataclass(frozen=True)
class Unit:
    """The rows of `files` (of one file: those that begin in [start, end)), which depend on the files `media` too."""

    source: str
    files: tuple[SourceFile, ...]
    start: int = 0
    end: int | None = None
    media: str | None = None  # digest of the media that rows name; None: there are no media
    stamp: str = ""  # of these media

    @property
    def digest(self) -> str:
        """Digest of the content: source, names, bytes and the bytes of the media that rows name."""
        files = [(f.uri, f.digest) for f in self.files]
        return parts.digest("unit", self.source, files, self.start, self.end, self.media)

    @property
    def name(self) -> str:
        """The digest as used in the names of the unit's parts."""
        return self.digest[:16]

    def part(self, number: int) -> str:
        """Returns the name of the unit's part `number`."""
        return f"part-{self.name}-{number:04d}.parquet"

    def to_json(self) -> str:
        """Returns what `from_json` makes this unit of."""
        return json.dumps([self.source, self.files, self.start, self.end, self.media, self.stamp])

    @classmethod
    def from_json(cls, text: str) -> "Unit":
        """Returns the unit that `to_json` wrote."""
        source, files, start, end, media, stamp = json.loads(text)
        return cls(source, tuple(SourceFile(*f) for f in files), start, end, media, stamp)


def plan(root: Path, source: SourceConfig, max_row_bytes: int) -> list[Unit]:
    """Returns the units of all files of `source`, in the order of their names.

    Raises:
      ConfigError: as `list_files`.
    """
    if source.format == "huggingface":
        return [_dataset(root, source, path) for path in source.paths]
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        files = list(pool.map(partial(examine, root, source), list_files(root, source)))
    alone = ("media", "html", *(["text"] if source.whole_file else []))
    singles = [f for f in files if f.is_fault or f.reader in alone]
    rows = [f for f in files if f not in set(singles)]
    return [*_groups(source, singles), *(u for f in rows for u in _pieces(root, source, f, max_row_bytes))]


def examine(root: Path, source: SourceConfig, uri: str) -> SourceFile:
    """Returns what the file at `uri` is, with the digest of its bytes."""
    path = root / uri
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return SourceFile(uri, "", "unsupported_format", 0, error="neither a file nor a folder")
        before = stamp(path, patient=found.st_size > PIECE_BYTES)
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        digest = file_digest(path)
    except OSError as error:
        return SourceFile(uri, "", "unreadable_file", 0, error=error.strerror or str(error))
    if not head:
        return SourceFile(uri, digest, "empty_file", 0, stamp=before)
    packed = bool(compression(head))
    reader, words = reader_of(source, _unpacked(path) if packed else head, path.name, packed=packed)
    return SourceFile(uri, digest, reader, found.st_size, packed, words, before)


def _unpacked(path: Path) -> bytes:
    try:
        return next(chunks(path), b"")[:HEAD_BYTES]
    except BrokenError:
        return b""


def _groups(source: SourceConfig, files: Iterable[SourceFile]) -> Iterator[Unit]:
    held: list[SourceFile] = []
    for file in files:
        held.append(file)
        cut = int(hashlib.blake2b(os.fsencode(file.uri), digest_size=8).hexdigest(), 16) % _GROUP_CUT == 0
        if cut or sum(f.size for f in held) >= GROUP_BYTES:
            yield _group(source, held)
            held = []
    if held:
        yield _group(source, held)


def _group(source: SourceConfig, files: list[SourceFile]) -> Unit:
    return Unit(source.name, tuple(files), media="" if any(f.reader == "media" for f in files) else None)


def _pieces(root: Path, source: SourceConfig, file: SourceFile, max_row_bytes: int) -> Iterator[Unit]:
    for start, end in _bounds(root / file.uri, file):
        extent = Extent(root, root / file.uri, source, max_row_bytes, start, end)
        yield Unit(source.name, (file,), start, end, *_media(extent, file))


def _media(extent: Extent, file: SourceFile) -> named_media.Media:
    """Returns the media files that its rows depend on."""
    if file.reader == "webdataset":
        return named_media.Media("" if webdataset.holds_media(extent) else None, "")
    return named_media.look(extent, file.uri, file.reader)


def changes(root: Path, source: SourceConfig, unit: Unit, max_row_bytes: int) -> dict[str, str]:
    """Returns in words, by file, what of the unit is no longer what it was when its digest was taken."""
    if source.format == "huggingface":
        same = _dataset(root, source, unit.files[0].uri).digest == unit.digest
        return {} if same else {unit.files[0].uri: "a file of the dataset changed"}
    found = {f.uri: change(root / f.uri, f.size, f.stamp, f.digest) for f in unit.files if f.digest}
    first = unit.files[0]
    if unit.media and not any(found.values()):
        extent = Extent(root, root / first.uri, source, max_row_bytes, unit.start, unit.end)
        if not named_media.is_unchanged(extent, first.uri, first.reader, named_media.Media(unit.media, unit.stamp)):
            found[first.uri] = "media that its rows name changed"
    return {uri: words for uri, words in found.items() if words}


def _bounds(path: Path, file: SourceFile) -> list[tuple[int, int | None]]:
    """Returns the pieces of a file: byte ranges of JSON lines, WARC and tar, ranges of row groups of Parquet."""
    if file.size <= PIECE_BYTES or file.packed:
        return [(0, None)]
    if file.reader == "jsonl":
        bounds = list(range(0, file.size, PIECE_BYTES))
    elif file.reader in _PIECES:
        bounds = _PIECES[file.reader](path, PIECE_BYTES)
    else:
        return [(0, None)]
    return list(zip(bounds, [*bounds[1:], None], strict=True))


def _dataset(root: Path, source: SourceConfig, path: str) -> Unit:
    """Returns the unit of one dataset: its digest is that of every local file it is made of."""
    names = {uri_of(root, f) for p in local_paths(root, [path, *source.kwargs.values()]) for f in walk(p)}
    files = [(name, file_digest(root / name)) for name in sorted(names)]
    digest = parts.digest(source.split, dict(source.kwargs), files)
    uri = uri_of(root, root / path) if os.path.lexists(root / path) else path
    return Unit(source.name, (SourceFile(uri, digest, "huggingface", 0),), media=digest)
