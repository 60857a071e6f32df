"""JSON lines: plain, .gz or .zst; the position of a row is the byte offset of its line, decompressed."""

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from transforms.readers.base import BOM, Extent, Fault, Item, Record, excerpt, lines, unreadable

_MAX_EXACT = 2.0**63  # beyond 64 bits orjson turns an integer into a float


def read_jsonl(extent: Extent, only: re.Pattern[bytes] | None = None) -> Iterator[Item]:
    """Yields the rows whose lines begin in [start, end) of a file and hold `only`; blank lines are no rows."""
    begin = max(0, extent.start - 1)  # the line that holds the byte before `start` belongs to the extent before
    position = -1
    try:
        for line in lines(extent.path, extent.max_row_bytes, begin):
            position = line.offset
            if position < extent.start:
                continue
            if extent.end is not None and position >= extent.end:
                return
            if line.reason:
                yield Fault(position, line.reason, line.error, excerpt(line.data))
            elif (data := line.data.strip()) and (only is None or only.search(data)):
                yield parse(position, data, extent.source.encoding)
    except OSError as error:
        yield unreadable(error, position + 1)


def parse(position: int, data: bytes, encoding: str) -> Item:
    """Returns the row that one JSON text holds, or its fault. Of a key given twice the last value counts."""
    if data.startswith(BOM):
        data = data[len(BOM) :]
    try:
        if encoding != "utf-8":
            data = data.decode(encoding).encode()
        row, plain = orjson.loads(data), True
        if _may_be_rounded(row):
            row, plain = _lenient(data), False
    except orjson.JSONDecodeError:
        return _parse_leniently(position, data)
    except UnicodeError as error:
        return bad_encoding(position, data, error)
    return _record(position, row, data, plain)


def bad_encoding(position: int, data: bytes, error: UnicodeError) -> Fault:
    """Returns the fault of bytes that do not decode, naming the first bad one."""
    words = str(error)
    if isinstance(error, UnicodeDecodeError):
        words = f"byte 0x{data[error.start]:02x} at {error.start} of the row is not valid {error.encoding}"
    return Fault(position, "bad_encoding", words, excerpt(data))


def _may_be_rounded(value: Any) -> bool:
    """Returns whether a number in `value` is so large that it may have been an integer."""
    kind = type(value)
    if kind is float:
        return bool(abs(value) >= _MAX_EXACT)
    if kind is dict or kind is list:
        return any(_may_be_rounded(v) for v in (value.values() if kind is dict else value))
    return False


def _lenient(data: bytes) -> object:
    return json.loads(data.decode())


def _parse_leniently(position: int, data: bytes) -> Item:
    """Returns a row that the fast parser refuses: NaN, lone surrogates, numbers beyond a double."""
    try:
        return _record(position, _lenient(data), data, plain=False)
    except UnicodeDecodeError as error:
        return bad_encoding(position, data, error)
    except RecursionError:
        return Fault(position, "bad_json", "nested too deeply", excerpt(data))
    except ValueError as error:
        return Fault(position, "bad_json", str(error), excerpt(data))


def _record(position: int, row: object, data: bytes, plain: bool) -> Item:
    if isinstance(row, dict):
        return Record(position, row, plain)
    return Fault(position, "not_an_object", f"the row is {_kind(row)}", excerpt(data))


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
