"""Helpers for tests of readers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from transforms.readers.base import Extent, Fault, Item, Record
from transforms.readers.source import SourceConfig

LIMIT = 1 << 20


def source(**keys: Any) -> SourceConfig:
    """Returns a source config with defaults for all but `keys`."""
    return SourceConfig(**{"name": "src", "paths": ("x",), **keys})


def extent(path: Path, *, limit: int = LIMIT, start: int = 0, end: int | None = None, **keys: Any) -> Extent:
    """Returns the extent of a file of a source with `keys`."""
    return Extent(path.parent, path, source(**keys), limit, start, end)


def read(
    reader: Callable[[Extent], Iterator[Item]], path: Path, data: bytes | None = None, **keys: Any
) -> list[tuple[int, Any]]:
    """Returns (position, fields) of each record and (position, reason code) of each fault of a file of `data`."""
    if data is not None:
        path.write_bytes(data)
    return [(i.position, i.fields if isinstance(i, Record) else i.reason) for i in reader(extent(path, **keys))]


def faults(reader: Callable[[Extent], Iterator[Item]], path: Path, **keys: Any) -> list[Fault]:
    """Returns the faults of a file."""
    return [i for i in reader(extent(path, **keys)) if isinstance(i, Fault)]
