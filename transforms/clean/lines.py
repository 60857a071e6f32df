"""Lines that repeat: boilerplate over a source, and what rows share with other rows of the corpus.

Both are sets of 64-bit hashes over the whole corpus. A part gives its hashes to a small file that is kept as long as
the part stays; the files are added up outside of Beam; a part then looks its own lines up in the sorted result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.arrays import Array
from transforms.core import schemas, sealed
from transforms.core.models import MapWithModel
from transforms.core.parts import Part, Reads, all_kept
from transforms.text.lines import Segments, hash_lines, remove_lines

BOILERPLATE_READS: Reads = {"samples": ["source", "modality", "text"]}

# Of one part, not of its rows: which line occurs in which document. A null line denotes the document itself.
LINE_DOCUMENTS = pa.schema([("source", pa.string()), ("document", pa.uint64()), ("line", pa.uint64())])
# Of the corpus: the lines that are boilerplate, how many of the source's documents have them, and how they read.
BOILERPLATE = pa.schema(
    [
        ("source", pa.string()),
        ("line", pa.uint64()),
        ("documents", pa.int64()),
        ("source_documents", pa.int64()),
        ("text", pa.string()),
    ]
)
# Of one part: every line and paragraph of its kept rows, and in how many of them it stands.
LINE_KEYS = pa.schema([("key", pa.uint64()), ("rows", pa.int32())])
MAX_EXAMPLE_CHARS = 200


class Boilerplate(NamedTuple):
    """The boilerplate lines of every source: those of one are `hashes[low:high]`, ascending uint64."""

    hashes: Array
    bounds: Mapping[str, tuple[int, int]]


def text_rows(batch: pa.RecordBatch) -> pa.LargeStringArray:
    """Returns the texts of the rows of modality `text`, null elsewhere."""
    return pc.if_else(pc.equal(batch["samples.modality"], "text"), batch["samples.text"], None)


def line_documents(batch: pa.RecordBatch, *, min_chars: int) -> pa.RecordBatch:
    """Returns `LINE_DOCUMENTS`, sorted: the lines of at least `min_chars` characters of each distinct document.

    Documents with the same lines in the same order are one: copies of a text do not make its lines boilerplate.
    """
    hashed = hash_lines(text_rows(batch))
    sources = pc.fill_null(batch["samples.source"], "").dictionary_encode()
    names, codes = sources.dictionary, sources.indices.to_numpy()
    alive = np.flatnonzero(np.diff(hashed.lines.starts))
    order = alive[np.lexsort((hashed.documents[alive], codes[alive]))]
    first = order[_changes(codes[order], hashed.documents[order])]
    wanted = np.zeros(batch.num_rows, bool)
    wanted[first] = True
    rows = _owners(hashed.lines)
    long_enough = wanted[rows] & (hashed.lines.chars >= min_chars)
    rows, lines = _distinct(rows[long_enough], hashed.lines.hashes[long_enough])
    rows, lines = np.concatenate((first, rows)), np.concatenate((np.zeros(len(first), np.uint64), lines))
    bare = np.arange(len(rows)) < len(first)
    order = np.lexsort((lines, ~bare, hashed.documents[rows], _ranks(names)[codes[rows]]))
    rows, lines, bare = rows[order], lines[order], bare[order]
    columns = [names.take(pa.array(codes[rows])), pa.array(hashed.documents[rows]), pa.array(lines, mask=bare)]
    return pa.record_batch(columns, schema=LINE_DOCUMENTS)


def _ranks(names: pa.StringArray) -> Array:
    """Returns the place of each name in their order."""
    return np.argsort(np.argsort(np.array(names.to_pylist(), object))) if len(names) else np.empty(0, np.int64)


def _owners(segments: Segments) -> Array:
    """Returns (s,) int64: the text that each line or paragraph belongs to."""
    return np.repeat(np.arange(len(segments.starts) - 1), np.diff(segments.starts))


def _changes(*keys: Array) -> Array:
    """Returns (n,) bool: where the rows of sorted `keys` differ from the row before."""
    differs = np.any([k[1:] != k[:-1] for k in keys], axis=0)
    return np.concatenate((np.ones(min(1, len(keys[0])), bool), differs))


def _distinct(rows: Array, hashes: Array) -> tuple[Array, Array]:
    """Returns each pair of row and hash once."""
    order = np.lexsort((hashes, rows))
    rows, hashes = rows[order], hashes[order]
    new = _changes(rows, hashes)
    return rows[new], hashes[new]


def load_boilerplate(path: Path) -> Boilerplate:
    """Returns the sets in the file of `BOILERPLATE` at `path`, sorted by source and line."""
    table = sealed.read_table(path, ["source", "line"])
    sources = np.array(table["source"].to_pylist(), object)
    names = sorted(set(sources))
    lows, highs = np.searchsorted(sources, names), np.searchsorted(sources, names, side="right")
    bounds = {n: (int(low), int(high)) for n, low, high in zip(names, lows, highs, strict=True)}
    return Boilerplate(table["line"].to_numpy(), bounds)


def strip_boilerplate(
    texts: pa.LargeStringArray, sources: pa.StringArray, found: Boilerplate | None, *, remove: bool
) -> tuple[pa.LargeStringArray, pa.Int32Array]:
    """Returns `texts` without the boilerplate lines of their sources, and how many of them each text had.

    Without `remove` the texts come back as they are. The counts are null for null texts, and all null where
    nothing was looked for: `found` is None.
    """
    if found is None:
        return texts, pa.nulls(len(texts), pa.int32())
    coded = pc.fill_null(sources, "").dictionary_encode()
    limits = np.array([found.bounds.get(n, (0, 0)) for n in coded.dictionary.to_pylist()], np.int64).reshape(-1, 2)
    stripped, counts = remove_lines(texts, found.hashes, limits[coded.indices.to_numpy()])
    alive = texts.is_valid().to_numpy(zero_copy_only=False)
    return stripped if remove else texts, pa.array(counts, mask=~alive)


def example_lines(batch: pa.RecordBatch, wanted: set[int]) -> dict[int, str]:
    """Returns hash → normal form of each line of `wanted` that occurs in the columns `BOILERPLATE_READS`."""
    found: dict[int, str] = {}
    for text in text_rows(batch).drop_null().to_pylist():
        lines = [" ".join(line.split()) for line in text.replace("\r", "\n").split("\n")]
        lines = [line for line in lines if line]
        hashes = hash_lines(pa.array(lines, pa.large_string())).lines.hashes.tolist()
        found |= {h: line[:MAX_EXAMPLE_CHARS] for h, line in zip(hashes, lines, strict=True) if h in wanted}
        if len(found) == len(wanted):
            break
    return found


def _kept_texts(batch: pa.RecordBatch) -> pa.LargeStringArray:
    return pc.if_else(all_kept(batch), batch["clean.clean_text"], None)


def line_keys(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns `LINE_KEYS`, sorted, for column `clean.clean_text` of the rows that every `*.kept` column keeps."""
    hashed = hash_lines(_kept_texts(batch))
    pairs = [_distinct(_owners(s), s.hashes)[1] for s in (hashed.lines, hashed.paragraphs)]
    keys, rows = np.unique(np.concatenate(pairs), return_counts=True)
    return pa.record_batch([pa.array(keys, pa.uint64()), pa.array(rows.astype(np.int32))], schema=LINE_KEYS)


def dup_ratios(batch: pa.RecordBatch, shared: Array) -> pa.RecordBatch:
    """Returns `schemas.DEDUP_LINES` for the columns that `line_keys` reads.

    A ratio is the share of the characters of a row's lines (paragraphs) that are in those of `shared`, ascending
    uint64: the keys of two rows or more. It is 0 for a text of blank lines, null for a row that is not kept or has
    no text.
    """
    texts = _kept_texts(batch)
    hashed = hash_lines(texts)
    missing = texts.is_null().to_numpy(zero_copy_only=False)
    ratios = [pa.array(_shared_ratio(s, shared), mask=missing) for s in (hashed.lines, hashed.paragraphs)]
    return pa.record_batch([batch["sample_id"], *ratios], schema=schemas.DEDUP_LINES)


def _shared_ratio(segments: Segments, shared: Array) -> Array:
    """Returns (n,) float64."""
    rows, count = _owners(segments), len(segments.starts) - 1
    repeated = np.bincount(rows, segments.chars * _among(segments.hashes, shared), count)
    return repeated / np.maximum(np.bincount(rows, segments.chars, count), 1)


def _among(hashes: Array, shared: Array) -> Array:
    """Returns (n,) bool: which `hashes` are in the ascending `shared`, which is read sequentially."""
    keys, places = np.unique(hashes, return_inverse=True)
    at = np.searchsorted(shared, keys)
    inside = at < len(shared)
    inside[inside] = shared[at[inside]] == keys[inside]
    return inside[places]


@dataclass
class ListLines(beam.PTransform):
    """Lists which line occurs in which document: parts of `BOILERPLATE_READS` → parts of `LINE_DOCUMENTS`."""

    min_chars: int

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "ListLines" >> beam.Map(self._list)

    def _list(self, part: Part) -> Part:
        return part.with_batch(line_documents(part.batch, min_chars=self.min_chars))


@dataclass
class ListLineKeys(beam.PTransform):
    """Lists the lines and paragraphs of kept rows: parts of clean texts → parts of `LINE_KEYS`."""

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "ListLineKeys" >> beam.Map(self._list)

    def _list(self, part: Part) -> Part:
        return part.with_batch(line_keys(part.batch))


@dataclass
class MeasureSharedLines(beam.PTransform):
    """Measures what each row shares with others: parts of clean texts → parts of `schemas.DEDUP_LINES`.

    `shared` is an .npy file of ascending uint64 keys; a worker maps it and reads what its parts ask for.
    """

    shared: Path

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        load = partial(np.load, self.shared, "r")
        return items | "MeasureSharedLines" >> beam.ParDo(MapWithModel(load, self._measure))

    def _measure(self, part: Part, shared: Array) -> Part:
        return part.with_batch(dup_ratios(part.batch, shared))
