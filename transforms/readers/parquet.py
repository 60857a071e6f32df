"""Parquet: rows of every column type; the position of a row is its index in the file."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.readers.base import Extent, Fault, Item, Record, Row, unreadable
from transforms.readers.columns import Columns

_BATCH_ROWS = 256  # rows as Python objects at one time
ERRORS = (pa.ArrowException, OSError, ValueError, OverflowError)  # what pyarrow raises on damaged files


def read_parquet(extent: Extent) -> Iterator[Item]:
    """Yields the rows of row groups [start, end) of a file; one fault covers all that a damaged file loses."""
    index = 0
    try:
        with pq.ParquetFile(extent.path, memory_map=False, page_checksum_verification=True) as file:
            if fault := Columns.of(extent.source).missing(file.schema_arrow.names):
                if not extent.start:
                    yield fault
                return
            if twice := _twice(file.schema_arrow.names):
                if not extent.start:
                    words = f"duplicate column names: {', '.join(twice)}; rename them"
                    yield Fault(0, "bad_value", words)
                return
            counts = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
            index = sum(counts[: extent.start])
            groups = list(range(len(counts)))[extent.start : extent.end]
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, use_threads=False):
                yield from _records(index, batch)
                index += batch.num_rows
    except PermissionError as error:
        yield unreadable(error)
    except ERRORS as error:
        yield Fault(index, "broken_parquet", f"cannot read rows from {index} onwards: {error}")


def _records(index: int, batch: pa.RecordBatch) -> Iterator[Item]:
    """Yields the rows of one batch, row by row where one of them does not convert."""
    batch = _plain(batch)
    try:
        yield from (Record(index + k, row) for k, row in enumerate(batch.to_pylist()))
    except ERRORS:
        for k in range(batch.num_rows):
            yield _record(index + k, batch.slice(k, 1))


def _record(index: int, row: pa.RecordBatch) -> Item:
    try:
        return Record(index, row.to_pylist()[0])
    except UnicodeDecodeError as error:
        return Fault(index, "bad_encoding", str(error))
    except ERRORS as error:
        return Fault(index, "bad_value", str(error))


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns `batch` with times, dates and decimals as text: Python's own types hold fewer of their values."""
    columns = []
    for column in batch.columns:
        wanted = _plain_type(column.type)
        try:
            columns.append(column if wanted == column.type else column.cast(wanted))
        except ERRORS:
            columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    inner = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    inner = inner.value_type if pa.types.is_dictionary(inner) else inner
    if pa.types.is_temporal(inner) or pa.types.is_decimal(inner):
        return pa.string()
    if pa.types.is_struct(inner):
        return pa.struct([f.with_type(_plain_type(f.type)) for f in inner])
    if pa.types.is_map(inner):
        return pa.map_(_plain_type(inner.key_type), _plain_type(inner.item_type))
    is_list = pa.types.is_list(inner) or pa.types.is_large_list(inner) or pa.types.is_fixed_size_list(inner)
    return pa.list_(_plain_type(inner.value_type)) if is_list else inner


def media_rows(extent: Extent) -> Iterator[Row]:
    """Yields the rows of a file with nothing but the texts in columns that may name media files."""
    columns = Columns.of(extent.source)
    with pq.ParquetFile(extent.path, page_checksum_verification=True) as file:
        nested = [c for c in columns.by_field["text"] if _is_nested(file.schema_arrow, c)]
        wanted = [*(c for c, _ in columns.media), *nested]
        leaves = [file.schema.column(k) for k in range(len(file.schema))]
        texts = [c.path for c in leaves if c.logical_type.type == "STRING" and _below(c.path, wanted)]
        for batch in file.iter_batches(_BATCH_ROWS, columns=texts, use_threads=False) if texts else ():
            yield from _plain(batch).to_pylist()


def _is_nested(schema: pa.Schema, column: str) -> bool:
    return any(f.name == column and pa.types.is_nested(f.type) for f in schema)


def _twice(names: list[str]) -> list[str]:
    return sorted({n for n in names if names.count(n) > 1})


def _below(path: str, columns: list[str]) -> bool:
    return any(path == c or path.startswith(f"{c}.") for c in columns)


def holds_media(extent: Extent) -> bool:
    """Returns whether the file has a column that may hold or name media."""
    names = pq.read_schema(extent.path).names
    return any(column in names for column, _ in Columns.of(extent.source).media)


def piece_bounds(path: Path, piece_bytes: int) -> list[int]:
    """Returns the first row group of each piece of at least `piece_bytes` decoded; one piece if it is damaged."""
    try:
        found = pq.read_metadata(path)
    except ERRORS:
        return [0]
    bounds, size = [0], 0
    for k in range(found.num_row_groups):
        if size >= piece_bytes:
            bounds.append(k)
            size = 0
        # Not the sum over columns: pyarrow ends the process on a damaged column's statistics.
        size += found.row_group(k).total_byte_size
    return bounds
