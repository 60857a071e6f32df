"""The media that rows name: a light pass over a file, so that a changed picture is noticed where its rows are."""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from scoring.core.files import file_digest
from transforms.core import parts
from transforms.decode.errors import MediaError
from transforms.ingest.rows import locate
from transforms.ingest.stamps import media_stamp
from transforms.readers.base import Extent, Item, Record, Row
from transforms.readers.columns import Columns
from transforms.readers.csv_table import read_csv
from transforms.readers.fields import MESSAGE_KINDS, media_of
from transforms.readers.json_array import read_json
from transforms.readers.jsonl import read_jsonl
from transforms.readers.parquet import ERRORS, holds_media, media_rows

_THREADS = 8
_NONE = "none"


class Media(NamedTuple):
    """What rows name: a digest of all of it, missing files included, and the stamps before the files were read.

    `digest` is None if the rows hold and name none: then no setting of the decoders has a say in their bytes.
    """

    digest: str | None
    stamp: str


def media_digest(extent: Extent, uri: str, reader: str) -> str | None:
    """Returns the digest of all media that the rows of `extent` name."""
    return look(extent, uri, reader).digest


def look(extent: Extent, uri: str, reader: str) -> Media:
    """Returns what is known of all media that the rows of `extent` name."""
    names, holds = _named(extent, reader)
    if not holds and not (reader == "parquet" and _has_columns(extent)):
        return Media(None, "")
    with ThreadPoolExecutor(_THREADS) as pool:
        stamps = _stamps(pool, extent, uri, names)
        found = list(pool.map(lambda name: _digest(extent, uri, name), names))
    return Media(parts.digest(list(zip(names, found, strict=True))), stamps)


def is_unchanged(extent: Extent, uri: str, reader: str, before: Media) -> bool:
    """Returns whether the rows still name the same media, of the same bytes."""
    if before.digest is None or before.stamp == _NONE:
        return True
    names, _ = _named(extent, reader)
    with ThreadPoolExecutor(_THREADS) as pool:
        same = before.stamp and before.stamp == _stamps(pool, extent, uri, names)
    return bool(same) or look(extent, uri, reader).digest == before.digest


def _stamps(pool: ThreadPoolExecutor, extent: Extent, uri: str, names: Sequence[str]) -> str:
    """Returns the digest of the files' stamps; empty where one of them was changed just now."""
    find = partial(media_stamp, extent.root, extent.source.media_root, uri)
    found = list(pool.map(find, names))
    return "" if "" in found else parts.digest(list(zip(names, found, strict=True))) if names else _NONE


def _named(extent: Extent, reader: str) -> tuple[list[str], bool]:
    """Returns the sorted names of media files in the rows, and whether any row has media at all."""
    columns = Columns.of(extent.source)
    names: set[str] = set()
    holds = False
    for medium in (m for row in _rows(extent, reader, columns) for m in media_of(row, columns)):
        holds = True
        if medium.path and medium.data is None:
            names.add(medium.path)
    return sorted(names), holds


def _digest(extent: Extent, uri: str, name: str) -> str:
    try:
        return file_digest(locate(extent.root, extent.source.media_root, uri, name))
    except (MediaError, OSError):
        return "missing"


def _has_columns(extent: Extent) -> bool:
    try:
        return holds_media(extent)
    except ERRORS:
        return False


def _rows(extent: Extent, reader: str, columns: Columns) -> Iterator[Row]:
    """Yields the rows that may name media, whole or in part; what cannot be read names none."""
    quoted = b"|".join(re.escape(n).encode() for n in sorted({c for c, _ in columns.media} | set(MESSAGE_KINDS)))
    key = re.compile(b'"(?:' + quoted + b')"')
    if reader == "parquet":
        try:
            yield from media_rows(extent)
        except ERRORS:
            return
    readers: dict[str, Callable[[Extent], Iterator[Item]]] = {
        "jsonl": partial(read_jsonl, only=key),
        "json": partial(read_json, only=key),
        "csv": read_csv,
    }
    if reader in readers:
        yield from (item.fields for item in readers[reader](extent) if isinstance(item, Record))
