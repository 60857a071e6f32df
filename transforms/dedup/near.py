"""Near duplicates: which rows share a band of their MinHash signatures, and which survive (RULES §2).

Rows are ranked by quality, then by sample id. In that order each is compared with the survivors before it that
share a band with it, by the Jaccard similarity of their shingle sets; it is a duplicate of the most similar one
that is similar enough. So every dropped row is as near as that to a row that survives, and nothing depends on how
the rows are cut into parts or ordered in them. docs/decisions/007-near-duplicates.md tells the reasons.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.arrays import Array
from transforms.core import arrow_files
from transforms.core.parts import Reads
from transforms.dedup import minhash, near_kernel
from transforms.dedup.config import NearConfig
from transforms.text.keys.keys import key_texts

TEXTS: Reads = {"samples": ["modality"], "clean": ["clean_text", "kept"]}


NEAR = pa.schema([("ref", pa.int64()), ("matched_id", pa.string()), ("similarity", pa.float64())])
_ROW_BITS = 32  # of a ref


def band(number: int) -> str:
    """Returns the name of the column of a band."""
    return f"band_{number:03d}"


def _texts(batch: pa.RecordBatch) -> pa.LargeStringArray:
    """Returns the texts of rows that may be near duplicates; empty for media, and for rows dropped before."""
    kept = pc.and_(pc.fill_null(batch["clean.kept"], False), pc.equal(batch["samples.modality"], "text"))
    return pc.if_else(pc.fill_null(kept, False), batch["clean.clean_text"], pa.scalar("", pa.large_string()))


def sign(batch: pa.RecordBatch, config: NearConfig) -> pa.RecordBatch:
    """Returns `shingles` (0 for a row that is no near duplicate of anything) and the hash of each band."""
    keys = key_texts(_texts(batch))
    bands, counts = minhash.signatures(keys, config.ngram, config.bands, config.rows, config.seed)
    columns = {band(k): pa.array(np.ascontiguousarray(bands[:, k])) for k in range(config.bands)}
    return pa.record_batch({"shingles": pa.array(counts), **columns})


def shared(hashes: Array, refs: Array) -> pa.RecordBatch:
    """Returns label and ref of the rows whose band another row has too: equal labels follow each other."""
    order = np.lexsort((refs, hashes))
    hashes, refs = hashes[order], refs[order]
    taken = np.zeros(len(hashes), np.bool_)
    again = hashes[1:] == hashes[:-1]
    taken[1:] |= again
    taken[:-1] |= again
    return pa.record_batch({"label": pa.array(hashes[taken]), "ref": pa.array(refs[taken])})


def by_part(refs: Array) -> Iterator[tuple[int, Array]]:
    """Yields (number of a part, places of its rows) of sorted `refs`."""
    numbers, places = refs >> _ROW_BITS, refs & ((1 << _ROW_BITS) - 1)
    found, starts = np.unique(numbers, return_index=True)
    ends = [*starts.tolist(), len(refs)]
    yield from ((int(number), places[ends[k] : ends[k + 1]]) for k, number in enumerate(found))


class Links(NamedTuple):
    """Rows that share a band with others, and which bands those are."""

    refs: Array  # (n,) int64, sorted
    groups: Array  # (e,) int64, sorted: numbers of bands that several rows share
    members: Array  # (e,) int64: indices into refs


def link(bands: Iterable[pa.RecordBatch]) -> Links:
    """Returns the links of all `shared` batches; a label is unique in its batch, and rows of one are one group."""
    groups, refs, count = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for batch in bands:
        labels = batch["label"].to_numpy()
        starts = np.ones(len(labels), np.bool_)
        starts[1:] = labels[1:] != labels[:-1]
        groups.append(count + np.cumsum(starts) - 1)
        refs.append(batch["ref"].to_numpy())
        count += int(starts.sum())
    found, members = np.unique(np.concatenate(refs), return_inverse=True)
    return Links(found, np.concatenate(groups), members.astype(np.int64))


def bundle(links: Links, rows: pa.Table, max_shingles: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows of `links` (ref, sample_id, groups), cut where no band is shared, best first in each cluster.

    `rows` holds quality, sample_id and shingles of each row of the links; a bundle has at most `max_shingles`,
    or the rows of one component that has more.
    """
    parents = np.arange(len(links.refs))
    near_kernel.join(links.groups, links.members, parents)
    near_kernel.roots(parents)
    ranked = rows.append_column("component", pa.array(parents))
    keys = [("component", "ascending"), ("quality", "descending"), ("sample_id", "ascending")]
    order = pc.sort_indices(ranked, sort_keys=keys).to_numpy()
    groups = _by_row(links, order)
    starts = np.flatnonzero(np.diff(parents[order], prepend=-1))
    for first, last in _cuts(starts, np.cumsum(rows["shingles"].to_numpy()[order]), max_shingles):
        taken = pa.array(np.arange(first, last))
        ids = rows["sample_id"].combine_chunks().take(pa.array(order[first:last]))
        columns = {"ref": pa.array(links.refs[order[first:last]]), "sample_id": ids, "groups": groups.take(taken)}
        yield pa.record_batch(columns)


def _by_row(links: Links, order: Array) -> pa.ListArray:
    """Returns (n,) lists of groups, a list per row, in the `order` of rows."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = place[links.members]
    ends = np.zeros(len(order) + 1, np.int64)
    ends[1:] = np.cumsum(np.bincount(rows, minlength=len(order)))
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(links.groups[np.argsort(rows, kind="stable")]))


def _cuts(starts: Array, total: Array, most: int) -> Iterator[tuple[int, int]]:
    """Yields (first, last) row of bundles that begin at some of `starts`; `total` is a running sum over rows."""
    first, count = 0, len(total)
    while first < count:
        before = int(total[first - 1]) if first else 0
        fits = np.searchsorted(total, before + most, side="right")
        later = starts[starts > first]
        inside = later[later <= fits]
        last = count if fits >= count else int(inside[-1] if len(inside) else later[0] if len(later) else count)
        yield first, last
        first = last


class Found(NamedTuple):
    """The near duplicates of one bundle."""

    rows: pa.RecordBatch  # ref (sorted), matched_id, similarity
    full: int  # how many times a survivor found a band with `max_leaders` others


def match(rows: pa.RecordBatch, sets: pa.LargeListArray, config: NearConfig) -> Found:
    """Returns which rows of a bundle duplicate a better one; `sets` holds their shingles, in their order."""
    lists = rows["groups"]
    groups, sizes = np.unique(lists.flatten().to_numpy(), return_inverse=False, return_counts=True)
    dense = np.searchsorted(groups, lists.flatten().to_numpy())
    bounds = np.zeros(len(groups) + 1, np.int64)
    bounds[1:] = np.cumsum(np.minimum(sizes, config.max_leaders))
    count = len(rows)
    matched, similarity = np.full(count, -1), np.zeros(count)
    scratch = (np.zeros(bounds[-1], np.int64), bounds, np.zeros(len(groups), np.int64), np.zeros(count, np.int64))
    full = near_kernel.choose(
        dense, _offsets(lists), *scratch, sets.flatten().to_numpy(), _offsets(sets), config.min_similarity,
        matched, similarity,
    )  # fmt: skip
    lost = np.flatnonzero(matched >= 0)
    columns = {
        "ref": rows["ref"].take(pa.array(lost)),
        "matched_id": rows["sample_id"].take(pa.array(matched[lost])),
        "similarity": pa.array(similarity[lost]),
    }
    found = pa.table(columns).sort_by("ref").combine_chunks()
    return Found(found.to_batches()[0] if len(lost) else pa.record_batch(columns), int(full))


def _offsets(lists: pa.LargeListArray) -> Array:
    """Returns (n + 1,) int64, from 0 on."""
    found = lists.offsets.to_numpy()
    return np.asarray(found - found[0])


def store(batch: pa.RecordBatch, places: Array, config: NearConfig) -> pa.RecordBatch:
    """Returns the rows `places` of a part as (place, shingles)."""
    texts = _texts(batch).take(pa.array(places))
    return pa.record_batch({"place": pa.array(places), "shingles": minhash.shingles(key_texts(texts), config.ngram)})


def gather(refs: Array, names: Sequence[str], folder: Path) -> pa.LargeListArray:
    """Returns the shingles of `refs`, in their order, from the stored parts that hold them."""
    order = np.argsort(refs)
    pieces = []
    for number, places in by_part(refs[order]):
        stored = arrow_files.read(folder / f"{names[number]}{arrow_files.SUFFIX}")
        pieces.append(stored["shingles"].take(pa.array(np.searchsorted(stored["place"].to_numpy(), places))))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(back))


def lookup(refs: pa.Int64Array, found: Iterable[pa.RecordBatch]) -> pa.Table:
    """Returns those rows of the `found` batches whose ref is one of `refs`."""
    wanted = np.unique(pc.drop_null(refs).to_numpy())
    taken = [pa.Table.from_batches([], NEAR)]
    for batch in found:
        there = batch["ref"].to_numpy()
        places = np.searchsorted(there, wanted)
        inside = places[places < len(there)]
        hits = pa.array(inside[there[inside] == wanted[: len(inside)]])  # both are sorted: what is past the end is last
        taken.append(pa.table([column.take(hits) for column in batch.columns], schema=NEAR))
    return pa.concat_tables(taken)
