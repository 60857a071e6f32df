"""JSON documents: an array of objects, or objects one after another; the position of a row is its index.

The scanner finds where an element ends without parsing it, so one bad element costs one row, and an
array of any length is read in the memory of one element.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from transforms.readers.base import (
    BOM,
    EXCERPT_BYTES,
    BrokenError,
    Extent,
    Fault,
    Item,
    excerpt,
    too_large,
    unreadable,
    utf8_chunks,
)
from transforms.readers.jsonl import parse

# A string (group 1: its closing quote, empty if the buffer ends first), a bracket or a comma.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{},]', re.S)
_REST = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*("?)', re.S)
_OPEN, _CLOSE, _COMMA, _QUOTE = b"[{", b"]}", ord(","), ord('"')


@dataclass
class Scanner:
    """Cuts a JSON document into its elements, fed piece by piece."""

    limit: int
    buffer: bytes = b""
    scanned: int = 0  # bytes of the buffer that were looked at
    depth: int = 0
    level: int | None = None  # depth of elements: 1 in an array, 0 outside; None before the first byte
    in_string: bool = False
    dropped: int = 0  # bytes of an over-long element that are gone already
    head: bytes = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        """Yields (element, size) for each element that ends in `data`; of an over-long one only the beginning."""
        self.buffer += data
        if self.level is None and not self._begin():
            return
        begin = 0
        for end, after in self._ends():
            if element := self._element(begin, end):
                yield element
            begin = after
        self._trim(begin)

    def finish(self) -> tuple[bytes, int] | None:
        """Returns what follows the last element, if anything."""
        return self._element(0, len(self.buffer))

    @property
    def closed(self) -> bool:
        """Whether the array, if there was one, has ended."""
        return self.level in (0, None) and self.depth == 0 and not self.in_string

    def _begin(self) -> bool:
        if len(self.buffer) < len(BOM) and BOM.startswith(self.buffer):
            return False
        self.buffer = self.buffer.removeprefix(BOM).lstrip()
        if self.buffer:
            self.level = self.depth = self.scanned = int(self.buffer[:1] == b"[")
            self.buffer = b" " * self.level + self.buffer[self.level :]
        return bool(self.buffer)

    def _ends(self) -> Iterator[tuple[int, int]]:
        """Yields (end of an element, begin of the next) and keeps the state of the scan."""
        if self.in_string:
            self._resume()
        while not self.in_string and (token := _TOKEN.search(self.buffer, self.scanned)):
            self.scanned = token.end()
            kind = self.buffer[token.start()]
            if kind == _QUOTE:
                self.in_string = not token[1]
            elif kind in _OPEN:
                self.depth += 1
            elif kind in _CLOSE:
                yield from self._close(token.start(), token.end())
            elif kind == _COMMA and self.depth == self.level == 1:
                yield token.start(), token.end()
        if not self.in_string:
            self.scanned = len(self.buffer)

    def _resume(self) -> None:
        token = _REST.match(self.buffer, self.scanned)
        assert token is not None
        self.scanned, self.in_string = token.end(), not token[1]

    def _close(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        self.depth = max(0, self.depth - 1)
        if self.depth == 0:
            yield (start if self.level == 1 else end), end
            self.level = 0  # what follows an array is read like objects one after another

    def _element(self, begin: int, end: int) -> tuple[bytes, int] | None:
        data = self.buffer[begin:end].strip()
        size = self.dropped + len(data)
        if self.dropped:
            data, self.dropped = self.head, 0
        return (data, size) if size else None

    def _trim(self, begin: int) -> None:
        self.buffer, self.scanned = self.buffer[begin:], self.scanned - begin
        if self.dropped or len(self.buffer) > self.limit:
            self.head = self.head if self.dropped else self.buffer[:EXCERPT_BYTES]
            self.dropped += self.scanned
            self.buffer, self.scanned = self.buffer[self.scanned :], 0


def read_json(extent: Extent, only: re.Pattern[bytes] | None = None) -> Iterator[Item]:
    """Yields the rows of a JSON document that hold `only`."""
    scanner, index = Scanner(extent.max_row_bytes), 0
    try:
        for data in utf8_chunks(extent):
            for element, size in scanner.feed(data):
                if only is None or only.search(element):
                    yield _item(index, element, size, extent)
                index += 1
    except BrokenError as error:
        yield Fault(index, "broken_archive", str(error), excerpt(scanner.buffer))
        return
    except OSError as error:
        yield unreadable(error, index)
        return
    yield from _end(index, scanner, extent)


def _end(index: int, scanner: Scanner, extent: Extent) -> Iterator[Item]:
    closed, rest = scanner.closed, scanner.finish()
    if rest and closed:
        yield _item(index, *rest, extent)
    elif not closed:
        data = rest[0] if rest else b""
        yield Fault(
            index, "bad_json", "the document is truncated: an array, object or string is not closed", excerpt(data)
        )


def _item(index: int, element: bytes, size: int, extent: Extent) -> Item:
    if size > extent.max_row_bytes:
        return Fault(index, "too_large", too_large(size, extent.max_row_bytes), excerpt(element))
    return parse(index, element, "utf-8")
