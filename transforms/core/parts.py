"""Parts: one Parquet file = one row group = one record batch = one Beam element = one unit of retry.

A sidecar folder holds parts of the same names, rows and row order as `samples`, `sample_id` first.
A part's footer holds its fingerprint: the digest of the columns it was made from, of the stage's parameters and of the
stage's code. A part whose fingerprint matches is finished and is not computed again. The footer also holds a digest of
each column, so what was computed again and came out the same costs later stages nothing.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from scoring.core import files
from scoring.core.errors import DataError, SchemaError
from scoring.core.types import JsonObject
from transforms.core import schemas, sealed
from transforms.core.columns import column_digests

PATTERN = "part-*.parquet"
_META = b"gradsift"

Reads = Mapping[str, Sequence[str]]  # folder → columns


class Task(NamedTuple):
    """A part that is still to be computed: its name, and the fingerprint that it will carry."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class Part:
    """A named record batch. `fingerprint` travels with it into the footer of the file."""

    name: str
    fingerprint: str
    batch: pa.RecordBatch

    def with_batch(self, batch: pa.RecordBatch) -> "Part":
        """Returns this part with other columns."""
        return Part(self.name, self.fingerprint, batch)


class Receipt(NamedTuple):
    """What was written: the proof that a part is on disk."""

    name: str
    rows: int
    bytes: int


def digest(*values: object) -> str:
    """Returns the 128-bit hex digest of JSON-able `values`."""
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Footer:
    """What a part's footer contains: enough to skip it, check it, and serve as an input digest."""

    path: Path

    @cached_property
    def _raw(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                return sealed.read_tail(file, self.path).raw
        except OSError as error:
            raise sealed.fault(self.path, error) from error

    @cached_property
    def digest(self) -> str:
        """Digest of seal and footer: schema, sizes, statistics, fingerprint, and the digests of all pages."""
        return hashlib.blake2b(self._raw, digest_size=16).hexdigest()

    @cached_property
    def _parquet(self) -> pq.FileMetaData:
        assert self._raw  # a footer that is not as it was written is never parsed
        try:
            return pq.read_metadata(self.path)
        except (OSError, pa.ArrowException) as error:
            raise sealed.fault(self.path, error) from error

    @property
    def columns(self) -> list[str]:
        """The names of the part's columns."""
        return list(self._parquet.schema.to_arrow_schema().names)

    @property
    def rows(self) -> int:
        return int(self._parquet.num_rows)

    @cached_property
    def meta(self) -> JsonObject:
        """What the writing stage recorded: `fingerprint`, `ids` and what it added of its own."""
        found = (self._parquet.metadata or {}).get(_META)
        return dict(json.loads(found)) if found else {}

    @property
    def fingerprint(self) -> str:
        return str(self.meta.get("fingerprint", ""))

    def content(self, columns: Iterable[str]) -> str:
        """Returns the digest of the ids and values of `columns`; of the whole footer where it has none of them."""
        known = self.meta.get("columns")
        if not isinstance(known, dict) or not known.keys() >= {*columns}:
            return self.digest
        return digest(self.meta.get("ids"), [[c, known[c]] for c in columns])


def names(folder: Path) -> list[str]:
    """Returns the sorted names of the finished parts in `folder`; none if it does not exist."""
    return sorted(p.name for p in folder.glob(PATTERN))


def is_done(folder: Path, task: Task) -> bool:
    """Returns whether `folder` holds the part of `task` with its name and fingerprint, going by its footer alone."""
    path = folder / task.name
    try:
        if not path.exists():
            return False
        meta = Footer(path).meta
        return (meta.get("fingerprint"), meta.get("part", task.name)) == (task.fingerprint, task.name)
    except DataError:
        return False


def contents(root: Path, name: str, reads: Reads) -> list[tuple[str, str]]:
    """Returns each folder of `reads` and the digest of the columns read from part `name` in it."""
    return [(folder, Footer(root / folder / name).content(columns)) for folder, columns in reads.items()]


def remove_strays(folder: Path, wanted: Iterable[str]) -> list[str]:
    """Deletes temporary files and parts without an input; returns their names."""
    keep = set(wanted)
    strays = [p for p in folder.glob(PATTERN) if p.name not in keep]
    strays += list(folder.glob(f"{files.TEMPORARY}*"))
    for path in strays:
        path.unlink(missing_ok=True)
    return sorted(p.name for p in strays)


def _ids_digest(ids: pa.Array) -> str:
    return hashlib.blake2b("\n".join(ids.to_pylist()).encode(), digest_size=16).hexdigest()


def footer_metadata(schema: pa.Schema, record: Mapping[str, object]) -> dict[bytes, bytes]:
    """Returns the metadata of `schema` with `record`, which `Footer.meta` gives back."""
    return {**(schema.metadata or {}), _META: json.dumps(record, sort_keys=True).encode()}


def write_part(folder: Path, part: Part, schema: pa.Schema, **meta: object) -> Receipt:
    """Writes `part` as one row group of `schema`; returns its receipt.

    The footer records the part's fingerprint, a digest of its sample ids and of each column, and `meta`.
    """
    batch = schemas.conform(part.batch, schema)
    record: dict[str, object] = {
        "fingerprint": part.fingerprint,
        "part": part.name,
        "columns": column_digests(batch),
        **meta,
    }
    if "sample_id" in schema.names and schema.names[0] == "sample_id" and batch["sample_id"].null_count == 0:
        record["ids"] = _ids_digest(batch["sample_id"])
    table = pa.Table.from_batches([batch]).replace_schema_metadata(footer_metadata(schema, record))
    path = folder / part.name

    def write(temporary: str) -> None:
        options = {"compression": "zstd", "compression_level": 1}
        sealed.write_table(table, temporary, row_group_size=max(1, table.num_rows), **options)

    files.write_atomic(path, write)
    return Receipt(part.name, table.num_rows, path.stat().st_size)


def read_part(path: Path, columns: Sequence[str]) -> pa.RecordBatch:
    """Returns the named columns of one part as one batch."""
    table = sealed.read_table(path, columns)
    lost = [c for c in columns if c not in table.schema.names]
    if lost:
        raise SchemaError(f"a part is missing columns {lost}", where=str(path), remedy="rerun the stage that writes it")
    return table.combine_chunks().to_batches(max_chunksize=None)[0] if table.num_rows else empty(table.schema)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch of `schema` without rows."""
    return pa.record_batch([pa.array([], f.type) for f in schema], schema=schema)


def read_columns(root: Path, name: str, reads: Reads) -> pa.RecordBatch:
    """Returns `sample_id` and, as `folder.column`, the columns of part `name` zipped from its folders.

    Raises:
      DataError: the folders do not hold the same samples in the same order.
    """
    ids: pa.Array | None = None
    columns: dict[str, pa.Array] = {}
    for folder, wanted in reads.items():
        batch = read_part(root / folder / name, ["sample_id", *wanted])
        if ids is not None and not batch["sample_id"].equals(ids):
            raise DataError(
                "sidecars do not hold the same samples as the parts they belong to",
                where=f"{root / folder / name}",
                remedy=f"rerun the stage that writes {folder}",
            )
        ids = batch["sample_id"]
        columns |= {f"{folder}.{column}": batch[column] for column in wanted}
    return pa.record_batch({"sample_id": ids, **columns})


def iter_columns(root: Path, part_names: Iterable[str], reads: Reads) -> Iterator[pa.RecordBatch]:
    """Yields `read_columns` part by part: a pass over the corpus in bounded memory."""
    for name in part_names:
        yield read_columns(root, name, reads)


def floats(column: pa.Array) -> npt.NDArray[np.float64]:
    """Returns (n,) float64, null as NaN."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def all_kept(batch: pa.RecordBatch) -> pa.Array:
    """Returns the and of every `*.kept` column of `batch`; null counts as dropped."""
    import pyarrow.compute as pc

    kept = pa.array([True] * batch.num_rows, pa.bool_())
    for name in batch.schema.names:
        if name.endswith(".kept"):
            kept = pc.and_(kept, pc.fill_null(batch[name], False))
    return kept
