"""Shards: the planned rows, gathered from their parts by reference, in the order of the plan.

Only keys travel: an element is the name of a part, or the place of a shard's rows in the plan. A shard may
touch every part, so parts are not read once a shard: each is unpacked once, its planned rows in the order
of their ranks, into an Arrow file that is mapped into memory. A shard's rows of one part are then a
contiguous slice, and reading it touches no other row.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from scoring.core import files
from scoring.core.errors import DataError
from transforms.core import parts, schemas, sealed
from transforms.shard.config import ShardConfig

PATTERN = "shard-*.parquet"
ROUTES = "routes.parquet"  # part, row and rank of every row to unpack, by part and rank
READS = {
    "samples": [n for n in schemas.SAMPLES.names if n not in ("sample_id", "text")],
    "clean": ["clean_text", "language"],
    "quality": ["quality"],
    "static": ["static_score"],
    "lqs": ["lqs"],
}
SPEC = (
    "rank",
    "sample_id",
    "part",
    "row",
    "band",
    "tokens",
    "flops",
    "bytes",
    "score",
)  # what a shard's bytes depend on
PLANNED = ("score", "band", "tokens", "flops")  # columns of a shard that come from the plan
_UNPACKED = pa.schema([pa.field("rank", pa.int64()), *(f for f in schemas.SHARDS if f.name not in PLANNED)])
_COLUMNS = {f"{folder}.{c}": "text" if c == "clean_text" else c for folder, cs in READS.items() for c in cs}
# Where few values repeat; elsewhere, above all in media bytes, looking for repeats costs and finds none.
_DICTIONARY = ["source", "uri", "source_digest", "modality", "codec", "label", "domain", "language", "band"]
_STALE = "rerun the stages that changed: gradsift run"


class ShardTask(NamedTuple):
    """A shard that is still to be written, and the place of its rows in the plan."""

    name: str
    fingerprint: str
    shard: int
    row_group: int
    start: int
    rows: int


def shard_name(shard: int, shards: int) -> str:
    """Returns the file name of one of `shards` shards; names sort as their numbers do."""
    return f"shard-{shard:0{max(5, len(str(shards - 1)))}d}.parquet"


def plan_slices(plan: Path, columns: Sequence[str]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Yields, for each shard in turn, its row group in the plan, its first row there, and `columns` of its rows."""
    with sealed.reader(plan, ["shard", *columns]) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=list({"shard", *columns}), use_threads=False)
            batch = table.select([*columns, "shard"]).combine_chunks().to_batches()[0]
            starts = np.flatnonzero(np.diff(batch["shard"].to_numpy(), prepend=-1))
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), batch.num_rows], strict=True):
                yield group, start, batch.slice(start, end - start).select(list(columns))


def spec_digest(rows: pa.RecordBatch) -> str:
    """Returns the digest of a shard's rows of the plan, the columns of `SPEC`."""
    found = hashlib.blake2b(digest_size=16)
    for name in SPEC:
        column = rows[name]
        text = pa.types.is_string(column.type)
        found.update(
            "\0".join(column.to_pylist()).encode() if text else column.to_numpy(zero_copy_only=False).tobytes()
        )
    return found.hexdigest()


def row_groups(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Returns the spans of the row groups: each the longest run of rows of at most `limit` bytes, or one row."""
    spans, start, held = [], 0, 0
    for row, size in enumerate(sizes):
        if held + size > limit and row > start:
            spans.append((start, row))
            start, held = row, 0
        held += size
    return [*spans, (start, len(sizes))] if sizes else spans


def unpack(batch: pa.RecordBatch, rows: pa.Array, ranks: pa.Array) -> pa.RecordBatch:
    """Returns the `rows` of a part (columns of `READS`) as columns of a shard, behind their ranks."""
    taken = batch.take(rows)
    columns = {"rank": ranks, **{_COLUMNS.get(name, name): taken[name] for name in taken.schema.names}}
    return schemas.conform(pa.record_batch(columns), _UNPACKED)


def gather(spec: pa.RecordBatch, unpacked: Path) -> pa.Table:
    """Returns the rows that `spec` names, of consecutive ranks, in their order, with the columns of a shard.

    Raises:
      DataError: the plan speaks of other rows than the parts hold.
    """
    ranks = spec["rank"]
    pieces = [_piece(unpacked / f"{p}.arrow", ranks[0].as_py(), ranks[-1].as_py()) for p in spec["part"].unique()]
    table = pa.Table.from_batches(pieces)
    table = table.take(np.argsort(table["rank"].to_numpy()))
    if not table["rank"].combine_chunks().equals(ranks) or not table["sample_id"].combine_chunks().equals(
        spec["sample_id"]
    ):
        raise DataError("the plan is older than the parts", where=str(unpacked), remedy=_STALE)
    for name in PLANNED:
        table = table.append_column(name, spec[name])
    return table.select(schemas.SHARDS.names)


def _piece(path: Path, first: int, last: int) -> pa.RecordBatch:
    """Returns a copy of the rows of ranks `first` to `last` of an unpacked part.

    A view would keep the part mapped, and with large folios a touched row brings megabytes of its file along.
    """
    try:
        with pa.memory_map(str(path)) as source:
            batch = pa.ipc.open_file(source).get_batch(0)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"cannot read an unpacked part: {error}", where=str(path), remedy="rerun it") from error
    start, end = np.searchsorted(batch["rank"].to_numpy(), [first, last + 1]).tolist()
    return pa.ipc.read_record_batch(batch.slice(start, end - start).serialize(), batch.schema)


@dataclass
class UnpackParts(beam.PTransform):
    """Writes the planned rows of each part into `target`: `PCollection[str]` → `PCollection[str]`. Idempotent."""

    data: Path
    target: Path  # holds the routes

    def expand(self, names: beam.PCollection) -> beam.PCollection:
        return names | "UnpackPart" >> beam.Map(self._unpack)

    def _unpack(self, name: str) -> str:
        filters = [("part", "=", name)]
        routes = pq.read_table(
            self.target / ROUTES, filters=filters, use_threads=False, page_checksum_verification=True
        )
        routes = routes.combine_chunks().sort_by("rank")
        batch = parts.read_columns(self.data, name, READS)
        if pc.max(routes["row"]).as_py() >= batch.num_rows:
            raise DataError("the plan is older than the parts", where=name, remedy=_STALE)
        found = unpack(batch, *(routes[c].combine_chunks() for c in ("row", "rank")))
        files.write_atomic(self.target / f"{name}.arrow", lambda temporary: _write_arrow(temporary, found))
        return name


def _write_arrow(path: str, batch: pa.RecordBatch) -> None:
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


@dataclass
class WriteShards(beam.PTransform):
    """Writes each shard into `target`: `PCollection[ShardTask]` → `PCollection[Receipt]`. Idempotent."""

    plan: Path
    unpacked: Path
    target: Path
    config: ShardConfig

    def expand(self, tasks: beam.PCollection) -> beam.PCollection:
        return tasks | "ReadSpec" >> beam.Map(self._spec) | "WriteShard" >> beam.Map(self._write)

    def _spec(self, task: ShardTask) -> parts.Part:
        with sealed.reader(self.plan, SPEC) as file:
            table = file.read_row_group(task.row_group, columns=list(SPEC), use_threads=False)
        batch = table.combine_chunks().to_batches()[0].slice(task.start, task.rows)
        return parts.Part(task.name, task.fingerprint, batch)

    def _write(self, spec: parts.Part) -> parts.Receipt:
        record = {"fingerprint": spec.fingerprint}
        schema = schemas.SHARDS.with_metadata(parts.footer_metadata(schemas.SHARDS, record))

        def write(temporary: str) -> None:
            options = {"compression": "zstd", "compression_level": 1, "use_dictionary": _DICTIONARY}
            with sealed.writer(temporary, schema, **options) as writer:
                for start, end in row_groups(spec.batch["bytes"].to_pylist(), self.config.row_group_bytes):
                    rows = gather(spec.batch.slice(start, end - start), self.unpacked)
                    writer.write_table(rows.cast(schema), row_group_size=end - start)

        path = self.target / spec.name
        files.write_atomic(path, write)
        return parts.Receipt(spec.name, spec.batch.num_rows, path.stat().st_size)
