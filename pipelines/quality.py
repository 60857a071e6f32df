"""Stage `quality`: a score of every text by a BERT-like model and the values of `clean`, and which rows it keeps.

Reads: data/clean, data/dedup, the model, and the labels or the head's folder if params name one.
Writes: data/quality (parts), data/quality/head and labels.parquet (pipelines.quality_models.fit), data/quality/also
(pipelines.quality_models.also), metrics/quality.json.
Guarantees: a row's score depends on its text, the model and the head alone; a nightly increment keeps the head
(`refresh_ratio`) and scores new rows only.
"""

import sys
from collections.abc import Sequence

from pipelines.core import conserve, stage
from pipelines.core.project import Project
from pipelines.quality_models import also as quality_also
from pipelines.quality_models import fit as quality_fit
from pipelines.quality_models import head_file
from pipelines.quality_models.head_file import HeadFile
from scoring.core.types import JsonObject
from scoring.models import files as model_files
from scoring.models import load as models
from scoring.quality import head as quality_head
from transforms.core.schemas import QUALITY
from transforms.quality import transform as quality
from transforms.quality.config import FITTED, MODEL, SCORING_FIELDS, QualityConfig


def run(project: Project) -> None:
    """Fits or keeps the head, scores what is not scored yet, and writes the metrics."""
    config = project.section("quality", QualityConfig)
    model, further = model_files.digest(config.model, project.root), quality_also.digests(project, config)
    head = _head(project, config, model)
    sidecar = stage.Sidecar(
        folder="quality",
        schema=QUALITY,
        reads=quality.READS,
        code="pipelines.quality",
        config={n: getattr(config, n) for n in SCORING_FIELDS} | {"dtype": models.dtype_of(config.dtype)},
        depends=[model, head.card["head"] if head else "no head"],
    )
    score = quality.Score(config, project.root, project.runtime.threads, head.content if head else None)
    stage.map_parts(project, sidecar, score)
    also = quality_also.run(project, config, further)
    found = {**conserve.verdicts(project, "quality"), "head": _summary(config, head)}
    stage.write_metrics(project, "quality", {**found, "also": also} if also else found)


def _head(project: Project, config: QualityConfig, model: str) -> HeadFile | None:
    """Returns the head that params ask for; None for a model's own, or where there is too little to learn from."""
    if config.head == FITTED:
        found = quality_fit.prepare(project, config, model)
    else:
        found = None if config.head == MODEL else head_file.load(project.root / config.head, config, model)
    if config.head != FITTED or found is None:
        quality_fit.remove(project)
    return found


def _summary(config: QualityConfig, head: HeadFile | None) -> JsonObject:
    if head:
        return {k: v for k, v in head.card.items() if k not in ("row_ids", "key", "head")}
    if config.head == MODEL:
        return {"kind": "model", "model": config.model}
    return {
        "kind": "none",
        "model": config.model,
        "why": f"fewer than {quality_head.MIN_ROWS} good or other rows with text: no head fitted, all rows kept",
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage; returns the exit code."""
    return stage.main(run, "quality", argv)


if __name__ == "__main__":
    sys.exit(main())
