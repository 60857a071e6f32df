"""`gradsift run`: the stages one after another in this process, the same work as `dvc repro`."""

import importlib
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pipelines.core import progress, stage, unchanged
from pipelines.core.options import LOCAL, make_pipeline
from pipelines.core.project import Project, locked, open_project
from scoring.core.errors import ConfigError
from transforms.ingest.config import IngestConfig
from transforms.readers.files import list_files


def run(path: Path, stages: Sequence[str], *, engine: str | None, workers: int | None, force: bool) -> None:
    """Runs `stages` (all that are needed when empty) of the project of params file `path`, then prints the summary.

    Raises:
      ConfigError: a name is not a stage.
    """
    unknown = sorted(set(stages) - set(stage.ORDER))
    if unknown:
        raise ConfigError(f"unknown stage: {', '.join(unknown)}", remedy=f"valid stages: {', '.join(stage.ORDER)}")
    project = open_project(path, force=force, engine=engine, workers=workers)
    with locked(project):
        run_stages(project, [s for s in stage.ORDER if s in stages] if stages else needed(project))


def needed(project: Project) -> list[str]:
    """Returns the stages of a whole run: the default corpus is generated only if a source reads it."""
    return [s for s in stage.ORDER if s != "sample" or "data/sample" in str(project.params.tree)]


def check(project: Project, stages: Sequence[str]) -> None:
    """Finds what would stop the run before it has changed anything: an unknown engine, a source of no files.

    Raises:
      ConfigError: the first such fault. Sources inside the embedded corpus may still have to be made.
    """
    if project.runtime.engine not in LOCAL or project.runtime.beam_args:
        make_pipeline(project.runtime)
    for source in project.section("ingest", IngestConfig).sources if "ingest" in stages else ():
        if source.format != "huggingface" and "data/sample" not in str(source.paths):
            list_files(project.root, source)


def _run_stage(project: Project, name: str) -> None:
    importlib.import_module(f"pipelines.{name}").run(project)


def run_stages(project: Project, stages: Sequence[str]) -> None:
    """Checks, then runs `stages` in the given order; the last stage `report` prints the summary."""
    check(project, stages)
    for name in stages:
        started = time.monotonic()
        if unchanged.run(project, name, partial(_run_stage, project, name)):
            progress.say(f"{name}: done in {progress.clock(time.monotonic() - started)}")
        else:
            progress.say(f"{name}: unchanged")
    if "report" in stages:
        from pipelines import report

        print(report.summary(project))
