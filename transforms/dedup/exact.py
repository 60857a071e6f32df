"""Duplicates: one row is kept of all that share a key, and of all with nearly the same text.

Pure functions over the rows of a part, or over what many parts say of one bucket of keys. A row's `ref` is the
number of its part, in the order of names, and its place there.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.arrays import Array
from transforms.core import schemas
from transforms.core.parts import Part, Reads
from transforms.dedup.rules import REASONS

KEYS: Reads = {"clean": ["key_hash", "rule_quality", "kept"]}


_SURVIVOR = ("survivor", "survivor_ref")
SURVIVORS = pa.schema([("key", pa.binary()), ("survivor", pa.string()), ("survivor_ref", pa.int64())])
SETTLED = pa.schema(
    [
        ("sample_id", pa.string()),
        ("quality", pa.float64()),
        ("cluster", pa.string()),  # the survivor among the rows of the same key; null for a row dropped before
        ("cluster_ref", pa.int64()),
    ]
)


def refs(number: int, rows: int) -> Array:
    """Returns (rows,) int64: the refs of the rows of part `number`."""
    return np.arange(rows, dtype=np.int64) + (np.int64(number) << 32)


def _rows(batch: pa.RecordBatch, number: int) -> pa.Table:
    """Returns key, quality, id and ref of the rows that can be duplicates: kept so far, with a key."""
    columns = {
        "key": pc.cast(batch["clean.key_hash"], pa.binary()),
        "quality": pc.fill_null(batch["clean.rule_quality"], 0.0),
        "sample_id": batch["sample_id"],
        "ref": pa.array(refs(number, batch.num_rows)),
    }
    taking_part = pc.and_(pc.fill_null(batch["clean.kept"], False), pc.is_valid(batch["clean.key_hash"]))
    return pa.table(columns).filter(taking_part)


def survivors(rows: pa.Table) -> pa.Table:
    """Returns `rows`, ordered by key, with the `survivor` and the `survivor_ref` of each row's key.

    The survivor has the highest quality; of those that tie, the smallest sample id. No order of rows matters.
    """
    ranked = rows.sort_by([("key", "ascending"), ("quality", "descending"), ("sample_id", "ascending")])
    keys = ranked["key"].combine_chunks()
    starts = np.ones(len(keys), np.bool_)
    starts[1:] = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    first = pa.array(np.flatnonzero(starts)[np.cumsum(starts) - 1])
    for name, column in zip(_SURVIVOR, ("sample_id", "ref"), strict=True):
        ranked = ranked.append_column(name, ranked[column].take(first))
    return ranked


def candidates(batch: pa.RecordBatch, number: int) -> pa.Table:
    """Returns key, quality, id and ref of the best row of each key in part `number`."""
    ranked = survivors(_rows(batch, number))
    return ranked.filter(pc.equal(ranked["ref"], ranked["survivor_ref"])).drop_columns(list(_SURVIVOR))


def split(rows: pa.Table, buckets: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields (bucket, its rows) by the first bytes of the key; `take`, as a slice would drag all rows along."""
    keys = rows["key"].combine_chunks().cast(pa.binary(16))
    words = np.frombuffer(keys.buffers()[1] or b"", np.uint64)[2 * keys.offset :][: 2 * len(keys)]
    bucket = words[::2] % np.uint64(buckets)
    for number in np.unique(bucket).tolist():
        yield number, rows.take(pa.array(np.flatnonzero(bucket == number))).combine_chunks().to_batches()[0]


def lost(bucket: Iterable[Part]) -> Iterator[Part]:
    """Yields, part by part, the keys of a bucket whose survivor is in another part, and that survivor."""
    found = list(bucket)
    origin = np.repeat(np.arange(len(found)), [p.batch.num_rows for p in found])
    rows = pa.Table.from_batches([p.batch for p in found]).append_column("origin", pa.array(origin))
    ranked = survivors(rows)
    losers = ranked.filter(pc.not_equal(ranked["ref"], ranked["survivor_ref"])).sort_by("origin")
    cuts = np.searchsorted(losers["origin"].to_numpy(), np.arange(len(found) + 1))
    for part, start, stop in zip(found, cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        if stop > start:
            mine = losers.select(SURVIVORS.names).take(pa.array(range(start, stop), pa.int64()))
            yield part.with_batch(mine.combine_chunks().to_batches()[0])


def settle(batch: pa.RecordBatch, number: int, elsewhere: pa.Table) -> pa.RecordBatch:
    """Returns the columns of `SETTLED` for part `number`: each row's survivor among the rows of its key.

    `elsewhere` holds the keys whose survivor is in another part. A row without a key is its own cluster:
    nothing is known that it could repeat.
    """
    own = survivors(_rows(batch, number))
    kept, mine = pc.fill_null(batch["clean.kept"], False), pa.array(refs(number, batch.num_rows))
    here = own.take(pc.index_in(batch["clean.key_hash"].cast(pa.binary()), own["key"].combine_chunks()))
    there = elsewhere.take(pc.index_in(batch["clean.key_hash"].cast(pa.binary()), elsewhere["key"].combine_chunks()))
    ids = pc.coalesce(*(t["survivor"].combine_chunks() for t in (there, here)), batch["sample_id"])
    found = pc.coalesce(*(t["survivor_ref"].combine_chunks() for t in (there, here)), mine)
    columns = {
        "sample_id": batch["sample_id"],
        "quality": pc.fill_null(batch["clean.rule_quality"], 0.0),
        "cluster": pc.if_else(kept, ids, None),
        "cluster_ref": pc.if_else(kept, found, None),
    }
    return pa.record_batch(columns, schema=SETTLED)


def judge(settled: pa.RecordBatch, near: pa.Table) -> pa.RecordBatch:
    """Returns the columns of `schemas.DEDUP` for one part.

    `near` (ref, matched_id, similarity) holds the survivors of a key that duplicate another text nearly. What
    shares their key goes with them: it is as similar to the row that survives.
    """
    place = pc.index_in(settled["cluster_ref"], near["ref"].combine_chunks(), skip_nulls=True)
    matched, similarity = (near[c].combine_chunks().take(place) for c in ("matched_id", "similarity"))
    clusters = pc.coalesce(matched, settled["cluster"])
    kept = pc.equal(settled["sample_id"], clusters)
    copies = pc.if_else(kept, pa.scalar(None, pa.float64()), 1.0)
    reasons = pc.if_else(kept, 0, pc.if_else(pc.is_valid(place), 2, 1))
    lists = pa.array([[], *([code] for code in REASONS)], pa.list_(pa.string()))
    columns = {
        "sample_id": settled["sample_id"],
        "cluster": clusters,
        "survivor": kept,
        "matched_id": pc.if_else(kept, pa.scalar(None, pa.string()), clusters),
        "similarity": pc.coalesce(similarity, copies),
        "kept": kept,
        "reasons": lists.take(reasons),
    }
    return schemas.conform(pa.record_batch(columns), schemas.DEDUP)
