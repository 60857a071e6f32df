"""`gradsift doctor`: each check says what was found; a failure says how to fix it."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from pipelines.core.project import Project, open_project
from scoring.core.errors import ConfigError, GradsiftError, ToolError
from scoring.models import files as model_files

Check = tuple[str, Callable[[Project], str]]
MIN_FREE_BYTES = 2 * 1024**3
PACKAGES = ("apache-beam", "pyarrow", "datasets", "transformers", "torch", "dvc", "duckdb", "ffmpeg-python", "numpy")


def main(path: Path) -> None:
    """Prints one line per check; raises the worst error at the end.

    Raises:
      ConfigError: params are wrong; or the last failed check of another kind.
    """
    try:
        project = open_project(path)
    except GradsiftError:
        print("✗ params")
        raise
    print(f"✓ params      {project.params.path}: every section is valid")
    failures = [error for error in _run(project) if error]
    if failures:
        raise max(failures, key=lambda e: e.exit_code)
    print("all checks passed")


def _run(project: Project) -> Iterator[GradsiftError | None]:
    for name, check in CHECKS:
        try:
            print(f"✓ {name:<11} {check(project)}")
            yield None
        except GradsiftError as error:
            print(f"✗ {name:<11} {error}")
            yield type(error)(f"{name}: {str(error).splitlines()[0]}", remedy="see the lines above")


def _python(_: Project) -> str:
    version = sys.version.split()[0]
    if sys.version_info < (3, 11):  # noqa: UP036 (doctor is what says so)
        raise ToolError(f"Python {version} is too old", remedy="install Python 3.11 or newer, then reinstall gradsift")
    return f"Python {version}"


def _packages(_: Project) -> str:
    from importlib.metadata import PackageNotFoundError, version

    missing = []
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        remedy = "reinstall gradsift with pip; in a checkout: `make setup`"
        raise ToolError(f"not installed: {', '.join(missing)}", remedy=remedy)
    return ", ".join(found)


def _ffmpeg(_: Project) -> str:
    from transforms.decode import tool

    return f"{tool.ffmpeg()} ({tool.versions()})"


def _models(project: Project) -> str:

    named = {str(project.params.tree["quality"]["model"]), str(project.params.tree["tokens"]["tokenizer"])}
    named |= {str(entry["model"]) for entry in project.params.tree["quality"]["also"]}
    reference = str(project.params.tree["reference"]["model"])
    named |= {reference} if reference != "train" else set()
    aligner = project.params.tree["static"]["alignment"]
    named |= {str(aligner)} if aligner else set()
    return ", ".join(f"{name} at {model_files.resolve(name, project.root)}" for name in sorted(named))


def _disk(project: Project) -> str:
    free = shutil.disk_usage(project.root).free
    if free < MIN_FREE_BYTES:
        raise ToolError(f"only {free / 1e9:.1f} GB free", where=str(project.root), remedy="free at least 2 GB")
    return f"{free / 1e9:.0f} GB free at {project.root}"


def _dvc(project: Project) -> str:
    from pipelines.core import dvc_file, params

    if not (project.root / "dvc.yaml").exists():
        return "no dvc.yaml here: `gradsift run` works, `dvc repro` does not"
    unwatched = dvc_file.unwatched_sources(project.root, project.params.tree)
    if unwatched:
        raise ConfigError(
            f"`dvc repro` does not watch these sources: {', '.join(unwatched)}",
            where="dvc.yaml, stage ingest",
            remedy="run `gradsift deps`: it adds them to the deps of that stage",
        )
    unnamed = dvc_file.unnamed_sections(project.root, params.read_own(project.params.path))
    if unnamed:
        raise ConfigError(
            f"dvc.yaml watches sections that params.yaml does not name: {', '.join(unnamed)}",
            where=str(project.params.path),
            remedy=f"add a line with the name alone, such as `{unnamed[0]}:`",
        )
    return "dvc.yaml watches every source"


CHECKS: tuple[Check, ...] = (
    ("python", _python),
    ("packages", _packages),
    ("ffmpeg", _ffmpeg),
    ("models", _models),
    ("disk", _disk),
    ("dvc", _dvc),
)
