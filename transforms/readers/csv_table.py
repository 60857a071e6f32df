"""Comma, semicolon, tab or bar separated tables with a header; the position is the row's index."""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from transforms.readers.base import BOM, Extent, Fault, Item, Record, excerpt, lines, unreadable
from transforms.readers.columns import Columns

_DELIMITERS = ",\t;|"


class _LostError(Exception):
    """The rest of the file cannot be read; holds the reason and the words."""


def read_csv(extent: Extent) -> Iterator[Item]:
    """Yields the rows below the header; a row with more or fewer cells than the header is a fault."""
    index = -1
    csv.field_size_limit(extent.max_row_bytes)
    try:
        names: list[str] = []
        for index, found in enumerate(_rows(extent), start=-1):
            if names:
                yield _item(index, names, found)
            elif isinstance(found, csv.Error):
                yield Fault(0, "bad_value", f"cannot read the header: {found}")
                return
            else:
                names = _unique(found)
                if fault := Columns.of(extent.source).missing(names):
                    yield fault
                    return
    except OSError as error:
        yield unreadable(error, index + 1)
    except _LostError as error:
        reason, words, data = error.args
        yield Fault(index + 1, reason, f"{words}; the rows after it are skipped", excerpt(data))


def _rows(extent: Extent) -> Iterator[list[str] | csv.Error]:
    """Yields the header and the rows, an error in place of each that cannot be taken apart; blank lines are none."""
    text = _lines(extent)
    first = next(text, "")
    table = csv.reader(chain([first], text), delimiter=max(_DELIMITERS, key=first.count), strict=True)
    while True:
        try:
            row: list[str] | csv.Error = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            row = error
        if row:
            yield row


def _lines(extent: Extent) -> Iterator[str]:
    for line in lines(extent.path, extent.max_row_bytes):
        if line.reason:
            raise _LostError(line.reason, line.error, line.data)
        data = line.data.removeprefix(BOM) if line.offset == 0 else line.data
        yield data.decode(extent.source.encoding, "surrogateescape") + "\n"


def _unique(names: list[str]) -> list[str]:
    """Returns `names` with .1, .2 … behind a name that stood before: no column is lost."""
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        unique.append(f"{name}.{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return unique


def _item(index: int, names: list[str], row: list[str] | csv.Error) -> Item:
    if isinstance(row, csv.Error):
        return Fault(index, "too_large" if "limit" in str(row) else "bad_value", str(row))
    shown = excerpt("\t".join(row).encode("utf-8", "surrogateescape"))
    if len(row) != len(names):
        return Fault(index, "bad_value", f"{len(row)} cells, but the header has {len(names)} columns", shown)
    if any(not cell.isascii() and _undecoded(cell) for cell in row):
        return Fault(index, "bad_encoding", "a cell is not valid in the source's encoding", shown)
    return Record(index, dict(zip(names, row, strict=True)))


def _undecoded(cell: str) -> bool:
    return any("\udc80" <= c <= "\udcff" for c in cell)
