"""plan: which rows to train on, in which order and shard. Keys only, out of core.

Reads: verdicts of `clean`, `dedup` and `quality`, scores of `lqs`, costs of `tokens`, in DuckDB.
Writes: `data/plan/plan.parquet` (one row a selected sample, by rank), `metrics/plan.json`.
Guarantees: samples = planned + not planned, by reason; the same inputs and params give the same bytes.
"""

import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from pipelines.core import progress, stage, tables, trust
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from pipelines.passes import plan_keys
from scoring.core import files, selection
from scoring.core.errors import DataError
from scoring.core.types import JsonObject
from scoring.order import balance
from scoring.order.config import PlanConfig
from transforms.core import parts, schemas, sealed

FILE = "plan.parquet"
GROUP_ROWS = 16_384  # a row group holds whole shards: at least so many rows, but for the last


def run(project: Project) -> None:
    """Writes the plan and its metrics, unless those on disk are for the same inputs and params."""
    settings = project.section("plan", PlanConfig)
    folder = project.folder("plan")
    task = parts.Task(FILE, stage.fingerprint("pipelines.plan", settings, [str(schemas.PLAN), *_inputs(project)]))
    parts.remove_strays(folder, [])
    if project.force or not trust.is_done(folder, task):
        progress.say("plan: selecting rows, ordering them and cutting shards")
        with tables.working(project) as connection:
            _write(project, connection, settings, task)
    stage.write_metrics(project, "plan", dict(parts.Footer(folder / FILE).meta["stats"]))


def _inputs(project: Project) -> list[str]:
    """Returns the digests of all columns read.

    Raises:
      DataError: a folder holds other parts than `samples`, or other samples in one of them.
    """
    names, digests = parts.names(project.folder("samples")), []
    for folder in plan_keys.COLUMNS:
        if parts.names(project.folder(folder)) != names:
            raise DataError(
                "a folder does not have the same parts as samples",
                where=str(project.folder(folder)),
                remedy=f"run gradsift run {folder} first",
            )
    for name in names:
        footers = [parts.Footer(project.folder(f) / name) for f in plan_keys.COLUMNS]
        stale = [f.path for f in footers if f.meta.get("ids") != footers[0].meta.get("ids")]
        if stale:
            raise DataError("a sidecar holds different samples", where=str(stale[0]), remedy="run its stage again")
        digests += [f.content(columns) for f, columns in zip(footers, plan_keys.COLUMNS.values(), strict=True)]
    return digests


def _write(project: Project, connection: Connection, settings: PlanConfig, task: parts.Task) -> None:
    not_planned = plan_keys.load(project, connection)
    chosen, not_planned["top_ratio"] = plan_keys.choose(connection, settings)
    samples = sum(parts.Footer(p).rows for p in project.folder("samples").glob(parts.PATTERN))
    if samples != chosen + sum(not_planned.values()):
        raise DataError(
            f"conservation is broken: {samples} samples, {chosen} planned, not planned {not_planned}",
            where=str(project.folder("plan")),
            remedy="run `gradsift run --force`; if it persists, report it",
        )
    if not chosen:
        raise DataError(
            f"no rows left to plan: {samples} samples, dropped or not selected by {_sentence(not_planned)}",
            where=f"{project.params.path}, data of {project.folder('samples')}",
            remedy="relax the stage that dropped most (`gradsift explain SAMPLE_ID` shows each rule's value), "
            "raise plan.top_ratio, or add sources",
        )
    order = plan_keys.order(connection, settings, chosen)
    costs = plan_keys.costs(connection, order)
    cut = balance.cut_shards(
        costs["complexity"], base_rows=settings.shard_rows, threshold=settings.complexity_threshold
    )
    stats = {"samples": samples, "planned": chosen, "not_planned": not_planned, "order": settings.order}
    hot = selection.share(chosen, settings.hot_ratio)
    stats |= _shard_stats(cut, costs) | plan_keys.row_stats(connection, hot)
    plan_keys.place(connection, order, cut)
    _stream(project, plan_keys.rows(connection, hot, GROUP_ROWS), cut, task, stats)


def _sentence(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "nothing"


def _shard_stats(cut: balance.Cut, costs: plan_keys.Costs) -> JsonObject:
    """Returns the figures of the shards. Sums of floats are exact, so no thread or library changes a digit."""
    spans = list(zip(cut.starts.tolist(), cut.ends.tolist(), strict=True))
    flops = [math.fsum(costs["flops"][start:end].tolist()) for start, end in spans]
    tokens = np.add.reduceat(costs["tokens"], cut.starts).tolist()
    pools = {name: cut.rows[cut.dedicated == on].tolist() for name, on in (("dedicated", True), ("shared", False))}
    return {
        "shards": len(spans),
        "rows_per_shard": _spread(cut.rows.tolist()),
        "tokens": sum(tokens),
        "tokens_per_shard": _spread(tokens),
        "flops": math.fsum(flops),
        "flops_per_shard": _spread(flops),
        "pools": {name: {"shards": len(rows), "rows": sum(rows)} for name, rows in pools.items()},
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"min": min(values), "mean": math.fsum(values) / len(values), "max": max(values)}


def _stream(
    project: Project, rows: pa.RecordBatchReader, cut: balance.Cut, task: parts.Task, stats: JsonObject
) -> None:
    """Writes the plan atomically, one row group in memory at a time."""
    record = {"fingerprint": task.fingerprint, "stats": stats}
    schema = schemas.PLAN.with_metadata(parts.footer_metadata(schemas.PLAN, record))

    def write(temporary: str) -> None:
        with sealed.writer(temporary, schema, compression="zstd", compression_level=1) as writer:
            for table in _regroup(rows, _group_rows(cut)):
                writer.write_table(table.cast(schema), row_group_size=table.num_rows)

    files.write_atomic(project.folder("plan") / FILE, write)


def _group_rows(cut: balance.Cut) -> Iterator[int]:
    """Yields the rows of each row group: whole shards, closed as soon as they hold GROUP_ROWS rows."""
    start = 0
    for end in cut.ends.tolist():
        if end - start >= GROUP_ROWS or end == cut.ends[-1]:
            yield end - start
            start = end


def _regroup(batches: pa.RecordBatchReader, sizes: Iterator[int]) -> Iterator[pa.Table]:
    """Yields the rows of `batches` as tables of `sizes` rows.

    Raises:
      DataError: there are other rows than `sizes` add up to.
    """
    held = pa.Table.from_batches([], batches.schema)
    for size in sizes:
        while held.num_rows < size:
            batch = next(batches, None)
            if batch is None:
                raise DataError(f"the order holds fewer rows than were selected: {size - held.num_rows} are missing")
            held = pa.concat_tables([held, pa.Table.from_batches([batch])])
        yield held.slice(0, size).combine_chunks()
        held = held.slice(size)
    if held.num_rows or next(batches, None) is not None:
        raise DataError("the order holds more rows than were selected")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "plan", argv)


if __name__ == "__main__":
    sys.exit(main())
