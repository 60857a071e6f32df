"""Additional models of stage `quality`: their scores are in a separate folder, removed if there are none.

Reads: data/clean, data/dedup, the models.
Writes: data/quality/also (parts); returns their part of metrics/quality.json.
Guarantees: a change of one entry rescores all entries, and nothing else of the stage.
"""

import shutil
from collections.abc import Sequence

from pipelines.core import stage, tables
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from pipelines.quality_models.also_columns import FOLDER
from scoring.core.types import JsonObject
from scoring.models import files as model_files
from scoring.models import load as models
from transforms.quality import also as quality_also
from transforms.quality.also_config import AlsoModel
from transforms.quality.config import SCORING_FIELDS, QualityConfig

_FIELDS = tuple(n for n in SCORING_FIELDS if n not in ("head", "min_quality"))  # neither changes these scores


def digests(project: Project, config: QualityConfig) -> list[str]:
    """Returns the digest of each model of `config.also`.

    Raises:
      ToolError: one is not on this machine; it names the entry.
    """
    found = []
    for entry in config.also:
        with quality_also.named(entry):
            found.append(model_files.digest(entry.model, project.root))
    return found


def run(project: Project, config: QualityConfig, models_are: Sequence[str]) -> JsonObject:
    """Scores what is not scored yet with each model, whose digests are `models_are`; without a model, removes all.

    Returns the metrics of each model, by name.
    """
    if not config.also:
        shutil.rmtree(project.folder(FOLDER), ignore_errors=True)
        return {}
    settings = {entry.name: entry.settings(config) for entry in config.also}
    sidecar = stage.Sidecar(
        folder=FOLDER,
        schema=quality_also.schema(config),
        reads=quality_also.READS,
        code="pipelines.quality_models.also",
        config=[
            {"name": name, **{n: getattr(own, n) for n in _FIELDS}, "dtype": models.dtype_of(own.dtype)}
            for name, own in settings.items()
        ],
        depends=models_are,
    )
    stage.map_parts(project, sidecar, quality_also.ScoreAlso(config, project.root, project.runtime.threads))
    with tables.connect(project) as connection:
        return {entry.name: _summary(project, connection, entry) for entry in config.also}


def _summary(project: Project, connection: Connection, entry: AlsoModel) -> JsonObject:
    """Returns the number of rows a model scored, quartiles of its scores, their mean coverage, and rows by label."""
    score, label, coverage = (f'"{name}"' for name in entry.columns)
    sql = f"""
        SELECT count({score}), quantile_cont({score}, [0, 0.25, 0.5, 0.75, 1]), avg({coverage}),
               map_from_entries((SELECT list((label, n) ORDER BY label) FROM (
                   SELECT {label} AS label, count(*) AS n FROM also WHERE {label} IS NOT NULL GROUP BY 1)))
        FROM also"""
    source = tables.scan(project.folder(FOLDER))
    ((rows, quartiles, covered, labels),) = connection.sql(f"WITH also AS (FROM {source}) {sql}").fetchall()
    return {
        "model": entry.model, "good_labels": list(entry.good_labels), "rows": rows,
        "quartiles": [round(q, 6) for q in quartiles or []], "coverage": covered and round(covered, 6),
        "by_label": dict(labels or {}),
    }  # fmt: skip
