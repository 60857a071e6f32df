"""The final score over parts: gradients and static score in, LQS, mix and difficulty band out."""

from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scoring.lqs.config import LqsConfig
from scoring.lqs.distill import Distilled
from scoring.lqs.formula import BANDS, Gradients, Moments, discounted, log_norm, lqs, mix, relative_norm, z_score
from transforms.core import parts
from transforms.core.parts import Part
from transforms.core.schemas import LQS
from transforms.gradients.notes import NOT_SAMPLED
from transforms.lqs import distilled

Floats = npt.NDArray[np.float64]
Key = tuple[float, str]  # score and sample id: the order of the bands

COLUMNS = ("grad_norm", "target_cosine", "costate_dot", "costate_cosine")


@dataclass(frozen=True)
class Corpus:
    """Corpus statistics needed to score one row."""

    mean_norm: float  # of the gradients at the last checkpoint
    static: Moments
    lqs: Moments
    log_norm: Moments
    band_ends: tuple[Key | None, Key | None]  # the last rows of base and of reinforcement


@dataclass(frozen=True)
class Scored:
    """The scores of the kept rows of a batch, each (n,), NaN where a row has none."""

    learnability: Floats
    quality: Floats
    lqs: Floats
    relative_norm: Floats
    lqs_z: Floats
    score: Floats


def read_gradients(batch: pa.RecordBatch) -> Gradients:
    """Returns the gradients of the kept rows, (n, T); NaN rows where there are none."""
    kept = parts.all_kept(batch).to_numpy(zero_copy_only=False)
    columns = [batch[f"gradients.{c}"] for c in COLUMNS]
    checkpoints = max(int(_lengths(c).max(initial=0)) for c in columns)
    tokens = parts.floats(batch["gradients.gradient_tokens"])
    return Gradients(np.where(kept, tokens, np.nan), *(_matrix(c, kept, checkpoints) for c in columns))


def _lengths(lists: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False), np.int64)


def _matrix(lists: pa.Array, kept: npt.NDArray[np.bool_], width: int) -> Floats:
    """Returns (n, width): the lists of the kept rows; NaN for null, infinite, and lists of another length."""
    matrix = np.full((len(lists), width), np.nan)
    rows = np.flatnonzero(kept & (_lengths(lists) == width))
    flat = pc.list_flatten(lists.take(pa.array(rows, pa.int64()))).to_numpy(zero_copy_only=False)
    matrix[rows] = np.asarray(flat, np.float64).reshape(len(rows), width)
    matrix[np.isinf(matrix)] = np.nan
    return matrix


def read_static(batch: pa.RecordBatch) -> Floats:
    """Returns (n,) the static score of the kept rows, NaN elsewhere."""
    kept = parts.all_kept(batch).to_numpy(zero_copy_only=False)
    return np.where(kept, parts.floats(batch["static.static_score"]), np.nan)


def mix_batch(batch: pa.RecordBatch, config: LqsConfig, corpus: Corpus, scorer: Distilled | None = None) -> Scored:
    """Returns the scores of `batch` before they are cut into bands.

    With a `scorer`, the LQS of rows outside the proxy sample is predicted; their norm counts as the mean.
    """
    gradients = read_gradients(batch)
    found = lqs(gradients, config, mean_norm=corpus.mean_norm)
    guess = distilled.predicted(batch, scorer) if scorer else np.full(batch.num_rows, np.nan)
    score = np.where(np.isnan(guess), found.lqs, guess)
    norm_z = z_score(np.where(np.isnan(found.lqs), np.nan, log_norm(gradients)), corpus.log_norm, clip=config.clip)
    norm_z = np.where(np.isnan(guess), norm_z, 0.0)
    lqs_z = discounted(z_score(score, corpus.lqs, clip=config.clip), norm_z, config)
    static_z = z_score(read_static(batch), corpus.static, clip=config.clip)
    return Scored(
        learnability=found.learnability,
        quality=found.quality,
        lqs=score,
        relative_norm=np.where(np.isnan(found.lqs), np.nan, relative_norm(gradients, mean_norm=corpus.mean_norm)),
        lqs_z=lqs_z,
        score=mix(static_z, lqs_z, alpha=config.alpha),
    )


def score_batch(
    batch: pa.RecordBatch, config: LqsConfig, corpus: Corpus, scorer: Distilled | None = None
) -> pa.RecordBatch:
    """Returns `LQS`: scores, band and note of the kept rows, nulls for the rest."""
    scored = mix_batch(batch, config, corpus, scorer)
    columns = {
        "sample_id": batch["sample_id"],
        "learnability": _nullable(scored.learnability),
        "gradient_quality": _nullable(scored.quality),
        "lqs": _nullable(scored.lqs),
        "lqs_z": _nullable(scored.lqs_z),
        "score": _nullable(scored.score),
        "band": pa.array(_bands(scored.score, batch["sample_id"].to_pylist(), corpus), pa.string()),
        "high_value": pa.array(scored.relative_norm > config.high_value, pa.bool_(), mask=np.isnan(scored.score)),
        "score_note": pa.array(_notes(batch, scored), pa.string()),
    }
    return pa.record_batch(columns, schema=LQS)


def _bands(scores: Floats, ids: Sequence[str], corpus: Corpus) -> list[str | None]:
    """Returns the band of each row: the first whose last row does not come before it, in (score, id) order."""
    ends = list(zip(BANDS, corpus.band_ends, strict=False))
    return [
        None if np.isnan(score) else next((b for b, end in ends if end and (score, i) <= end), BANDS[-1])
        for score, i in zip(scores.tolist(), ids, strict=True)
    ]


def _notes(batch: pa.RecordBatch, scored: Scored) -> list[str | None]:
    """Returns why part of a kept row's score is missing or predicted; null where all of it was measured."""
    kept = parts.all_kept(batch).to_pylist()
    rows = zip(
        kept,
        np.isnan(read_static(batch)).tolist(),
        np.isnan(scored.lqs).tolist(),
        batch["gradients.gradient_note"].to_pylist(),
        batch["gradients.grad_norm"].to_pylist(),
        strict=True,
    )
    return [_note(*row[1:]) if row[0] else None for row in rows]


def _note(no_static: bool, no_lqs: bool, note: str | None, norms: Sequence[float] | None) -> str | None:
    if no_lqs:
        why = note or ("gradient is zero or not finite" if norms else "no text")
        return f"no score: no static score, {why}" if no_static else f"static only: {why}"
    if note == NOT_SAMPLED:
        return "distilled only: no static score" if no_static else "distilled"
    return "gradients only: no static score" if no_static else None


def _nullable(values: Floats) -> pa.Array:
    return pa.array(values, pa.float64(), mask=np.isnan(values))


@dataclass
class ScoreRows(beam.PTransform):
    """Scores each part with what is known of the corpus: `PCollection[Part]` → `PCollection[Part]`."""

    config: LqsConfig
    corpus: Corpus
    scorer: Distilled | None = None  # of rows outside the proxy sample

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "ScoreRows" >> beam.Map(self._score)

    def _score(self, part: Part) -> Part:
        return part.with_batch(score_batch(part.batch, self.config, self.corpus, self.scorer))
