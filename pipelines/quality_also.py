"""Further models of stage `quality`: their scores in a folder of their own, which goes when params name none.

Reads: data/clean, data/dedup, the models.
Writes: data/quality/also (parts).
Guarantees: a change of one entry scores all entries anew, and nothing else of the stage.
"""

import shutil
from collections.abc import Sequence

from pipelines import stage
from pipelines.also_columns import FOLDER
from pipelines.project import Project
from scoring import model_files, models
from transforms import quality_also
from transforms.quality import SCORING_FIELDS, QualityConfig

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


def run(project: Project, config: QualityConfig, models_are: Sequence[str]) -> None:
    """Scores what is not scored yet with each model, whose digests are `models_are`; without a model, removes all."""
    if not config.also:
        shutil.rmtree(project.folder(FOLDER), ignore_errors=True)
        return
    settings = {entry.name: entry.settings(config) for entry in config.also}
    stage.map_parts(
        project,
        quality_also.ScoreAlso(config, project.root, project.runtime.threads),
        module="pipelines.quality_also",
        folder=FOLDER,
        schema=quality_also.schema(config),
        reads=quality_also.READS,
        config=[
            {"name": name, **{n: getattr(own, n) for n in _FIELDS}, "dtype": models.dtype_of(own.dtype)}
            for name, own in settings.items()
        ],
        depends=models_are,
    )
