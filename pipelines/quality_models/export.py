"""The command `gradsift quality export`: the model as ONNX, in float32 and int8, and how far int8 agrees with torch.

Reads: data/samples (ids), data/clean, data/dedup, the model, and the head where params have one.
Writes: a folder: model.onnx, model.int8.onnx, model.int8.json (the agreement), config and tokenizer.
Guarantees: agreement is that of whole rows of the corpus, scored as the stage would score them.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipelines.core.project import Project, open_project
from pipelines.quality_models import fit as quality_fit
from pipelines.quality_models import folder as quality_folder
from pipelines.quality_models import head_file
from pipelines.quality_models import teacher as quality_teacher
from scoring.core.errors import ConfigError, DataError
from scoring.core.types import JsonObject
from scoring.models import files as model_files
from scoring.models import onnx_export
from transforms.quality import scorer as quality_scorer
from transforms.quality import values as quality_values
from transforms.quality.config import FITTED, MODEL, QualityConfig


def main(params: Path, out: Path, model: str | None, rows: int) -> None:
    """Writes the model that `params` name, or `model`, into `out`; prints how far int8 agrees."""
    project = open_project(params)
    config = project.section("quality", QualityConfig)
    card = export(project, replace(config, model=model or config.model, dtype="float32"), out, rows)
    print(
        f"{out / onnx_export.INT8}: Spearman {card['spearman']:.3f} against torch on {card['rows']} rows of the corpus,"
    )
    print(f"largest difference {card['largest_difference']:.3f}; {card['flipped_ratio']:.1%} cross "
          f"min_quality {card['min_quality']:g}")  # fmt: skip
    print(f"in params.yaml: quality: {{model: {quality_folder.named(project.root, out)}/{onnx_export.INT8}}}")


def export(project: Project, config: QualityConfig, out: Path, rows: int) -> JsonObject:
    """Writes the ONNX files of `config.model` into `out`; returns the agreement on `rows` rows.

    Raises:
      ConfigError: `rows` is below 1, or the model is inside `out`.
      DataError: there is no row with text, or no head to score with.
      ToolError: a package is missing, or the model cannot be exported.
    """
    if rows < 1:
        raise ConfigError(f"--rows is {rows}", where="gradsift quality export", remedy="pass at least 1")
    quality_folder.require_outside(out, config.model, project.root)
    score = _scored(project, config, rows)
    return onnx_export.export_int8(
        config.model, project.root, out, score=score, classifier=config.head == MODEL, min_quality=config.min_quality
    )


def _scored(project: Project, config: QualityConfig, rows: int) -> Callable[[str], quality_values.Floats]:
    """Returns what scores a seeded sample of the corpus by a model, as the stage does."""
    _, texts = quality_teacher.sample(project, rows, config.seed)
    if not texts:
        raise DataError(
            "no kept rows have text", where=str(project.data), remedy="run the pipeline through dedup first"
        )
    head = _head(project, config)
    told = quality_fit.text_features(project, texts)

    def score(model: str) -> quality_values.Floats:
        own = replace(config, model=model)
        scorer = quality_scorer.load_scorer(own, project.root, project.runtime.threads, head)
        assert scorer is not None
        found = quality_scorer.score_texts(told.texts, told.values, own, scorer)
        return np.array([row.quality for row in found if row], np.float64)

    return score


def _head(project: Project, config: QualityConfig) -> bytes | None:
    """Returns the head that rows are scored with; None for a classifier's own."""
    if config.head == MODEL:
        return None
    folder = head_file.folder(project) if config.head == FITTED else project.root / config.head
    return head_file.load(folder, config, model_files.digest(config.model, project.root)).content
