"""The static score over parts: token counts, raw dimensions, and their place in the corpus."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scoring.static.alignment import Aligner
from scoring.static.dimensions import DIMENSIONS
from scoring.static.scale import FALLING, TEXTUAL, Bounds, Scale, group, unit_interval
from scoring.static.text import text_readings
from scoring.static.unigrams import Unigrams, count_tokens
from transforms.core import parts, sealed
from transforms.core.models import MapWithModel
from transforms.core.parts import Part, floats
from transforms.core.schemas import STATIC, STATIC_RAW, STATIC_READINGS, TOKEN_COUNTS
from transforms.static.align import alignments
from transforms.static.media import media_length, media_readings

Floats = npt.NDArray[np.float64]


def count_batch(batch: pa.RecordBatch, *, max_tokens: int) -> pa.RecordBatch:
    """Returns how often each word and character occurs in the kept texts of `batch`, sorted."""
    texts = batch["clean.clean_text"].filter(parts.all_kept(batch)).drop_null().to_pylist()
    words, chars = count_tokens(texts, max_tokens=max_tokens)
    kinds = pa.array(["char"] * len(chars) + ["word"] * len(words), pa.string())
    tokens, counts = pa.array([*chars, *words], pa.string()), pa.array([*chars.values(), *words.values()], pa.int64())
    found = pa.record_batch([kinds, tokens, counts], TOKEN_COUNTS)
    return found.take(pc.sort_indices(found, [("kind", "ascending"), ("token", "ascending")]))


def load_unigrams(path: Path) -> Unigrams:
    """Returns the corpus frequencies in the file of `TOKEN_COUNTS` at `path`."""
    kinds, tokens, counts = (c.to_pylist() for c in sealed.read_table(path, TOKEN_COUNTS.names).columns)
    found: dict[str, dict[str, int]] = {"char": {}, "word": {}}
    for kind, token, n in zip(kinds, tokens, counts, strict=True):
        found[kind][token] = n
    totals = {kind: sum(table.values()) for kind, table in found.items()}
    found["word"].pop("", None)
    return Unigrams(words=found["word"], word_total=totals["word"], chars=found["char"], char_total=totals["char"])


@dataclass(frozen=True)
class Tools:
    """What rows are read with, loaded once a worker."""

    unigrams: Unigrams
    aligner: Aligner | None


def load_tools(unigrams: Path, load: Callable[[], Aligner | None]) -> Tools:
    """Returns the corpus frequencies of file `unigrams`, and the model that `load` gives."""
    return Tools(load_unigrams(unigrams), load())


def no_aligner() -> None:
    """Returns None: what `load_tools` loads where params name no model."""


def read_batch(
    batch: pa.RecordBatch, unigrams: Unigrams, *, max_tokens: int, aligner: Aligner | None = None
) -> pa.RecordBatch:
    """Returns `STATIC_RAW`: the raw readings of the kept rows, null where a row has none. Only an `aligner` aligns."""
    kept = parts.all_kept(batch).to_numpy(zero_copy_only=False)
    textual = np.array([m in TEXTUAL for m in batch["samples.modality"].to_pylist()], bool)
    columns = {d: np.full(batch.num_rows, np.nan) for d in (*DIMENSIONS, *STATIC_READINGS)}
    _read_texts(batch, np.flatnonzero(kept & textual), columns, unigrams, max_tokens=max_tokens)
    _read_media(batch, np.flatnonzero(kept & ~textual), columns)
    columns["predictability"][kept] = (floats(batch["gradients.order_gain"]) - _last(batch["gradients.loss"]))[kept]
    if aligner:
        for row, cosine in alignments(batch, np.flatnonzero(kept).tolist(), aligner).items():
            columns["alignment"][row] = cosine
    return pa.record_batch([batch["sample_id"], *map(_nullable, columns.values())], STATIC_RAW)


def _read_texts(
    batch: pa.RecordBatch,
    rows: npt.NDArray[np.int64],
    columns: Mapping[str, Floats],
    unigrams: Unigrams,
    *,
    max_tokens: int,
) -> None:
    picked = batch.select(
        ["clean.clean_text", "clean.language", "clean.dup_5_gram_char_ratio", "tokens.text_tokens"]
    ).take(pa.array(rows, pa.int64()))
    texts, languages, repeated, tokens = (picked.column(k) for k in range(4))
    english = [language == "en" for language in languages.to_pylist()]
    found = text_readings([t or "" for t in texts.to_pylist()], english, unigrams, max_tokens=max_tokens)
    for dimension, values in found.items():
        columns[dimension][rows] = values
    columns["length"][rows] = np.log1p(floats(tokens))
    columns["originality"][rows] = 1.0 - floats(repeated)


def _read_media(batch: pa.RecordBatch, rows: npt.NDArray[np.int64], columns: Mapping[str, Floats]) -> None:
    for row in rows.tolist():
        modality, images, audio, width, height, duration_s = (
            batch[f"samples.{c}"][row].as_py() for c in ("modality", "images", "audio", "width", "height", "duration_s")
        )
        columns["length"][row] = media_length(modality, width=width, height=height, duration_s=duration_s)
        for dimension, value in media_readings(modality, images, audio).items():
            columns[dimension][row] = value


def score_batch(batch: pa.RecordBatch, bounds: Mapping[str, Bounds], scale: Scale) -> pa.RecordBatch:
    """Returns `STATIC`: the dimensions on [0, 1] and their weighted mean, null where there is none."""
    modalities = batch["samples.modality"].to_pylist()
    english = [language == "en" for language in batch["clean.language"].to_pylist()]
    columns: dict[str, Floats] = {}
    for d in DIMENSIONS:
        groups = [group(m, d, english=e) for m, e in zip(modalities, english, strict=True)]
        raw = floats(batch[f"static/raw.{d}"])
        columns[d] = unit_interval(raw, groups, bounds.get(d, {}), falling=d in FALLING)
    columns["static_score"] = scale.mean(columns)
    return pa.record_batch([batch["sample_id"], *map(_nullable, columns.values())], STATIC)


def _last(column: pa.Array) -> Floats:
    """Returns (n,) the last value of each list, NaN for an empty or null list."""
    lasts = [values[-1] if values else None for values in column.to_pylist()]
    return np.array([np.nan if v is None else v for v in lasts], np.float64)


def _nullable(values: Floats) -> pa.Array:
    """Returns `values` with null where they are not finite."""
    return pa.array(values, pa.float64(), mask=~np.isfinite(values))


@dataclass
class CountTokens(beam.PTransform):
    """Counts the words and characters of each part: `PCollection[Part]` → `PCollection[Part]`."""

    max_tokens: int

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "CountTokens" >> beam.Map(self._count)

    def _count(self, part: Part) -> Part:
        return part.with_batch(count_batch(part.batch, max_tokens=self.max_tokens))


@dataclass
class ReadDimensions(beam.PTransform):
    """Reads the raw dimensions of each part with the corpus frequencies of file `unigrams`.

    `load` gives the model that aligns captions and pictures, or None.
    """

    unigrams: Path
    max_tokens: int
    load: Callable[[], Aligner | None]

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        load = partial(load_tools, self.unigrams, self.load)
        return items | "ReadDimensions" >> beam.ParDo(MapWithModel(load, self._read))

    def _read(self, part: Part, tools: Tools) -> Part:
        found = read_batch(part.batch, tools.unigrams, max_tokens=self.max_tokens, aligner=tools.aligner)
        return part.with_batch(found)


@dataclass
class ScoreStatic(beam.PTransform):
    """Scales each part's dimensions by the corpus quantiles `bounds` and weighs them."""

    bounds: Mapping[str, Bounds]
    scale: Scale

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "ScoreDimensions" >> beam.Map(self._score)

    def _score(self, part: Part) -> Part:
        return part.with_batch(score_batch(part.batch, self.bounds, self.scale))
