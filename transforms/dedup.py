"""Exact duplicates: one survivor of all rows that share a key, wherever in the corpus they lie.

A part first chooses among its own rows, so a key crosses the shuffle once a part, however often it repeats
there. Only keys, qualities and ids cross; a part hears back of the keys whose survivor lies elsewhere.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.config import config
from transforms import schemas
from transforms.parts import Part, Reads, digest, read_columns

READS: Reads = {"clean": ["key_hash", "rule_quality", "kept"]}
REASONS = {"duplicate_exact": "another row with the same text and media survives"}

_SURVIVORS = pa.schema([("key", pa.binary()), ("survivor", pa.string())])


@config
class DedupConfig:
    """How many duplicates a source may lose before the run fails."""

    max_source_loss: float  # of its rows that clean kept

    def __post_init__(self) -> None:
        if not 0 <= self.max_source_loss <= 1:
            raise ValueError(f"max_source_loss must be in [0, 1], not {self.max_source_loss}")


@dataclass
class Dedup(beam.PTransform):
    """Chooses one survivor a key: parts of the columns `READS` → parts of the columns of dedup.

    `root` holds the folders that are read; `buckets` bounds what one worker holds, not the result.
    """

    root: Path
    buckets: int

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        # KV[bucket, key, quality, sample_id] → KV[part name, key, survivor]
        lost = (
            items
            | "OfferCandidates" >> beam.FlatMap(self._offer)
            | "GroupByBucket" >> beam.GroupByKey()
            | "ChooseSurvivors" >> beam.FlatMap(self._choose)
        )
        named = items | "NameParts" >> beam.Map(self._name)
        verdicts = (named, lost) | "JoinVerdicts" >> beam.Flatten() | "GroupByPart" >> beam.GroupByKey()
        return verdicts | "Judge" >> beam.Map(self._judge)

    def _offer(self, part: Part) -> Iterable[tuple[int, Part]]:
        for bucket, batch in split(candidates(part.batch), self.buckets):
            yield bucket, part.with_batch(batch)

    def _choose(self, item: tuple[int, Iterable[Part]]) -> Iterable[tuple[str, Part]]:
        for part in lost(item[1]):
            yield part.name, part

    def _name(self, part: Part) -> tuple[str, Part]:
        return part.name, part.with_batch(_empty(_SURVIVORS))

    def _judge(self, item: tuple[str, Iterable[Part]]) -> Part:
        found = list(item[1])
        elsewhere = pa.Table.from_batches([p.batch for p in found], schema=_SURVIVORS)
        batch = judge(read_columns(self.root, item[0], READS), elsewhere)
        # All follows from the clusters. A part where they stay keeps its bytes, however the corpus grows.
        return Part(item[0], digest(found[0].fingerprint, batch["cluster"].to_pylist()), batch)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.array([], f.type) for f in schema], schema=schema)


def _rows(batch: pa.RecordBatch) -> pa.Table:
    """Returns key, quality and sample_id of the rows that can be duplicates: kept so far, with a key."""
    columns = {
        "key": pc.cast(batch["clean.key_hash"], pa.binary()),
        "quality": pc.fill_null(batch["clean.rule_quality"], 0.0),
        "sample_id": batch["sample_id"],
    }
    taking_part = pc.and_(pc.fill_null(batch["clean.kept"], False), pc.is_valid(batch["clean.key_hash"]))
    return pa.table(columns).filter(taking_part)


def survivors(rows: pa.Table) -> pa.Table:
    """Returns `rows`, ordered by key, with the `survivor` of each row's key.

    The survivor has the highest quality; of those that tie, the smallest sample id. No order of rows matters.
    """
    ranked = rows.sort_by([("key", "ascending"), ("quality", "descending"), ("sample_id", "ascending")])
    if not ranked.num_rows:
        return ranked.append_column("survivor", pa.array([], pa.string()))
    keys = ranked["key"].combine_chunks()
    starts = np.concatenate(([True], pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)))
    first = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    return ranked.append_column("survivor", ranked["sample_id"].take(pa.array(first)))


def candidates(batch: pa.RecordBatch) -> pa.Table:
    """Returns key, quality and sample_id of the best row of each key in one part."""
    ranked = survivors(_rows(batch))
    best = ranked.filter(pc.equal(ranked["sample_id"], ranked["survivor"]))
    return best.drop_columns("survivor")


def split(rows: pa.Table, buckets: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields (bucket, its rows) by the first bytes of the key; `take`, as a slice would drag all rows along."""
    heads = np.array([int.from_bytes(key[:8], "little") % buckets for key in rows["key"].to_pylist()], np.int64)
    for bucket in np.unique(heads).tolist():
        yield bucket, rows.take(pa.array(np.flatnonzero(heads == bucket))).combine_chunks().to_batches()[0]


def lost(bucket: Iterable[Part]) -> Iterator[Part]:
    """Yields, part by part, the keys of a bucket whose survivor lies in another part, and that survivor."""
    found = list(bucket)
    origin = np.repeat(np.arange(len(found)), [p.batch.num_rows for p in found])
    rows = pa.Table.from_batches([p.batch for p in found]).append_column("origin", pa.array(origin))
    ranked = survivors(rows)
    losers = ranked.filter(pc.not_equal(ranked["sample_id"], ranked["survivor"])).sort_by("origin")
    cuts = np.searchsorted(losers["origin"].to_numpy(), np.arange(len(found) + 1))
    for part, start, stop in zip(found, cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        if stop > start:
            mine = losers.select(_SURVIVORS.names).take(pa.array(range(start, stop), pa.int64()))
            yield part.with_batch(mine.combine_chunks().to_batches()[0])


def judge(batch: pa.RecordBatch, elsewhere: pa.Table) -> pa.RecordBatch:
    """Returns the columns of `schemas.DEDUP` for one part.

    `elsewhere` holds the keys (key, survivor) whose survivor lies in another part. A row without a key is its
    own cluster: nothing is known that it could repeat.
    """
    own = survivors(_rows(batch))
    cluster = dict(zip(own["key"].to_pylist(), own["survivor"].to_pylist(), strict=True))
    cluster |= dict(zip(elsewhere["key"].to_pylist(), elsewhere["survivor"].to_pylist(), strict=True))
    columns = (batch["sample_id"].to_pylist(), batch["clean.key_hash"].to_pylist(), batch["clean.kept"].to_pylist())
    clusters = [cluster.get(key, s) if kept else None for s, key, kept in zip(*columns, strict=True)]
    return _verdicts(batch["sample_id"], pa.array(clusters, pa.string()))


def _verdicts(ids: pa.Array, clusters: pa.Array) -> pa.RecordBatch:
    """Returns the columns of `schemas.DEDUP`; all null where there is no cluster: the row was dropped before."""
    kept = pc.equal(ids, clusters)
    codes = {True: [], False: list(REASONS), None: None}
    columns = {
        "sample_id": ids,
        "cluster": clusters,
        "survivor": kept,
        "matched_id": pc.if_else(kept, pa.scalar(None, pa.string()), clusters),
        "similarity": pc.if_else(kept, pa.scalar(None, pa.float64()), 1.0),
        "kept": kept,
        "reasons": pa.array([codes[k] for k in kept.to_pylist()], pa.list_(pa.string())),
    }
    return schemas.conform(pa.record_batch(columns), schemas.DEDUP)
