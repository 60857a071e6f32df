"""Results of a query as a table on the terminal, CSV, a JSON array or Parquet; streamed batch by batch."""

import csv
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from scoring.core import files
from scoring.core.errors import ConfigError

if TYPE_CHECKING:  # it costs a start more than DuckDB itself; a table of numbers and text needs none
    import duckdb
    import pyarrow as pa

BATCH_ROWS = 2048
PLAIN = frozenset({
    "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "float", "double",
    "varchar", "boolean",
})  # fmt: skip
CELL_CHARS = 60
TABLE_COLUMNS = 14  # wider rows are shown as records, one column per line
PLAIN_WIDTH = 400  # characters a line where the output is no terminal

# Text of a dataset must not control the terminal: control characters become visible symbols.
_CONTROLS = {k: chr(0x2400 + k) for k in range(32)} | {0x7F: "␡"} | dict.fromkeys(range(0x80, 0xA0), "�")
_FOLDED = {ord("\n"): " ", ord("\r"): " ", ord("\t"): " "}


@dataclass(frozen=True)
class Result:
    """The columns of a query and its rows as a stream of record batches, to be read once."""

    columns: list[str]
    batches: "pa.RecordBatchReader"

    def stream(self) -> "Iterator[pa.RecordBatch]":
        """Yields the batches.

        Raises:
          ConfigError: a value of a later row breaks the query.
        """
        import pyarrow as pa

        try:
            yield from self.batches
        except (OSError, pa.ArrowException) as error:
            raise ConfigError(visible(str(error)), where="the query") from error

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yields the rows as Python values."""
        for batch in self.stream():
            yield from _rows(batch)

    def head(self, most: int) -> tuple[list[tuple[object, ...]], int]:
        """Returns the first `most` rows (0: all), and how many there are in all."""
        shown: list[tuple[object, ...]] = []
        total = 0
        for batch in self.stream():
            if not most or len(shown) < most:
                shown += _rows(batch.slice(0, most - len(shown)) if most else batch)
            total += batch.num_rows
        return shown, total

    @property
    def numbers(self) -> list[bool]:
        """Whether each column holds numbers."""
        return [_is_number(kind) for kind in self.batches.schema.types]


@dataclass(frozen=True)
class PlainResult:
    """The same of columns whose values DuckDB gives as Arrow would: numbers, text and truth."""

    columns: list[str]
    kinds: Sequence[str]  # DuckDB's names of their types, all in `PLAIN`
    cursor: "duckdb.DuckDBPyConnection"

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yields the rows as Python values."""
        while block := self.cursor.fetchmany(BATCH_ROWS):
            yield from block

    def head(self, most: int) -> tuple[list[tuple[object, ...]], int]:
        """Returns the first `most` rows (0: all), and how many there are in all."""
        shown: list[tuple[object, ...]] = []
        total = 0
        for total, row in enumerate(self.rows(), 1):
            if not most or total <= most:
                shown.append(row)
        return shown, total

    @property
    def numbers(self) -> list[bool]:
        """Whether each column holds numbers."""
        return [kind not in ("varchar", "boolean") for kind in self.kinds]


def _rows(batch: "pa.RecordBatch") -> Iterator[tuple[object, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def visible(text: str) -> str:
    """Returns `text` on one line, without characters that would steer a terminal."""
    return text.translate(_FOLDED).translate(_CONTROLS)


def shown_text(text: str) -> str:
    """Returns `text` with its lines, without characters that would steer a terminal or break a page."""
    return "\n".join(visible(line) for line in text.split("\n"))


def cell(value: object) -> str:
    """Returns `value` formatted for people: rounded, with digit groups, bytes as their count, long text truncated."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float | Decimal):
        return number(value)
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    return cut(", ".join(map(cell, value)) if isinstance(value, list) else str(value))


def number(value: float | Decimal) -> str:
    """Returns `value` with four digits, or all those before the point, in groups of three."""
    plain = _plain_number(value) if isinstance(value, Decimal) else value
    whole = isinstance(plain, int) or (plain.is_integer() and abs(plain) < 1e15)
    return f"{int(plain):,}" if whole else f"{plain:,.4g}"


def cut(text: str, chars: int = CELL_CHARS) -> str:
    """Returns the beginning of `text` on one line, with an ellipsis where it was cut."""
    line = visible(text[: chars + 1])
    return line if len(line) <= chars else line[: chars - 1] + "…"


def write_table(result: Result | PlainResult, rows: int, stream: TextIO | None = None) -> None:
    """Prints at most `rows` rows (0: all), numbers to the right, then how many more there are."""
    shown, total = result.head(rows)
    out = stream or sys.stdout
    if len(result.columns) > TABLE_COLUMNS:
        _print_records(result, shown, out)
    else:
        _print_grid(result, shown, out)
    if total > len(shown):
        more = f"{total - len(shown):,} more: --rows 0 shows all, --csv writes all"
        print(f"{len(shown):,} of {total:,} rows shown, {more}", file=out)
    elif not shown:
        print("no rows", file=out)


def _print_grid(result: Result | PlainResult, shown: list[tuple[object, ...]], out: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, number_column in zip(result.columns, result.numbers, strict=True):
        table.add_column(Text(visible(name)), justify="right" if number_column else "left", overflow="fold")
    for row in shown:
        table.add_row(*(Text(_verbatim(v) if len(row) <= 2 and isinstance(v, str) else cell(v)) for v in row))
    console = Console(file=out)
    Console(file=out, width=console.width if console.is_terminal else PLAIN_WIDTH).print(table)


def _verbatim(text: str) -> str:
    """Returns `text` with its lines, for the plans that EXPLAIN draws over several."""
    return shown_text(text) if "\n" in text else cut(text, 200)


def _print_records(result: Result | PlainResult, shown: list[tuple[object, ...]], out: TextIO) -> None:
    width = max(len(name) for name in result.columns)
    for k, row in enumerate(shown):
        print(f"── row {k + 1}", file=out)
        for name, value in zip(result.columns, row, strict=True):
            print(f"{visible(name):<{width}}  {cell(value)}", file=out)


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def write_csv(result: Result | PlainResult, stream: TextIO) -> None:
    """Writes a header and all rows; lists and structs as JSON, null as nothing."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows():
        writer.writerow([_json(v) if isinstance(v, list | dict | tuple | bytes) else v for v in row])


def write_json(result: Result | PlainResult, stream: TextIO) -> None:
    """Writes one JSON array of objects, one per line; bytes as hex, and what JSON lacks (NaN) as null.

    Raises:
      ConfigError: two columns have one name, which an object cannot hold.
    """
    twice = sorted({c for c in result.columns if result.columns.count(c) > 1})
    if twice:
        raise ConfigError(f"duplicate column names: {', '.join(twice)}", where="the query", remedy="rename one with AS")
    stream.write("[")
    for k, row in enumerate(result.rows()):
        stream.write(",\n" if k else "\n")
        stream.write(_json(dict(zip(result.columns, row, strict=True))))
    stream.write("\n]\n")


def _json(value: object) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: object) -> object:
    """Returns `value` in JSON's types."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        value = _plain_number(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _plain_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def write_parquet(result: Result, path: Path) -> None:
    """Writes all rows to `path`, whole or not at all; `-` is standard output."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(target: str) -> None:
        with pq.ParquetWriter(target, result.batches.schema, write_page_checksum=True) as writer:
            for batch in result.stream():
                writer.write_batch(batch)

    if str(path) == "-":
        write(pa.output_stream(sys.stdout.buffer))
        sys.stdout.flush()
        return
    if not path.parent.is_dir():
        raise ConfigError(
            "the folder does not exist", where=str(path.parent), remedy="create the folder or change --parquet"
        )
    files.write_atomic(path, write)
    print(f"wrote {path}", file=sys.stderr)
