"""Gradient scores of every kept text on the checkpoints of the reference.

Definitions: docs/rules.md, "Gradient scores on a reference model". A row that an earlier stage dropped is
not looked at; any other row has values, or a note that says why it has none.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring import gradients, models
from scoring.config import config
from scoring.errors import ConfigError
from scoring.gradients import Floats, Scores
from scoring.reference import CHARS_PER_TOKEN
from transforms.models import MapWithModel
from transforms.parts import Part, all_kept
from transforms.schemas import GRADIENTS, conform

NO_TEXT = "no text"
TOO_SHORT = "too short"
NOT_FINITE = "non-finite gradient"
ZERO = "zero gradient"

Record = dict[str, Any]  # column → value; what is not named is null

_VALUES = ("loss", "grad_norm", "target_cosine", "costate_dot", "costate_cosine")


@config
class GradientsConfig:
    """Section `gradients` of the params."""

    layers: str
    max_tokens: int
    batch_tokens: int
    target_rows: int
    refresh_ratio: float
    seed: int

    def __post_init__(self) -> None:
        if not re.fullmatch(r"all|last:[1-9][0-9]*", self.layers):
            raise ValueError(f"layers must be all or last:K with K of at least 1, not {self.layers!r}")
        for name, least in (("max_tokens", gradients.MIN_TOKENS), ("batch_tokens", 1), ("target_rows", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if not 0 <= self.refresh_ratio <= 1:
            raise ValueError(f"refresh_ratio must lie in [0, 1], not {self.refresh_ratio}")


@dataclass(frozen=True)
class Checkpoint:
    """A loaded reference checkpoint, and the directions that gradients on it are compared with."""

    model: Any
    layers: Mapping[str, Any]
    directions: Mapping[str, Any]  # layer → (k, o, i): the target's gradient and, but for the last, the costate
    norms: Floats  # (k,)


@dataclass(frozen=True)
class Loaded:
    """All checkpoints in training order, and their tokenizer. One thread at a time: hooks hang on the models."""

    tokenizer: Any
    checkpoints: tuple[Checkpoint, ...]
    lock: Any


@dataclass(frozen=True)
class Recipe:
    """How a worker gets its models: names for `scoring.models`, and one file of directions a checkpoint."""

    config: GradientsConfig
    root: Path
    threads: int
    names: tuple[str, ...]
    directions: tuple[Path, ...]

    def load(self) -> Loaded:
        """Returns the loaded checkpoints.

        Raises:
          ConfigError: max_tokens or layers do not fit the model.
          ToolError: a model is not on this machine.
        """
        models.use_threads(self.threads)
        found = [self._checkpoint(n, p) for n, p in zip(self.names, self.directions, strict=True)]
        return Loaded(models.load_tokenizer(self.names[0], self.root), tuple(found), Lock())

    def _checkpoint(self, name: str, path: Path) -> Checkpoint:
        model = load_model(self.config, name, self.root)
        directions = read_directions(path)
        norms = sum(d.double().square().flatten(1).sum(1) for d in directions.values())
        return Checkpoint(model, gradients.scored_layers(model, self.config.layers), directions, norms.sqrt().numpy())


def load_model(config: GradientsConfig, name: str, root: Path) -> Any:
    """Returns the causal model `name`, which is known to take rows of `max_tokens`.

    Raises:
      ConfigError: it does not.
    """
    model = models.load_causal(name, root)
    longest = getattr(model.config, "max_position_embeddings", None)
    if longest and config.max_tokens > longest:
        raise ConfigError(
            f"gradients.max_tokens is {config.max_tokens}, but the reference takes {longest} tokens",
            where=name,
            remedy=f"set gradients.max_tokens to {longest} or less, or reference.context to {config.max_tokens}",
        )
    return model


def write_directions(path: str, target: Mapping[str, Any], costate: Mapping[str, Any] | None) -> None:
    """Writes the directions of one checkpoint as safetensors."""
    from safetensors.torch import save
    from torch import stack

    stacked = {n: stack([d, costate[n]] if costate else [d]) for n, d in sorted(target.items())}
    Path(path).write_bytes(save(stacked))  # an OSError on a full disk, which safetensors' own writer hides


def read_directions(path: Path) -> dict[str, Any]:
    """Returns what `write_directions` wrote, {layer: (k, o, i)}."""
    from safetensors.torch import load_file

    return dict(load_file(path))


def token_rows(tokenizer: Any, texts: Sequence[str], max_tokens: int) -> list[list[int]]:
    """Returns the first `max_tokens` tokens of each text, with the special tokens that the model begins with."""
    cut = [text[: max_tokens * CHARS_PER_TOKEN] for text in texts]
    return [record.ids[:max_tokens] for record in tokenizer.backend_tokenizer.encode_batch_fast(cut)]


def gradients_batch(batch: pa.RecordBatch, config: GradientsConfig, loaded: Loaded) -> pa.RecordBatch:
    """Returns the gradients sidecar of a batch with `clean.clean_text` and the verdicts of the filters."""
    texts = _texts(batch)
    records = [_textless(text) for text in texts]
    found = [n for n, text in enumerate(texts) if text]
    rows = token_rows(loaded.tokenizer, [text for text in texts if text], config.max_tokens)
    with loaded.lock:
        for n, record in zip(found, score_rows(rows, config, loaded), strict=True):
            records[n] = record
    return _sidecar(batch["sample_id"], records)


def _sidecar(ids: pa.Array, records: Sequence[Record]) -> pa.RecordBatch:
    columns = {n: pa.array([r.get(n) for r in records], GRADIENTS.field(n).type) for n in GRADIENTS.names[1:]}
    return conform(pa.record_batch({"sample_id": ids, **columns}), GRADIENTS)


def score_rows(rows: Sequence[gradients.Row], config: GradientsConfig, loaded: Loaded) -> list[Record]:
    """Returns the values of each row by column, a list over the checkpoints each; or the note of a bad row."""
    scores = [
        gradients.score(c.model, rows, c.layers, c.directions, batch_tokens=config.batch_tokens)
        for c in loaded.checkpoints
    ]
    columns = {name: np.stack(values, 1) for name, values in _columns(scores, loaded.checkpoints).items()}
    notes = _notes(rows, scores)
    return [{"gradient_note": notes[n]} if notes[n] else _record(len(row), columns, n) for n, row in enumerate(rows)]


def _record(tokens: int, columns: Mapping[str, Floats], row: int) -> Record:
    values = {name: [None if np.isnan(v) else float(v) for v in found[row]] for name, found in columns.items()}
    return {"gradient_tokens": tokens, **values}


def _columns(scores: Sequence[Scores], checkpoints: Sequence[Checkpoint]) -> dict[str, list[Floats]]:
    """Returns (n,) values a checkpoint, by column; NaN where a direction is missing or zero."""
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


def _notes(rows: Sequence[gradients.Row], scores: Sequence[Scores]) -> list[str | None]:
    """Returns why a row has no values, or None: a value that is not finite never reaches a sort."""
    short = np.array([len(row) < gradients.MIN_TOKENS for row in rows], bool)
    finite, positive = np.ones(len(rows), bool), np.ones(len(rows), bool)
    for s in scores:
        finite &= np.isfinite(s.loss) & np.isfinite(s.norm) & np.isfinite(s.dots).all(axis=1)
        positive &= s.norm > 0
    found = np.select([short, ~finite, ~positive], [TOO_SHORT, NOT_FINITE, ZERO], "")
    return [str(note) or None for note in found]


def target_gradient(model: Any, rows: Sequence[gradients.Row], config: GradientsConfig) -> dict[str, Any]:
    """Returns the mean gradient {layer: (o, i)} of those `rows` whose own gradient on `model` is finite."""
    layers = gradients.scored_layers(model, config.layers)
    long = [row for row in rows if len(row) >= gradients.MIN_TOKENS]
    scores = gradients.score(model, long, layers, {}, batch_tokens=config.batch_tokens)
    finite = np.isfinite(scores.loss) & np.isfinite(scores.norm)
    good = [row for row, f in zip(long, finite, strict=True) if f]
    return gradients.mean_gradient(model, good, layers, batch_tokens=config.batch_tokens)


def unscored_batch(batch: pa.RecordBatch, note: str) -> pa.RecordBatch:
    """Returns the gradients sidecar of a batch that there is no reference for: `note` beside every kept text."""
    return _sidecar(batch["sample_id"], [{"gradient_note": note} if t else _textless(t) for t in _texts(batch)])


def _texts(batch: pa.RecordBatch) -> list[str | None]:
    """Returns the clean text of each kept row, empty where it has none; None for a row dropped before."""
    texts = pc.if_else(all_kept(batch), pc.fill_null(batch["clean.clean_text"], ""), None)
    return list(texts.to_pylist())


def _textless(text: str | None) -> Record:
    return {} if text is None else {"gradient_note": NO_TEXT}


@dataclass
class ScoreGradients(beam.PTransform):
    """Scores parts of clean and the verdicts into gradients sidecars."""

    recipe: Recipe

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "ScoreGradients" >> beam.ParDo(MapWithModel(self.recipe.load, self._score))

    def _score(self, part: Part, loaded: Loaded) -> Part:
        return part.with_batch(gradients_batch(part.batch, self.recipe.config, loaded))


@dataclass
class NoteUnscored(beam.PTransform):
    """Writes `note` beside every kept text, and no values: there is no reference."""

    note: str

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "NoteUnscored" >> beam.Map(self._note)

    def _note(self, part: Part) -> Part:
        return part.with_batch(unscored_batch(part.batch, self.note))
