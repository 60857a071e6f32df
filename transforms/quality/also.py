"""Scores text with additional models: three columns per model, all models in one pass over the parts.

Rows are those that the main score looks at: kept by `clean` and `dedup`, with text. No row is dropped for these scores.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.errors import GradsiftError
from transforms.core.models import MapWithModel
from transforms.core.parts import Part, Reads, all_kept
from transforms.quality.also_config import AlsoModel
from transforms.quality.config import QualityConfig
from transforms.quality.scorer import RowScore, Scorer, load_scorer, score_texts

READS: Reads = {"clean": ["clean_text", "kept"], "dedup": ["kept"]}

_KINDS = (pa.float64(), pa.string(), pa.float64())  # of a model's columns


@dataclass(frozen=True)
class Scorers:
    """The loaded models by the names of their entries."""

    named: Mapping[str, Scorer]


def schema(config: QualityConfig) -> pa.Schema:
    """Returns the schema of `data/quality/also`: `sample_id`, then each model's columns in the order of params."""
    columns = [pair for entry in config.also for pair in zip(entry.columns, _KINDS, strict=True)]
    return pa.schema([("sample_id", pa.string()), *columns])


@contextmanager
def named(entry: AlsoModel) -> Iterator[None]:
    """Makes gradsift errors raised inside say which entry of `quality.also` they are about."""
    try:
        yield
    except GradsiftError as error:
        told = str(error)
        raise type(error)(told if entry.at in told else f"{entry.at}: {told}") from None


def load_scorers(config: QualityConfig, root: Path, threads: int) -> Scorers:
    """Returns the models of `config.also`, loaded.

    Raises:
      ConfigError: windows are longer than a model's, or it knows none of its good labels; names the entry.
      ToolError: a model is not on this machine; names the entry.
    """
    found = {}
    for entry in config.also:
        with named(entry):
            scorer = load_scorer(entry.settings(config), root, threads, None, at=entry.at)
        assert scorer is not None  # its head is the model's own
        found[entry.name] = scorer
    return Scorers(found)


def also_batch(batch: pa.RecordBatch, config: QualityConfig, scorers: Scorers) -> pa.RecordBatch:
    """Returns `schema(config)` of a batch with the columns READS; null for a row that is not scored."""
    texts = pc.if_else(all_kept(batch), batch["clean.clean_text"], None).to_pylist()
    columns = {"sample_id": batch["sample_id"]}
    for entry in config.also:
        scorer = scorers.named[entry.name]
        with named(entry):
            rows = _scores(texts, entry.settings(config), scorer)
        values = (
            [row.quality if row else None for row in rows],
            [row.quality_label if row and scorer.labels else None for row in rows],  # a regression has no labels
            [row.coverage if row else None for row in rows],
        )
        columns |= {n: pa.array(v, k) for n, v, k in zip(entry.columns, values, _KINDS, strict=True)}
    return pa.record_batch(columns)


def _scores(texts: list[str | None], config: QualityConfig, scorer: Scorer) -> list[RowScore | None]:
    rows: list[RowScore | None] = [None] * len(texts)
    there = [(k, text) for k, text in enumerate(texts) if text]
    scores = score_texts([text for _, text in there], np.zeros((len(there), 0)), config, scorer)
    for (k, _), score in zip(there, scores, strict=True):
        rows[k] = score
    return rows


@dataclass
class ScoreAlso(beam.PTransform):
    """Scores parts of clean and dedup with every model of `config.also`."""

    config: QualityConfig
    root: Path
    threads: int

    def expand(self, parts: beam.PCollection) -> beam.PCollection:
        load = partial(load_scorers, self.config, self.root, self.threads)
        return parts | "ScoreAlso" >> beam.ParDo(MapWithModel(load, self._score))

    def _score(self, part: Part, scorers: Scorers) -> Part:
        return part.with_batch(also_batch(part.batch, self.config, scorers))
