"""The quality of parts: which rows are scored, and the verdict on them.

A row without text passes unscored; a row that an earlier stage dropped is not looked at.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from transforms.core.models import MapWithModel
from transforms.core.parts import Part, Reads, all_kept
from transforms.core.rules import verdict
from transforms.core.schemas import QUALITY
from transforms.quality import values as quality_values
from transforms.quality.config import QualityConfig
from transforms.quality.rules import RULES
from transforms.quality.scorer import RowScore, Scorer, load_scorer, score_texts

READS: Reads = {"clean": ["clean_text", "kept", *quality_values.COLUMNS], "dedup": ["kept"]}


def score_batch(batch: pa.RecordBatch, config: QualityConfig, scorer: Scorer | None) -> pa.RecordBatch:
    """Returns the quality sidecar of a batch with the columns READS."""
    alive = all_kept(batch)
    texts = pc.if_else(alive, batch["clean.clean_text"], None).to_pylist()
    rows: list[RowScore | None] = [None] * len(texts)
    if scorer:
        found = [k for k, text in enumerate(texts) if text]
        told = quality_values.values(batch.take(pa.array(found, pa.int64())), [texts[k] for k in found])
        for k, score in zip(found, score_texts([texts[k] for k in found], told, config, scorer), strict=True):
            rows[k] = score
    columns = {n: pa.array([s and getattr(s, n) for s in rows], QUALITY.field(n).type) for n in RowScore._fields}
    values = columns["quality"].to_numpy(zero_copy_only=False)
    kept, reasons = verdict({r.code: r.drops(values, config) for r in RULES}, len(rows))
    kept, reasons = pc.if_else(alive, kept, None), pc.if_else(alive, reasons, None)
    return pa.record_batch({"sample_id": batch["sample_id"], **columns, "kept": kept, "reasons": reasons})


@dataclass
class Score(beam.PTransform):
    """Scores parts of clean and dedup into quality sidecars. `head` is a fitted head, or None."""

    config: QualityConfig
    root: Path
    threads: int
    head: bytes | None

    def expand(self, parts: beam.PCollection) -> beam.PCollection:
        load = partial(load_scorer, self.config, self.root, self.threads, self.head)
        return parts | "ScoreQuality" >> beam.ParDo(MapWithModel(load, self._score))

    def _score(self, part: Part, scorer: Scorer | None) -> Part:
        return part.with_batch(score_batch(part.batch, self.config, scorer))
