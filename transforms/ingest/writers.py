"""Writers of ingest: sample rows cut into parts, rejects streamed into the one file that closes a unit."""

import os
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from scoring.core import files
from scoring.core.errors import DataError
from transforms.core import parts, schemas, sealed
from transforms.ingest.rows import RejectRow, SampleRow
from transforms.ingest.units import Unit

_REJECT_ROWS = 4096  # of a row group
_SEEN_CACHE_KB = 65536


def to_batch(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Returns `rows`, tuples in the order of `schema`, as one batch."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


class SampleWriter:
    """Cuts the sample rows of a unit into parts of at most so many rows and decoded bytes."""

    def __init__(self, folder: Path, unit: Unit, fingerprint: str, max_rows: int, max_bytes: int) -> None:
        self._folder, self._unit, self._fingerprint = folder, unit, fingerprint
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._rows: list[SampleRow] = []
        self._bytes = 0
        self.parts = 0

    def add(self, row: SampleRow) -> None:
        """Takes in a row; writes the part before it if it is full."""
        size = row.size
        if self._rows and (len(self._rows) == self._max_rows or self._bytes + size > self._max_bytes):
            self._write()
        self._rows.append(row)
        self._bytes += size

    def close(self) -> None:
        """Writes the last part. A unit without rows has one part, of no rows."""
        if self._rows or not self.parts:
            self._write()

    def _write(self) -> None:
        part = parts.Part(self._unit.part(self.parts), self._fingerprint, to_batch(self._rows, schemas.SAMPLES))
        parts.write_part(self._folder, part, schemas.SAMPLES)
        self._rows, self._bytes = [], 0
        self.parts += 1


class RejectWriter:
    """Streams rejects into a temporary file that becomes the unit's part of rejects when all else is written."""

    def __init__(self, folder: Path, unit: Unit) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        handle, self._temporary = tempfile.mkstemp(prefix=files.TEMPORARY, suffix=".parquet", dir=folder)
        os.close(handle)
        self._path = folder / unit.part(0)
        self._file = sealed.open_writer(self._temporary, schemas.REJECTS, compression="zstd", compression_level=1)
        self._rows: list[RejectRow] = []

    def __enter__(self) -> "RejectWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        Path(self._temporary).unlink(missing_ok=True)

    def add(self, row: RejectRow) -> None:
        """Takes in a reject."""
        self._rows.append(row)
        if len(self._rows) == _REJECT_ROWS:
            self._flush()

    def finish(self, record: dict[str, object]) -> int:
        """Puts the file in its place with `record` in its footer: the mark of a finished unit. Returns its size."""
        self._flush()
        self._file.add_key_value_metadata(parts.footer_metadata(pa.schema([]), record))
        self._file.close()
        sealed.seal(self._temporary)
        files.write_atomic(self._path, lambda temporary: os.replace(self._temporary, temporary))
        return self._path.stat().st_size

    def _flush(self) -> None:
        if not self._rows:
            return
        try:
            self._file.write_batch(to_batch(self._rows, schemas.REJECTS))
        except OSError as error:
            raise DataError(
                f"cannot write: {error}", where=str(self._path), remedy="free disk space, then rerun"
            ) from error
        self._rows = []


class SeenIds:
    """The sample ids of a unit so far, on disk beyond 64 MB."""

    def __init__(self) -> None:
        self._table = sqlite3.connect("")  # a private file that SQLite removes itself
        self._table.execute(f"PRAGMA cache_size = -{_SEEN_CACHE_KB}")
        self._table.execute("CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID")

    def add(self, sample_id: str) -> bool:
        """Returns whether `sample_id` is new."""
        return self._table.execute("INSERT OR IGNORE INTO seen VALUES (?)", (sample_id,)).rowcount == 1

    def discard(self, sample_id: str) -> None:
        """Forgets an id whose row became no sample."""
        self._table.execute("DELETE FROM seen WHERE id = ?", (sample_id,))

    def close(self) -> None:
        """Removes the ids."""
        self._table.close()
