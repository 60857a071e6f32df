"""plan: which rows to train on, in which order and shard. Keys only, out of core.

Reads: verdicts of `clean`, `dedup` and `quality`, scores of `lqs`, costs of `tokens`, in DuckDB.
Writes: `data/plan/plan.parquet` (one row a selected sample, by rank), `metrics/plan.json`.
Guarantees: samples = planned + not planned, by reason; the same inputs and params give the same bytes.
"""

import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.core import progress, stage, tables, trust
from pipelines.core.conserve import FILTERS
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from scoring.core import files, selection
from scoring.core.errors import DataError
from scoring.core.types import JsonObject
from scoring.order import balance, ordering
from scoring.order.config import PlanConfig
from transforms.core import parts, schemas, sealed

FILE = "plan.parquet"
GROUP_ROWS = 16_384  # a row group holds whole shards: at least so many rows, but for the last
COLUMNS = {
    "samples": ["filename", "file_row_number", "sample_id"],
    **{f: ["sample_id", "kept"] for f in FILTERS},
    "tokens": ["sample_id", "tokens", "flops", "bytes", "complexity"],
    "lqs": ["sample_id", "score", "band"],
}


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
    for folder in COLUMNS:
        if parts.names(project.folder(folder)) != names:
            raise DataError(
                "a folder does not have the same parts as samples",
                where=str(project.folder(folder)),
                remedy=f"run gradsift run {folder} first",
            )
    for name in names:
        footers = [parts.Footer(project.folder(f) / name) for f in COLUMNS]
        stale = [f.path for f in footers if f.meta.get("ids") != footers[0].meta.get("ids")]
        if stale:
            raise DataError("a sidecar holds different samples", where=str(stale[0]), remedy="run its stage again")
        digests += [f.content(columns) for f, columns in zip(footers, COLUMNS.values(), strict=True)]
    return digests


def _write(project: Project, connection: Connection, settings: PlanConfig, task: parts.Task) -> None:
    not_planned = _load(project, connection)
    chosen, not_planned["top_ratio"] = _select(connection, settings)
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
    order = _order(connection, settings, chosen)
    costs = _costs(connection, order)
    cut = balance.cut_shards(
        costs["complexity"], base_rows=settings.shard_rows, threshold=settings.complexity_threshold
    )
    stats = {"samples": samples, "planned": chosen, "not_planned": not_planned, "order": settings.order}
    stats |= _shard_stats(cut, costs) | _row_stats(connection, selection.share(chosen, settings.hot_ratio))
    _place(connection, order, cut)
    _stream(project, _rows(connection, selection.share(chosen, settings.hot_ratio)), cut, task, stats)


def _sentence(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "nothing"


def _load(project: Project, connection: Connection) -> dict[str, int]:
    """Fills the table `keys`, one row per sample; returns how many each filter dropped."""
    cases = " ".join(f"WHEN NOT coalesce({f}_kept, false) THEN '{f}'" for f in FILTERS)
    others = " OR ".join(f"{f}_sample_id IS DISTINCT FROM samples_sample_id" for f in COLUMNS if f != "samples")
    connection.execute(f"""
        CREATE TEMP TABLE keys AS SELECT
            parse_filename(filename) AS part, file_row_number::INTEGER AS row, samples_sample_id AS sample_id,
            CASE {cases} END AS dropped, CASE WHEN isfinite(score) THEN score END AS score,
            coalesce(band, 'base') AS band, tokens, flops, bytes,
            CASE WHEN isfinite(complexity) THEN complexity ELSE 1 END AS complexity, {others} AS shifted
        FROM ({tables.zipped(project, COLUMNS)})""")
    costless, shifted = connection.execute("""
        SELECT count(*) FILTER (dropped IS NULL AND (tokens IS NULL OR flops IS NULL OR bytes IS NULL)),
               count(*) FILTER (shifted) FROM keys""").fetchall()[0]
    if costless or shifted:
        raise DataError(
            f"{costless} kept rows have no token counts, {shifted} rows are misaligned with their samples",
            where=str(project.folder("tokens")),
            remedy="run `gradsift run tokens lqs --force`",
        )
    found = dict(connection.execute("SELECT dropped, count(*) FROM keys GROUP BY dropped").fetchall())
    return {f: found.get(f, 0) for f in FILTERS}


def _select(connection: Connection, settings: PlanConfig) -> tuple[int, int]:
    """Fills the table `chosen`: the selected rows, `best` from 1 for the highest score, `seat` from 0 for the lowest.

    Rows without a score come last in both. Returns how many rows are selected, and how many of the kept are not.
    """
    kept = connection.execute("SELECT count(*) FROM keys WHERE dropped IS NULL").fetchall()[0][0]
    count = selection.top_share(kept, settings.top_ratio, name="plan.top_ratio")
    connection.execute(f"""
        CREATE TEMP TABLE chosen AS
        SELECT *, row_number() OVER (ORDER BY score NULLS LAST, sample_id) - 1 AS seat
        FROM (SELECT * EXCLUDE (dropped, shifted),
                     row_number() OVER (ORDER BY score DESC NULLS LAST, sample_id) AS best
              FROM keys WHERE dropped IS NULL)
        WHERE best <= {count}""")
    return count, kept - count


def _order(connection: Connection, settings: PlanConfig, rows: int) -> ordering.Permutation:
    """Returns (rows,) the seat of the row at each rank."""
    unscored = connection.execute("SELECT count(*) FROM chosen WHERE score IS NULL").fetchall()[0][0]
    base = ordering.strata(rows, settings.mixed)[0]
    ascending = ordering.seats(rows, unscored=unscored, base=base)
    return ascending[ordering.ordered(rows, settings, unscored=unscored)]


Costs = dict[str, npt.NDArray[np.float64]]


def _costs(connection: Connection, order: ordering.Permutation) -> Costs:
    """Returns complexity, tokens and flops (rows,) in the order of the ranks."""
    found = connection.execute("SELECT complexity, tokens, flops FROM chosen ORDER BY seat").fetchnumpy()
    return {name: np.asarray(values)[order] for name, values in found.items()}


def _shard_stats(cut: balance.Cut, costs: Costs) -> JsonObject:
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


def _row_stats(connection: Connection, hot: int) -> JsonObject:
    rows, unscored = connection.execute("SELECT count(*), count(*) FILTER (score IS NULL) FROM chosen").fetchall()[0]
    bands = connection.execute("SELECT band, count(*) FROM chosen GROUP BY band ORDER BY band").fetchall()
    return {"tiers": {"hot": hot, "cold": rows - hot}, "bands": dict(bands), "unscored": unscored}


def _place(connection: Connection, order: ordering.Permutation, cut: balance.Cut) -> None:
    """Registers `places`: rank, shard and position of every seat."""
    ranks = np.arange(len(order), dtype=np.int64)
    places = {
        "seat": order,
        "rank": ranks,
        "shard": np.repeat(np.arange(len(cut.ends), dtype=np.int32), cut.rows),
        "position": (ranks - np.repeat(cut.starts, cut.rows)).astype(np.int32),
        "dedicated": np.repeat(cut.dedicated, cut.rows),
    }
    connection.register("places", pa.table(places))


def _rows(connection: Connection, hot: int) -> pa.RecordBatchReader:
    """Returns the plan's rows by rank, batch by batch."""
    values = {f.name: f'"{f.name}"' for f in schemas.PLAN} | {
        "phase": "0",
        "pool": "CASE WHEN dedicated THEN 'dedicated' ELSE 'shared' END",
        "tier": f"CASE WHEN best <= {hot} THEN 'hot' ELSE 'cold' END",
    }
    picked = ", ".join(f'{values[name]} AS "{name}"' for name in schemas.PLAN.names)
    sql = f"SELECT {picked} FROM chosen JOIN places USING (seat) ORDER BY rank"
    return connection.sql(sql).to_arrow_reader(GROUP_ROWS)


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
