"""Gradient scores of every kept text on the checkpoints of the reference.

Definitions: docs/scoring.md. A row that an earlier stage dropped is not looked at; any other row has values, or a
note that says why it has none. Tokenizing, model and writing overlap: a thread tokenizes the next texts while the
model works, another writes the part before.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.utils.windowed_value import WindowedValue

from scoring.core import hashing
from scoring.core.prefetch import ahead
from scoring.gradients import order_gain, sketches
from scoring.gradients.scorer import Floats, Scores
from transforms.core.models import MapWithModel
from transforms.core.parts import Part, Receipt, all_kept, write_part
from transforms.core.schemas import GRADIENTS, SKETCHES, conform
from transforms.gradients.checkpoints import Checkpoint, Loaded, Recipe, Rows, token_rows
from transforms.gradients.config import GradientsConfig
from transforms.gradients.machine_load import Meter
from transforms.gradients.notes import NO_TEXT, NOT_FINITE, NOT_SAMPLED, PROXY, TOO_SHORT, ZERO

Record = dict[str, object]  # column → value; what is not named is null

CHUNK_ROWS = 1024  # tokenized ahead, and sorted by length
_VALUES = ("loss", "grad_norm", "target_cosine", "costate_dot", "costate_cosine")
_BOTH = pa.schema([*GRADIENTS, *list(SKETCHES)[1:]])


def gradients_batch(batch: pa.RecordBatch, config: GradientsConfig, loaded: Loaded, mode: str) -> pa.RecordBatch:
    """Returns the columns of `GRADIENTS` and `SKETCHES` of a batch with `clean.clean_text` and the verdicts."""
    texts, ids = _texts(batch), batch["sample_id"].to_pylist()
    records: list[Record] = [{} if text else _textless(text) for text in texts]
    inside = hashing.chosen(ids, config.proxy_ratio, config.seed, PROXY)
    with loaded.lock:
        for scorer, wanted in ((partial(score_rows, mode=mode), inside), (loss_rows, ~inside)):
            asked = [n for n, text in enumerate(texts) if text and wanted[n]]
            scored = chain.from_iterable(scorer(r, config, loaded) for r in _tokenized(texts, asked, config, loaded))
            for n, record in zip(asked, scored, strict=True):
                records[n] = record
    return _sidecar(batch["sample_id"], records)


def _textless(text: str | None) -> Record:
    return {} if text is None else {"gradient_note": NO_TEXT}


def _tokenized(
    texts: Sequence[str | None], asked: Sequence[int], config: GradientsConfig, loaded: Loaded
) -> Iterator[Rows]:
    """Yields the tokens of the texts `asked` for, a chunk at a time, the next one made while one is used."""
    spans = (asked[k : k + CHUNK_ROWS] for k in range(0, len(asked), CHUNK_ROWS))
    yield from ahead(token_rows(loaded.tokenizer, [texts[n] or "" for n in s], config.max_tokens) for s in spans)


def _sidecar(ids: pa.Array, records: Sequence[Record]) -> pa.RecordBatch:
    columns = {n: pa.array([r.get(n) for r in records], _BOTH.field(n).type) for n in _BOTH.names[1:]}
    return conform(pa.record_batch({"sample_id": ids, **columns}), _BOTH)


def score_rows(rows: Rows, config: GradientsConfig, loaded: Loaded, mode: str) -> list[Record]:
    """Returns the values of each row by column, lists over the checkpoints; or the note of a bad row."""
    scores = [
        c.scorer.score(rows.ids, exact=mode != "sketch", batch_tokens=config.batch_tokens, objective=loaded.objective)
        for c in loaded.checkpoints
    ]
    last = loaded.checkpoints[-1].model
    gains = order_gain.order_gains(
        last, rows.ids, rows.words, scores[-1].loss, batch_tokens=config.batch_tokens, objective=loaded.objective
    )
    columns = {name: np.stack(values, 1) for name, values in _columns(scores, loaded.checkpoints).items()}
    notes = _notes(scores, gains)
    kept = _kept_sketches(scores, config)
    return [
        {"gradient_note": note}
        if note
        else {
            "gradient_tokens": len(rows.ids[n]), "gradient_mode": mode, "order_gain": float(gains[n]),
            **_values(columns, n), **_sketch(kept, n),
        }
        for n, note in enumerate(notes)
    ]  # fmt: skip


def loss_rows(rows: Rows, config: GradientsConfig, loaded: Loaded) -> list[Record]:
    """Returns what a forward pass on the last checkpoint says of rows outside the proxy sample, and that they are."""
    last, none = loaded.checkpoints[-1].model, [None] * (len(loaded.checkpoints) - 1)
    losses = order_gain.losses(last, rows.ids, batch_tokens=config.batch_tokens, objective=loaded.objective)
    gains = order_gain.order_gains(
        last, rows.ids, rows.words, losses, batch_tokens=config.batch_tokens, objective=loaded.objective
    )
    finite = np.isfinite(losses) & np.isfinite(gains)
    return [
        {"gradient_note": TOO_SHORT if loss == 0 else NOT_FINITE}
        if loss == 0 or not good
        else {"gradient_note": NOT_SAMPLED, "loss": [*none, float(loss)], "order_gain": float(gain)}
        for loss, gain, good in zip(losses, gains, finite, strict=True)
    ]


def _values(columns: Mapping[str, Floats], row: int) -> Record:
    return {name: [None if np.isnan(v) else float(v) for v in found[row]] for name, found in columns.items()}


def _kept_sketches(scores: Sequence[Scores], config: GradientsConfig) -> list[tuple[sketches.Int8s, sketches.Float32s]]:
    """Returns codes (n, s) and scales (n,) of the checkpoints whose sketches are kept."""
    first = {"none": len(scores), "last": len(scores) - 1, "all": 0}[config.sketch.keep]
    return [sketches.quantize(s.sketch) for s in scores[first:] if s.sketch is not None]


def _sketch(kept: Sequence[tuple[sketches.Int8s, sketches.Float32s]], row: int) -> Record:
    if not kept:
        return {}
    return {"sketch": [codes[row].tobytes() for codes, _ in kept], "sketch_scale": [float(s[row]) for _, s in kept]}


def _columns(scores: Sequence[Scores], checkpoints: Sequence[Checkpoint]) -> dict[str, list[Floats]]:
    """Returns (n,) values per checkpoint, by column; NaN where a direction is missing or zero."""
    columns: dict[str, list[Floats]] = {name: [] for name in _VALUES}
    for s, checkpoint in zip(scores, checkpoints, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = s.dots / (s.norm[:, None] * checkpoint.norms)
        none = np.full(len(s.loss), np.nan)
        last = s.dots.shape[1] < 2
        values = (s.loss, s.norm, cosines[:, 0], none if last else s.dots[:, 1], none if last else cosines[:, 1])
        for name, value in zip(_VALUES, values, strict=True):
            columns[name].append(value)
    return columns


def _notes(scores: Sequence[Scores], gains: Floats) -> list[str | None]:
    """Returns why a row has no values, or None: a value that is not finite never reaches a sort."""
    finite, positive, silent = np.isfinite(gains), np.ones(len(gains), bool), np.ones(len(gains), bool)
    for s in scores:
        finite &= np.isfinite(s.loss) & np.isfinite(s.norm) & np.isfinite(s.dots).all(axis=1)
        positive &= s.norm > 0
        silent &= (s.loss == 0) & (s.norm == 0)
    found = np.select([silent, ~finite, ~positive], [TOO_SHORT, NOT_FINITE, ZERO], "")
    return [str(note) or None for note in found]


def unscored_batch(batch: pa.RecordBatch, note: str) -> pa.RecordBatch:
    """Returns the columns of a batch that there is no reference for: `note` beside every kept text."""
    notes = [None if t is None else note if t else NO_TEXT for t in _texts(batch)]
    return _sidecar(batch["sample_id"], [{"gradient_note": n} if n else {} for n in notes])


def _texts(batch: pa.RecordBatch) -> list[str | None]:
    """Returns the clean text of each kept row, empty where it has none; None for a row dropped before."""
    texts = pc.if_else(all_kept(batch), pc.fill_null(batch["clean.clean_text"], ""), None)
    return list(texts.to_pylist())


@dataclass
class ScoreGradients(beam.PTransform):
    """Scores parts of clean and the verdicts: columns of `GRADIENTS` and `SKETCHES`."""

    recipe: Recipe

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "ScoreGradients" >> beam.ParDo(MapWithModel(self._load, self._score))

    def _load(self) -> "_Worker":
        return _Worker(self.recipe.load(), Meter())

    def _score(self, part: Part, worker: "_Worker") -> Part:
        mode = choose_mode(self.recipe.config, worker.meter)
        return part.with_batch(gradients_batch(part.batch, self.recipe.config, worker.loaded, mode))


@dataclass(frozen=True)
class _Worker:
    loaded: Loaded
    meter: Meter


def choose_mode(config: GradientsConfig, meter: Meter) -> str:
    """Returns how the next part is scored: `auto` is exact unless others kept the machine busy since the last one."""
    if config.precision != "auto":
        return config.precision
    return "sketch" if meter.share() > config.max_load else "exact"


@dataclass
class NoteUnscored(beam.PTransform):
    """Writes `note` beside every kept text, and no values: there is no reference."""

    note: str

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "NoteUnscored" >> beam.Map(self._note)

    def _note(self, part: Part) -> Part:
        return part.with_batch(unscored_batch(part.batch, self.note))


@dataclass
class WriteGradients(beam.PTransform):
    """Writes each part into both folders, sketches first: `PCollection[Part]` → `PCollection[Receipt]`. Idempotent."""

    gradients: Path
    sketches: Path | None  # None: none are kept

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "WriteGradients" >> beam.ParDo(_WriteBehind(self.gradients, self.sketches))


class _WriteBehind(beam.DoFn):
    """Writes a part while the next one is made; a bundle ends when all of its parts are on disk."""

    def __init__(self, gradients: Path, sketches: Path | None) -> None:
        self._folders = (gradients, sketches)

    def start_bundle(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._pending: Future[Receipt] | None = None

    def process(self, part: Part) -> Iterator[Receipt]:
        yield from self._finish()
        self._pending = self._pool.submit(_write, *self._folders, part)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        from apache_beam.transforms.window import GlobalWindow

        window = GlobalWindow()
        yield from (WindowedValue(receipt, window.max_timestamp(), [window]) for receipt in self._finish())
        self._pool.shutdown()

    def _finish(self) -> list[Receipt]:
        pending, self._pending = self._pending, None
        return [pending.result()] if pending else []


def _write(gradients: Path, sketches: Path | None, part: Part) -> Receipt:
    if sketches:
        write_part(sketches, part.with_batch(part.batch.select(SKETCHES.names)), SKETCHES)
    return write_part(gradients, part.with_batch(part.batch.select(GRADIENTS.names)), GRADIENTS)
