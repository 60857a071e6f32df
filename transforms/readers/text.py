"""Plain text and Markdown: one sample per file, or one per paragraph; the position is the sample's index."""

from collections.abc import Iterator

from transforms.readers.base import (
    BOM,
    EXCERPT_BYTES,
    BrokenError,
    Extent,
    Fault,
    Item,
    Line,
    Record,
    chunks,
    excerpt,
    lines,
    too_large,
    unreadable,
)
from transforms.readers.jsonl import bad_encoding


def read_text(extent: Extent) -> Iterator[Item]:
    """Yields a file as one record with column `text`, or one record for each block between blank lines."""
    index = -1
    try:
        blocks = _whole(extent) if extent.source.whole_file else _paragraphs(extent)
        for index, block in enumerate(blocks):
            yield _item(index, block, extent.source.encoding)
    except OSError as error:
        yield unreadable(error, index + 1)


def _item(index: int, block: Line, encoding: str) -> Item:
    if block.reason:
        return Fault(index, block.reason, block.error, excerpt(block.data))
    try:
        return Record(index, {"text": block.data.removeprefix(BOM).decode(encoding)})
    except UnicodeDecodeError as error:
        return bad_encoding(index, block.data, error)


def _whole(extent: Extent) -> Iterator[Line]:
    data = b""
    try:
        for chunk in chunks(extent.path):
            data += chunk
            if len(data) > extent.max_row_bytes:
                yield _block([data], len(data), extent.max_row_bytes)
                return
        yield Line(0, data)
    except BrokenError as error:
        yield Line(0, data[:EXCERPT_BYTES], "broken_archive", str(error))


def _paragraphs(extent: Extent) -> Iterator[Line]:
    held: list[bytes] = []
    size = 0
    for line in lines(extent.path, extent.max_row_bytes):
        if line.reason == "broken_archive":
            yield line._replace(data=b"\n".join([*held, line.data]))
            return
        if line.data.strip():
            size += extent.max_row_bytes if line.reason else len(line.data) + 1
            held += [line.data] if size <= extent.max_row_bytes or not held else []
        elif held:
            yield _block(held, size, extent.max_row_bytes)
            held, size = [], 0
    if held:
        yield _block(held, size, extent.max_row_bytes)


def _block(held: list[bytes], size: int, limit: int) -> Line:
    data = b"\n".join(held)
    return Line(0, data[:EXCERPT_BYTES], "too_large", too_large(size, limit)) if size > limit else Line(0, data)
