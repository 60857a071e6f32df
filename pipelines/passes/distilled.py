"""The distilled scorer of the stage `lqs`: fitted on the rows that have gradients, for those outside the proxy sample.

Reads: what `lqs` reads, and data/tokens.
Writes: data/lqs/distilled.safetensors and distilled.json, its card; neither is there where no row needs it.
Guarantees: the same rows and params make the same scorer, whatever the parts; it is fitted again only
when one of these changes.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.core import progress, stage
from pipelines.core.project import Project
from scoring.core import files, hashing
from scoring.lqs import distill
from scoring.lqs.distill import Distilled, Floats
from scoring.lqs.formula import lqs
from transforms.core import parts
from transforms.lqs import distilled
from transforms.lqs.config import LqsSection
from transforms.lqs.transform import read_gradients

_NAME, _CARD = "distilled.safetensors", "distilled.json"
_FORMULA = ("formula", "learnability_weight", "quality_weight")


class Fitted(NamedTuple):
    """The scorer, and the digest of its file."""

    scorer: Distilled
    digest: str


def prepare(project: Project, config: LqsSection, reads: parts.Reads, *, mean_norm: float) -> Fitted | None:
    """Returns the scorer of the rows outside the proxy sample, from disk where nothing has changed; None without any.

    Raises:
      ConfigError: the LQS cannot be predicted as well as `lqs.distill` demands.
    """
    folder = project.folder("lqs")
    left_out, measured = _counts(project, config, reads, mean_norm)
    if not left_out:
        for name in (_CARD, _NAME):
            (folder / name).unlink(missing_ok=True)
        return None
    wide = distilled.with_features(reads)
    key = _key(project, config, wide)
    found = None if project.force else _stored(folder, key)
    if found is None:
        progress.say(f"lqs: predicting scores for {left_out} rows without gradients, from {measured} rows with them")
        ratio = min(1.0, config.distill.max_rows / max(measured, 1))
        found = _write(folder, key, _fit(project, config, wide, mean_norm, ratio))
    return found


def _counts(project: Project, config: LqsSection, reads: parts.Reads, mean_norm: float) -> tuple[int, int]:
    """Returns how many kept rows the proxy sample left out, and how many have an LQS."""
    left_out = measured = 0
    for batch in _batches(project, reads):
        left_out += int(distilled.outside(batch).sum())
        measured += int(np.isfinite(_measured(batch, config, mean_norm)).sum())
    return left_out, measured


def _batches(project: Project, reads: parts.Reads) -> Iterator[pa.RecordBatch]:
    return parts.iter_columns(project.data, parts.names(project.folder("samples")), reads)


def _measured(batch: pa.RecordBatch, config: LqsSection, mean_norm: float) -> Floats:
    return lqs(read_gradients(batch), config, mean_norm=mean_norm).lqs


def _fit(project: Project, config: LqsSection, wide: parts.Reads, mean_norm: float, ratio: float) -> Distilled:
    """Returns the scorer fitted to a seeded share `ratio` of the rows that have an LQS."""
    from threadpoolctl import threadpool_limits

    width = next(filter(None, map(distilled.embedding_width, _batches(project, {"quality": ["embedding"]}))), 0)
    features, scores, ids = list[Floats](), list[Floats](), list[str]()
    for batch in _batches(project, wide):
        values = _measured(batch, config, mean_norm)
        drawn = hashing.chosen(batch["sample_id"].to_pylist(), ratio, config.distill.seed, "fit") & np.isfinite(values)
        rows = batch.filter(pa.array(drawn))
        features.append(distilled.features(rows, width))
        scores.append(values[drawn])
        ids += rows["sample_id"].to_pylist()
    with threadpool_limits(1):  # on a busy machine, threads that wait for each other take ten times as long
        return distill.fit(np.concatenate(features), np.concatenate(scores), ids, config.distill, width=width)


def _key(project: Project, config: LqsSection, wide: parts.Reads) -> str:
    """Returns the digest of all that the scorer depends on."""
    values = {"distill": asdict(config.distill), **{name: getattr(config, name) for name in _FORMULA}}
    return stage.fingerprint("pipelines.passes.distilled", values, [stage.corpus_digest(project, wide)])


def _stored(folder: Path, key: str) -> Fitted | None:
    """Returns the scorer on disk if it is whole and of the same `key`."""
    try:
        card = json.loads((folder / _CARD).read_bytes())
        digest = files.file_digest(folder / _NAME)
        if (card["key"], card["digest"]) != (key, digest):
            return None
        return Fitted(Distilled.from_bytes((folder / _NAME).read_bytes()), digest)
    except (OSError, ValueError, KeyError):
        return None


def _write(folder: Path, key: str, scorer: Distilled) -> Fitted:
    content = scorer.to_bytes()
    files.write_atomic(folder / _NAME, lambda temporary: Path(temporary).write_bytes(content))
    digest = files.file_digest(folder / _NAME)
    files.write_json(folder / _CARD, {**scorer.card, "key": key, "digest": digest})
    return Fitted(scorer, digest)
