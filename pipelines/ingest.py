"""Stage `ingest`: source files become samples, and what cannot be read becomes rejects.

Reads: the files named in `ingest.sources`, and the media that their rows name.
Writes: `data/samples`, `data/rejects`, `metrics/ingest.json`.
Guarantees: every row of every matched file is a sample or a reject; sample ids are unique; the bytes
are a function of the files, the params and the code, whatever was ingested before; a new file or source
leaves the parts of all others alone.
"""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

from pipelines.core import deps, progress, stage, trust
from pipelines.core.options import make_pipeline, spread
from pipelines.core.project import Project
from pipelines.passes import claims, ingest_totals
from scoring.core.errors import DataError
from transforms.core import parts, schemas
from transforms.decode import tool
from transforms.ingest.config import IngestConfig
from transforms.ingest.reading import READERS, UnitTask
from transforms.ingest.units import Unit, changes, plan
from transforms.readers import html

_ROUNDS = 3
_PAGES = ("html", "warc", "webdataset")  # readers that extract text from pages
_READER_CODE = {name: read.__module__ for name, read in READERS.items()}
_HTML = html.__name__
_DECODERS = ("transforms.decode.audio", "transforms.decode.image", "transforms.decode.video")


def run(project: Project) -> None:
    """Ingests what is new or changed, resolves duplicate ids, counts and checks."""
    config = project.section("ingest", IngestConfig)
    planned: dict[str, list[Unit]] = {}
    moved = [s.name for s in config.sources]
    for attempt in range(_ROUNDS):
        planned |= {n: plan(project.root, config.source(n), config.max_row_bytes) for n in moved}
        units = {u.name: u for s in config.sources for u in planned[s.name]}
        left = _read(project, config, units, force=project.force and not attempt)
        if not left:
            ingest_totals.finish(project, config, list(units.values()))
            return
        moved = sorted({u.source for u in left})
        progress.say(f"ingest: {len(left)} units changed while they were read, of {', '.join(moved)}")
    raise _restless(project, config, left)


def _read(project: Project, config: IngestConfig, units: Mapping[str, Unit], *, force: bool) -> list[Unit]:
    """Ingests what is not done of `units`; returns those whose files changed meanwhile."""
    bases = {name: _base(config, unit) for name, unit in units.items()}
    _remove_others(project, units)
    todo = list(units.values()) if force else _undone(project, units, bases)
    progress.say(f"ingest: {len(todo)} of {len(units)} units to do")
    return _ingest(project, config, [_task(u, bases[u.name], ()) for u in todo]) or _settle(
        project, config, units, bases
    )


def _restless(project: Project, config: IngestConfig, left: Sequence[Unit]) -> DataError:
    """Returns the error of sources that change as often as they are read."""
    unit = left[0]
    found = changes(project.root, config.source(unit.source), unit, config.max_row_bytes)
    uri, words = next(iter(found.items()), (unit.files[0].uri, "it changed, and changed back"))
    return DataError(
        f"source {unit.source} changed each of the {_ROUNDS} times it was read: {uri}: {words}",
        where=str(project.root / uri),
        remedy="rerun ingest when nothing writes to it, or name a copy or snapshot of it in ingest.sources",
    )


def _base(config: IngestConfig, unit: Unit) -> str:
    """Returns the fingerprint of all that decides the unit's bytes, but for ids that other units claim."""
    source = {k: v for k, v in asdict(config.source(unit.source)).items() if k != "paths"}
    limits = [config.rows_per_part, config.bytes_per_part, config.max_row_bytes]
    decoders = None
    if unit.media is not None:
        decoders = [tool.versions(), *(asdict(c) for c in (config.image, config.video, config.audio))]
    pages = config.source(unit.source).markup == "html" or any(f.reader in _PAGES for f in unit.files)
    extractors = html.versions() if pages else None
    readers = [(f.reader, f.packed, f.error) for f in unit.files]
    written = [str(schemas.SAMPLES), str(schemas.REJECTS)]
    return parts.digest(_code(unit, pages=pages), source, limits, decoders, extractors, readers, written, unit.digest)


def _code(unit: Unit, *, pages: bool) -> list[str]:
    """Returns the versions of the code that reads the unit: a change of one reader leaves the files of others alone."""
    used = {_READER_CODE[f.reader] for f in unit.files if f.reader in _READER_CODE} | ({_HTML} if pages else set())
    unused = (*_READER_CODE.values(), *(() if unit.media is not None else _DECODERS))
    return [deps.code_version("pipelines.ingest", unused), *(deps.code_version(m) for m in sorted(used))]


def _task(unit: Unit, base: str, excluded: Sequence[tuple[int, int]]) -> UnitTask:
    fingerprint = parts.digest(base, excluded) if excluded else base
    return UnitTask(unit.to_json(), json.dumps(excluded), base, fingerprint)


def _mark(project: Project, unit: Unit) -> Mapping[str, object]:
    """Returns the footer of the unit's part of rejects, which is written last; empty if there is none."""
    try:
        return parts.Footer(project.folder("rejects") / unit.part(0)).meta
    except DataError:
        return {}


def _undone(project: Project, units: Mapping[str, Unit], bases: Mapping[str, str]) -> list[Unit]:
    """Returns the units of which not every part is there, made of their base by one and the same run, and undamaged."""
    marks = {n: _mark(project, u) for n, u in units.items()}
    tasks = {
        n: [parts.Task(u.part(k), str(marks[n]["fingerprint"])) for k in range(int(str(marks[n].get("parts", 0))))]
        for n, u in units.items()
    }
    left = {t.name for t in trust.undone(project.folder("samples"), [t for ts in tasks.values() for t in ts])}
    rejects = [parts.Task(u.part(0), str(marks[n]["fingerprint"])) for n, u in units.items() if marks[n]]
    damaged = {t.name for t in trust.undone(project.folder("rejects"), rejects)}
    return [
        u for n, u in units.items()
        if marks[n].get("base") != bases[n] or u.part(0) in damaged or any(t.name in left for t in tasks[n])
    ]  # fmt: skip


def _ingest(project: Project, config: IngestConfig, tasks: Sequence[UnitTask]) -> list[Unit]:
    """Writes the parts of `tasks`; returns the units whose files changed meanwhile, which have no mark."""
    if not tasks:
        return []
    from transforms.ingest.transform import IngestUnits

    units = [Unit.from_json(t.unit) for t in tasks]
    wanted = {u.part(0) for u in units}
    with progress.watch("ingest", project.folder("rejects"), wanted), make_pipeline(project.runtime) as pipeline:
        (
            spread(pipeline, list(tasks), UnitTask, project.runtime.engine)
            | "IngestUnits" >> IngestUnits(project.root, project.data, config)
        )
    return [u for u in units if not _mark(project, u)]


def _settle(project: Project, config: IngestConfig, units: Mapping[str, Unit], bases: Mapping[str, str]) -> list[Unit]:
    """Re-ingests the units whose rows gain or lose an id because of other units; returns those that `_ingest` does."""
    for _ in range(_ROUNDS):
        _remove_surplus(project, units.values())
        excluded = claims.excluded(project, [s.name for s in config.sources], units)
        tasks = {n: _task(u, bases[n], excluded.get(n, ())) for n, u in units.items()}
        again = [t for n, t in tasks.items() if _mark(project, units[n])["fingerprint"] != t.fingerprint]
        if not again:
            return []
        progress.say(f"ingest: re-reading {len(again)} units: duplicate ids")
        if moved := _ingest(project, config, again):
            return moved
    raise DataError(
        f"duplicate ids remain unresolved after {_ROUNDS} rounds",
        where=str(again[0].unit[:200]),
        remedy="check whether source files are being changed while they are read",
    )


def _remove_others(project: Project, units: Collection[str]) -> None:
    """Removes the parts of units that no longer exist, so that their rows no longer claim ids."""
    for folder in ("samples", "rejects"):
        found = parts.names(project.folder(folder))
        parts.remove_strays(project.folder(folder), [n for n in found if claims.unit_of(n) in units])


def _remove_surplus(project: Project, units: Collection[Unit]) -> None:
    """Removes parts beyond those that the units' footers count: they hold rows of an earlier, longer run."""
    counted = [u.part(k) for u in units for k in range(int(str(_mark(project, u)["parts"])))]
    parts.remove_strays(project.folder("samples"), counted)
    parts.remove_strays(project.folder("rejects"), [u.part(0) for u in units])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line."""
    return stage.main(run, "ingest", argv)


if __name__ == "__main__":
    sys.exit(main())
