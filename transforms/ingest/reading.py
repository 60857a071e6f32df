"""Ingest: units of source files become parts of samples and of rejects, streamed in the memory of one part."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from transforms.core import parts
from transforms.ingest.config import IngestConfig
from transforms.ingest.rows import MakeRows, Origin, RejectRow, SampleRow, storable
from transforms.ingest.units import SourceFile, Unit, changes
from transforms.ingest.writers import RejectWriter, SampleWriter, SeenIds
from transforms.readers.base import Extent, Fault, Item, Record, excerpt
from transforms.readers.columns import Columns
from transforms.readers.csv_table import read_csv
from transforms.readers.fields import Fields, Repair, RowError, as_json, to_fields
from transforms.readers.html import Extractor, extracted, read_html
from transforms.readers.huggingface import read_huggingface
from transforms.readers.json_array import read_json
from transforms.readers.jsonl import read_jsonl
from transforms.readers.media import read_media
from transforms.readers.parquet import read_parquet
from transforms.readers.source import SourceConfig
from transforms.readers.text import read_text
from transforms.readers.warc import read_warc
from transforms.readers.webdataset import read_webdataset

READERS: dict[str, Callable[[Extent], Iterator[Item]]] = {
    "jsonl": read_jsonl, "json": read_json, "parquet": read_parquet, "csv": read_csv, "text": read_text,
    "html": read_html, "warc": read_warc, "webdataset": read_webdataset, "media": read_media,
    "huggingface": read_huggingface,
}  # fmt: skip
_SHOWN_COLUMNS = 50


class UnitTask(NamedTuple):
    """A unit that is still to be ingested. `base` is the fingerprint of the unit; `fingerprint` that of its parts."""

    unit: str  # JSON
    excluded: str  # JSON: [file, position] of rows whose id another unit's row has
    base: str
    fingerprint: str


def ingest_unit(task: UnitTask, root: Path, data: Path, config: IngestConfig) -> parts.Receipt:
    """Writes the parts of samples of one unit, then its part of rejects, which says that the unit is finished.

    A unit whose files changed since their digest was taken has no part of rejects: it is not finished.
    """
    unit = Unit.from_json(task.unit)
    excluded = {(file, position) for file, position in json.loads(task.excluded)}
    limits = config.rows_per_part, config.bytes_per_part
    samples = SampleWriter(data / "samples", unit, task.fingerprint, *limits)
    pages = Extractor(config.source(unit.source).html)
    with RejectWriter(data / "rejects", unit) as rejects, closing(SeenIds()) as seen, closing(pages):
        intake = Intake(root, config, unit, excluded, seen, pages)
        for row in intake.rows():
            if isinstance(row, SampleRow):
                samples.add(row)
            else:
                rejects.add(row)
        if changes(root, config.source(unit.source), unit, config.max_row_bytes):
            (data / "rejects" / unit.part(0)).unlink(missing_ok=True)  # the mark of an earlier run
            return parts.Receipt(unit.part(0), 0, 0)
        samples.close()
        record = {"fingerprint": task.fingerprint, "base": task.base, "parts": samples.parts, **intake.summary()}
        size = rejects.finish(record)
    return parts.Receipt(unit.part(0), intake.inputs, size)


class Intake:
    """Reads a unit: its records become sample rows, its faults rejects, and both are counted as inputs."""

    def __init__(
        self, root: Path, config: IngestConfig, unit: Unit, excluded: set[tuple[int, int]], seen: SeenIds,
        pages: Extractor,
    ) -> None:  # fmt: skip
        self.inputs = 0
        self._pages = pages
        self._root, self._config, self._unit, self._excluded, self._seen = root, config, unit, excluded, seen
        self._source = config.source(unit.source)
        self._columns: set[str] = set()

    def summary(self) -> dict[str, object]:
        """Returns what the unit's footer tells: its inputs, and the columns found in its rows."""
        named = sorted(set(Columns.of(self._source).named) & self._columns)
        shown = sorted(storable(c) for c in self._columns)[:_SHOWN_COLUMNS]
        return {"source": self._unit.source, "inputs": self.inputs, "columns": shown, "named_columns": named}

    def rows(self) -> Iterator[SampleRow | RejectRow]:
        """Yields the rows of all files of the unit."""
        for number, file in enumerate(self._unit.files):
            origin = Origin(self._unit.source, storable(file.uri), file.digest)
            if file.is_fault:
                self.inputs += 1
                yield origin.reject(0, file.reader, file.error)
            else:
                yield from self._file_rows(number, file, origin)

    def _file_rows(self, number: int, file: SourceFile, origin: Origin) -> Iterator[SampleRow | RejectRow]:
        config, unit = self._config, self._unit
        extent = Extent(self._root, self._path(file), self._source, config.max_row_bytes, unit.start, unit.end)
        alone = file.reader == "media"
        columns = Columns.of(self._source) if not alone else Columns.of(SourceConfig(name="media", paths=("*",)))
        make = MakeRows(
            self._root, self._source.media_root, config.image, config.video, config.audio, config.max_row_bytes, alone
        )
        for found in READERS[file.reader](extent):
            self.inputs += 1
            item = extracted(found, self._source, self._pages)
            if isinstance(item, Fault):
                yield origin.reject(item.position, item.reason, item.error, excerpt=item.excerpt)
                continue
            if not alone:
                self._columns.update(item.fields)
            try:
                fields = to_fields(item, columns)
            except RowError as error:
                yield origin.reject(item.position, error.reason, error.error, excerpt=_excerpt(item))
                continue
            yield from self._claimed(number, origin, item.position, fields, make)

    def _path(self, file: SourceFile) -> Path:
        path = self._root / file.uri
        return path if path.exists() or file.reader != "huggingface" else Path(file.uri)

    def _claimed(
        self, number: int, origin: Origin, position: int, fields: Fields, make: MakeRows
    ) -> Iterator[SampleRow | RejectRow]:
        """Yields the rows of a record, unless another row has its id."""
        sample_id = origin.sample_id(fields.own_id, position)
        unique = fields.own_id is None and len(self._unit.files) == 1  # made of file and position
        if (number, position) in self._excluded or not (unique or self._seen.add(sample_id)):
            words = f"another row has the id {sample_id}" if fields.own_id else "another file has the same content"
            yield origin.reject(position, "duplicate_id", words, sample_id=sample_id)
            return
        kept = False
        for row in make.rows(origin, position, fields):
            kept = kept or isinstance(row, SampleRow)
            yield row
        if not kept:
            self._seen.discard(sample_id)


def _excerpt(record: Record) -> str:
    try:
        return excerpt(as_json(record.fields, Repair()).encode())
    except RecursionError:
        return ""
