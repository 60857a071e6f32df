"""How a stage runs: which parts are left to do, the Beam pipeline, conservation, metrics, exit code."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.core import deps, progress
from pipelines.core.options import make_pipeline
from pipelines.core.project import Project, locked, open_project
from scoring.core import files
from scoring.core.errors import ConfigError, DataError, GradsiftError, SchemaError, ToolError
from transforms.core import parts

if TYPE_CHECKING:  # Beam is loaded when a part is to be computed
    import apache_beam as beam
    import pyarrow as pa

Run = Callable[[Project], None]

ORDER = (
    "sample", "ingest", "clean", "dedup", "quality", "tokens", "reference", "gradients", "static", "lqs",
    "plan", "shard", "report",
)  # fmt: skip


def fingerprint(module: str, config: object, inputs: Sequence[str]) -> str:
    """Returns the digest of a stage's code, its parameters and its inputs' digests."""
    values = asdict(config) if is_dataclass(config) and not isinstance(config, type) else config
    return parts.digest(deps.code_version(module), values, list(inputs))


def tasks(
    project: Project,
    *,
    module: str,
    config: object,
    reads: parts.Reads,
    depends: Sequence[str] = (),
    own: Mapping[str, str] | None = None,
) -> list[parts.Task]:
    """Returns one task a part of `samples`: its name, and the fingerprint it will carry.

    `depends` holds digests of inputs that are not parts: corpus statistics, a model, a tool's version; `own` of
    those that only one part depends on, by its name.
    """
    found = []
    for name in parts.names(project.folder("samples")):
        footers = [parts.Footer(project.folder(f) / name).digest for f in reads]
        mine = [own[name]] if own and name in own else []
        found.append(parts.Task(name, fingerprint(module, config, [*depends, *mine, *footers])))
    return found


def map_parts(
    project: Project,
    transform: beam.PTransform,
    *,
    module: str,
    folder: str,
    schema: pa.Schema,
    reads: parts.Reads,
    config: object,
    depends: Sequence[str] = (),
    own: Mapping[str, str] | None = None,
    sink: beam.PTransform | None = None,
    also: Sequence[str] = (),
) -> None:
    """Writes the sidecar `folder`: each part of `reads`, through `transform`, to a part of `schema`.

    Parts with the right fingerprint are skipped, strays are removed, and at the end every part of
    `samples` has a sidecar part with the same sample ids in the same order. A `sink` that writes further
    sidecars from the same parts names their folders in `also`.

    Raises:
      DataError: a part is missing or holds other rows than its samples.
    """
    wanted = tasks(project, module=module, config=config, reads=reads, depends=depends, own=own)
    target, *others = (project.folder(f) for f in (folder, *also))
    for written in (target, *others):
        parts.remove_strays(written, [t.name for t in wanted])
    todo = [t for t in wanted if project.force or not all(parts.is_done(f, t) for f in (target, *others))]
    progress.say(f"{folder}: {len(todo)} of {len(wanted)} parts to do")
    with progress.watch(folder, target, {t.name for t in todo}):
        run_tasks(project, todo, reads, transform, sink or _write(target, schema))
    for written in (target, *others):
        _verify(project, written, wanted)


def _write(target: Path, schema: pa.Schema) -> beam.PTransform:
    from transforms.core import part_io

    return part_io.WriteParts(target, schema)


def run_tasks(
    project: Project, todo: Sequence[Any], reads: parts.Reads, transform: beam.PTransform, write: beam.PTransform
) -> None:
    """Runs read → transform → write over the tasks `todo`; returns when all are on disk."""
    if not todo:
        return
    import apache_beam as beam

    from transforms.core import part_io

    with make_pipeline(project.runtime) as pipeline:
        (
            pipeline
            | "ListTasks" >> beam.Create(list(todo)).with_output_types(parts.Task)
            | "SpreadTasks" >> beam.Reshuffle()
            | "ReadParts" >> part_io.ReadParts(project.data, reads)
            | "Transform" >> transform
            | "WriteParts" >> write
        )


def _verify(project: Project, target: Path, wanted: Sequence[parts.Task]) -> None:
    for task in wanted:
        sample, written = parts.Footer(project.folder("samples") / task.name), parts.Footer(target / task.name)
        if not parts.is_done(target, task) or written.meta.get("ids") != sample.meta.get("ids"):
            raise DataError(
                f"conservation is broken: {written.rows} rows written for {sample.rows} samples, or their ids differ",
                where=str(written.path),
                remedy="rerun the stage with --force; if it persists, report it",
            )


def write_metrics(project: Project, name: str, values: Mapping[str, Any]) -> None:
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
    return guard(name, lambda: run_one(run, flags.params, **options))


def run_one(run: Run, path: Path, *, force: bool, engine: str | None, workers: int | None) -> Project:
    """Runs one stage of the project of params file `path` under the project's lock; returns the project."""
    project = open_project(path, force=force, engine=engine, workers=workers)
    with locked(project):
        run(project)
    return project


def guard(name: str, action: Callable[[], object]) -> int:
    """Calls `action`; returns 0, or the exit code of the error that it printed."""
    try:
        action()
    except GradsiftError as error:
        return _fail(name, error)
    except KeyboardInterrupt:
        return _stopped(name)
    except RuntimeError as error:
        if str(error).startswith("KeyboardInterrupt"):  # Beam's way of handing it on
            return _stopped(name)
        found = from_beam(error)
        if found is None:
            raise
        return _fail(name, found)
    return 0


def _stopped(name: str) -> int:
    print(f"gradsift {name}: interrupted; rerun to resume", file=sys.stderr)
    return 128 + signal.SIGINT


def _fail(name: str, error: GradsiftError) -> int:
    print(f"gradsift {name}: {_plain(str(error))}", file=sys.stderr)
    return error.exit_code


_OURS = re.compile(r"^(?:scoring[\w.]*\.)?(ConfigError|DataError|SchemaError|ToolError): (.*)", re.M | re.S)


def from_beam(error: BaseException) -> GradsiftError | None:
    """Returns the gradsift error that a worker raised, which Beam passes on as text; None if there is none."""
    kinds: dict[str, type[GradsiftError]] = {k.__name__: k for k in (ConfigError, DataError, SchemaError, ToolError)}
    found = _OURS.search(str(error))
    if not found:
        return None
    return kinds[found[1]](_plain(found[2]))


def _plain(message: str) -> str:
    """Returns `message` without what Beam puts behind it."""
    return re.split(r" \[while running |\n\nDuring handling|\nTraceback ", message)[0].strip()
