"""shard: the planned rows become Parquet files, in the order of the plan.

Reads: `data/plan`, and the rows it refers to from `samples`, `clean`, `quality`, `static` and `lqs`.
Writes: `data/shards` (shards, dataset card, and last of all `manifest.json`), `metrics/shard.json`.
Guarantees: each planned row stands exactly once, at its rank; where there is a manifest, every shard it lists
is whole; a shard whose fingerprint matches is not written again; the same inputs give the same bytes.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pyarrow as pa

from pipelines.core import deps, progress, stage, tables, trust
from pipelines.core.options import make_pipeline, spread
from pipelines.core.project import Project
from scoring.core import files
from scoring.core.errors import DataError
from scoring.core.types import JsonObject
from transforms.core import parts, schemas, sealed
from transforms.shard import manifest
from transforms.shard import transform as shard
from transforms.shard.config import ShardConfig
from transforms.shard.transform import ShardTask

MANIFEST = "manifest.json"
CARD = "README.md"
ROUTE_GROUP_ROWS = 16_384


def run(project: Project) -> None:
    """Writes the shards that are not up to date, verifies all, and describes them in card and manifest."""
    settings, target = project.section("shard", ShardConfig), project.folder("shards")
    tasks = list(_tasks(project, settings))
    _remove_strays(target, {t.name for t in tasks})
    left = _undone(target, tasks)
    todo = [t for t in tasks if project.force or t.name in left]
    progress.say(f"shards: {len(todo)} of {len(tasks)} to do")
    if not todo and _described(project, tasks):
        return
    (target / MANIFEST).unlink(missing_ok=True)
    if todo:
        _write(project, settings, todo)
    _verify(project, tasks)
    _describe(project, tasks)


def _plan(project: Project) -> Path:
    path = project.folder("plan") / "plan.parquet"
    if not path.exists():
        raise DataError("there is no plan yet", where=str(path), remedy="run gradsift run plan first")
    trust.require(path.parent, [path.name])
    return path


def _stats(project: Project) -> JsonObject:
    return dict(parts.Footer(_plan(project)).meta["stats"])


def _tasks(project: Project, settings: ShardConfig) -> Iterator[ShardTask]:
    """Yields one task per shard. Its fingerprint: code, config, its rows of the plan, the columns they come from."""

    @cache
    def footers(part: str) -> str:
        return parts.digest(parts.contents(project.data, part, shard.READS))

    shards = int(_stats(project)["shards"])
    for number, (group, start, rows) in enumerate(shard.plan_slices(_plan(project), shard.SPEC)):
        read = [footers(part) for part in sorted(rows["part"].unique().to_pylist())]
        inputs = [str(schemas.SHARDS), shard.spec_digest(rows), *read]
        fingerprint = stage.fingerprint("pipelines.shard", settings, inputs)
        yield ShardTask(shard.shard_name(number, shards), fingerprint, number, group, start, rows.num_rows)


def _undone(target: Path, tasks: Sequence[ShardTask]) -> set[str]:
    """Returns the names of the shards that are missing, of other inputs, or not those that the manifest lists."""
    named = [parts.Task(t.name, t.fingerprint) for t in tasks]
    return {t.name for t in trust.undone(target, named, manifest.listed(manifest.read(target / MANIFEST)))}


def _remove_strays(target: Path, wanted: set[str]) -> None:
    """Deletes shards that the plan no longer has, and temporary files."""
    parts.remove_strays(target, [])
    for path in target.glob(shard.PATTERN):
        if path.name not in wanted:
            path.unlink()


def _write(project: Project, settings: ShardConfig, todo: Sequence[ShardTask]) -> None:
    """Unpacks the parts that `todo` touches, then writes the shards; the unpacked parts are gone afterwards."""
    unpacked, target, plan = project.data / ".unpacked", project.folder("shards"), _plan(project)
    shutil.rmtree(unpacked, ignore_errors=True)
    try:
        names = _route(project, unpacked, todo)
        with make_pipeline(project.runtime) as pipeline:
            (
                spread(pipeline, names, str, project.runtime.engine)
                | "UnpackParts" >> shard.UnpackParts(project.data, unpacked)
            )
        with progress.watch("shards", target, {t.name for t in todo}), make_pipeline(project.runtime) as pipeline:
            (
                spread(pipeline, todo, ShardTask, project.runtime.engine)
                | "WriteShards" >> shard.WriteShards(plan, unpacked, target, settings)
            )
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)


def _route(project: Project, unpacked: Path, todo: Sequence[ShardTask]) -> list[str]:
    """Writes which rows of which part the shards in `todo` take; returns the names of the parts."""
    with tables.working(project) as connection:
        connection.register("todo", pa.table({"shard": pa.array([t.shard for t in todo], pa.int32())}))
        connection.execute(f"""
            CREATE TEMP TABLE routes AS
            SELECT "part", "row", "rank" FROM {_scan([_plan(project)])} SEMI JOIN todo USING (shard)""")
        rows = connection.sql("FROM routes ORDER BY part, rank").to_arrow_reader(ROUTE_GROUP_ROWS)

        def write(temporary: str) -> None:
            with sealed.writer(temporary, rows.schema) as writer:
                for batch in rows:
                    writer.write_batch(batch)

        files.write_atomic(unpacked / shard.ROUTES, write)
        return [name for (name,) in connection.execute("SELECT DISTINCT part FROM routes ORDER BY part").fetchall()]


def _scan(paths: Sequence[Path]) -> str:
    """Returns the SQL that reads `paths` in the given order."""
    return f"read_parquet([{', '.join(tables.quote(str(p).replace('[', '[[]')) for p in paths)}])"


def _verify(project: Project, tasks: Sequence[ShardTask]) -> None:
    """Raises DataError unless the shards hold the rows of the plan: each once, at its rank."""
    target = project.folder("shards")
    paths = [target / t.name for t in tasks]
    left = _undone(target, tasks)
    wrong = [t.name for t in tasks if t.name in left or parts.Footer(target / t.name).rows != t.rows]
    ids = [f"SELECT sample_id FROM {_scan(files)}" for files in ([_plan(project)], paths)]
    with tables.working(project) as connection:
        planned, distinct, moved = connection.execute(f"""
            SELECT count(planned.sample_id), count(DISTINCT shards.sample_id),
                   count(*) FILTER (planned.sample_id IS DISTINCT FROM shards.sample_id)
            FROM ({ids[0]}) AS planned POSITIONAL JOIN ({ids[1]}) AS shards""").fetchall()[0]
    if wrong or moved or distinct != planned:
        raise DataError(
            f"conservation is broken: {planned} rows planned, {distinct} found, {moved} out of place; "
            f"shards with other rows: {wrong[:5]}",
            where=str(target),
            remedy="run `gradsift run shard --force`; if it persists, report it",
        )


def _state(project: Project, tasks: Sequence[ShardTask]) -> str:
    """Returns the digest of all that card and manifest depend on."""
    footers = [parts.Footer(project.folder("shards") / t.name).digest for t in tasks]
    return parts.digest(deps.code_version("pipelines.shard"), parts.Footer(_plan(project)).digest, footers)


def _described(project: Project, tasks: Sequence[ShardTask]) -> bool:
    """Returns whether manifest, card and metrics match the current shards."""
    found = project.folder("shards") / MANIFEST
    if not (found.exists() and found.with_name(CARD).exists() and project.metrics("shard").exists()):
        return False
    return bool(manifest.read(found).get("fingerprint") == _state(project, tasks))


def _describe(project: Project, tasks: Sequence[ShardTask]) -> None:
    """Writes card, metrics and, last, the manifest."""
    target, stats = project.folder("shards"), _stats(project)
    paths = [target / t.name for t in tasks]
    rows = (batch for _, _, batch in shard.plan_slices(_plan(project), manifest.COLUMNS))
    with ThreadPoolExecutor(project.runtime.workers) as pool:
        described = zip(paths, pool.map(sealed.sha256, paths), rows, _tokens(project, tasks), strict=True)
        entries = [manifest.entry(*one) for one in described]
    found = manifest.manifest(entries, order=stats["order"], fingerprint=_state(project, tasks))
    files.write_text(target / CARD, manifest.card(found, stats))
    stage.write_metrics(project, "shard", found["totals"])
    files.write_json(target / MANIFEST, found)


def _tokens(project: Project, tasks: Sequence[ShardTask]) -> list[tuple[int, ...]]:
    """Returns, for each shard, the tokens of its rows by modality.

    Raises:
      DataError: a planned row has no token counts, or two.
    """
    sums = ", ".join(f"sum({name})::BIGINT" for name in manifest.COUNTS)
    with tables.working(project) as connection:
        found = connection.execute(f"""
            SELECT count(*), {sums} FROM {_scan([_plan(project)])} AS planned
            JOIN (SELECT sample_id, {", ".join(manifest.COUNTS)} FROM {tables.scan(project.folder("tokens"))}) AS counts
            USING (sample_id) GROUP BY shard ORDER BY shard""").fetchall()
    if [rows for rows, *_ in found] != [t.rows for t in tasks]:
        raise DataError(
            "token counts belong to different rows", where=str(project.folder("tokens")), remedy="gradsift run"
        )
    return [tuple(counts) for _, *counts in found]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "shard", argv)


if __name__ == "__main__":
    sys.exit(main())
