"""How a stage runs: which parts are left to do, the Beam pipeline, conservation, metrics, exit code."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.core import deps, exits, progress, trust
from pipelines.core.options import make_pipeline, spread
from pipelines.core.project import Project, locked, open_project
from scoring.core import files
from scoring.core.errors import DataError
from scoring.core.types import Record
from transforms.core import parts

if TYPE_CHECKING:  # Beam is loaded when a part is to be computed
    import apache_beam as beam
    import pyarrow as pa

Run = Callable[[Project], None]

ORDER = (
    "sample", "ingest", "clean", "dedup", "quality", "tokens", "reference", "gradients", "static", "lqs",
    "plan", "shard", "report",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """A folder of parts beside `samples`: what it holds, and all that decides its bytes."""

    folder: str
    schema: pa.Schema
    reads: parts.Reads  # the columns that it is made from
    code: str  # the module that makes it; what that imports counts too (`deps.code_version`)
    config: object  # the params that decide its bytes
    depends: Sequence[str] = ()  # digests of inputs that are not parts: corpus statistics, a model, a tool's version
    own: Mapping[str, str] = field(default_factory=dict)  # part name → digest of what that part alone depends on
    also: Mapping[str, pa.Schema] = field(default_factory=dict)  # further folders that the sink writes, and of what

    @property
    def folders(self) -> tuple[str, ...]:
        """Every folder that it writes."""
        return (self.folder, *self.also)


def fingerprint(code: str, config: object, inputs: Sequence[object]) -> str:
    """Returns the digest of a module's code, its parameters and its inputs' digests."""
    values = asdict(config) if is_dataclass(config) and not isinstance(config, type) else config
    return parts.digest(deps.code_version(code), values, list(inputs))


def tasks(project: Project, sidecar: Sidecar) -> list[parts.Task]:
    """Returns one task per part of `samples`: its name, and the fingerprint it will carry."""
    return [_task(project, sidecar, name) for name in parts.names(project.folder("samples"))]


def _task(project: Project, sidecar: Sidecar, name: str) -> parts.Task:
    read = parts.contents(project.data, name, sidecar.reads)
    inputs = [*sidecar.depends, sidecar.own.get(name), str(sidecar.schema), *read]
    return parts.Task(name, fingerprint(sidecar.code, sidecar.config, inputs))


def corpus_digest(project: Project, reads: parts.Reads) -> str:
    """Returns the digest of the columns `reads` of every part of `samples` that has rows."""
    names = [n for n in parts.names(project.folder("samples")) if has_rows(project, n)]
    return parts.digest([parts.contents(project.data, name, reads) for name in names])


def map_parts(
    project: Project, sidecar: Sidecar, transform: beam.PTransform, sink: beam.PTransform | None = None
) -> None:
    """Writes `sidecar`: each part of what it reads, through `transform`, to a part of its schema.

    Parts with a matching fingerprint are skipped, stale parts are removed, and at the end every part of
    `samples` has a sidecar part with the same sample ids in the same order.

    Raises:
      DataError: a part is missing or holds other rows than its samples.
    """
    wanted = tasks(project, sidecar)
    write_parts(project, sidecar, wanted, transform, sink)
    for folder in sidecar.folders:
        _verify(project, project.folder(folder), wanted)


def write_parts(
    project: Project,
    sidecar: Sidecar,
    wanted: Sequence[parts.Task],
    transform: beam.PTransform,
    sink: beam.PTransform | None = None,
) -> None:
    """Writes those of the parts `wanted` that are not done, and removes strays."""
    folders = [project.folder(f) for f in sidecar.folders]
    for folder in folders:
        parts.remove_strays(folder, [t.name for t in wanted])
    left = {t.name for folder in folders for t in trust.undone(folder, wanted)}
    todo = [t for t in wanted if project.force or t.name in left]
    progress.say(f"{sidecar.folder}: {len(todo)} of {len(wanted)} parts to do")
    with progress.watch(sidecar.folder, folders[0], {t.name for t in todo}):
        rows = write_empty(project, sidecar, todo)
        _run(project, rows, sidecar.reads, transform, sink or _sink(folders[0], sidecar.schema))


def write_empty(project: Project, sidecar: Sidecar, todo: Sequence[parts.Task]) -> list[parts.Task]:
    """Writes those of `todo` that have no rows, for which no engine or model is loaded; returns the others."""
    empty = [t for t in todo if not has_rows(project, t.name)]
    for task in empty:
        for folder, schema in {**sidecar.also, sidecar.folder: sidecar.schema}.items():
            part = parts.Part(task.name, task.fingerprint, parts.empty(schema))
            parts.write_part(project.folder(folder), part, schema)
    return [t for t in todo if t not in empty]


def has_rows(project: Project, name: str) -> bool:
    """Returns whether part `name` of `samples` has any rows; one file of rejects alone leaves a part without."""
    return parts.Footer(project.folder("samples") / name).rows > 0


def _sink(target: Path, schema: pa.Schema) -> beam.PTransform:
    from transforms.core import part_io

    return part_io.WriteParts(target, schema)


def _run(
    project: Project, todo: Sequence[parts.Task], reads: parts.Reads, transform: beam.PTransform, write: beam.PTransform
) -> None:
    """Runs read → transform → write over the tasks `todo`; returns when all are on disk."""
    if not todo:
        return
    from transforms.core import part_io

    with make_pipeline(project.runtime) as pipeline:
        (
            spread(pipeline, todo, parts.Task, project.runtime.engine)
            | "ReadParts" >> part_io.ReadParts(project.data, reads)
            | "Transform" >> transform
            | "WriteParts" >> write
        )


def _verify(project: Project, target: Path, wanted: Sequence[parts.Task]) -> None:
    left = {t.name for t in trust.undone(target, wanted)}
    for task in wanted:
        sample, written = parts.Footer(project.folder("samples") / task.name), parts.Footer(target / task.name)
        if task.name in left or written.meta.get("ids") != sample.meta.get("ids"):
            raise DataError(
                f"conservation is broken: {written.rows} rows written for {sample.rows} samples, or their ids differ",
                where=str(written.path),
                remedy="rerun the stage with --force; if it persists, report it",
            )


def write_metrics(project: Project, name: str, values: Record) -> None:
    """Writes `metrics/<name>.json`: numbers only a change of data or params can change."""
    files.write_json(project.metrics(name), dict(values))


def main(run: Run, name: str, argv: Sequence[str] | None = None) -> int:
    """Runs one stage from the command line; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog=f"python -m pipelines.{name}", epilog=f"example: python -m pipelines.{name} --params params.yaml"
    )
    parser.add_argument("--params", type=Path, default=Path("params.yaml"), help="the project's params file")
    parser.add_argument("--engine", help="local, processes, or the name of a Beam runner; overrides runtime.engine")
    parser.add_argument("--workers", type=int, help="number of worker processes (engine `processes`)")
    parser.add_argument("--force", action="store_true", help="recompute finished parts")
    flags = parser.parse_args(argv)
    options = {"force": flags.force, "engine": flags.engine, "workers": flags.workers}
    return exits.guard(name, lambda: run_one(run, flags.params, **options))


def run_one(run: Run, path: Path, *, force: bool, engine: str | None, workers: int | None) -> Project:
    """Runs one stage of the project of params file `path` under the project's lock; returns the project."""
    project = open_project(path, force=force, engine=engine, workers=workers)
    with locked(project):
        run(project)
    return project
