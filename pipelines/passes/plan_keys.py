"""The keys of the plan in DuckDB, out of core: one row a sample, those chosen, and where each of them stands."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.core import tables
from pipelines.core.conserve import FILTERS
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from scoring.core import selection
from scoring.core.errors import DataError
from scoring.core.types import JsonObject
from scoring.order import balance, ordering
from scoring.order.config import PlanConfig
from transforms.core import schemas

COLUMNS = {
    "samples": ["filename", "file_row_number", "sample_id"],
    **{f: ["sample_id", "kept"] for f in FILTERS},
    "tokens": ["sample_id", "tokens", "flops", "bytes", "complexity"],
    "lqs": ["sample_id", "score", "band"],
}


def load(project: Project, connection: Connection) -> dict[str, int]:
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


def choose(connection: Connection, settings: PlanConfig) -> tuple[int, int]:
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


def order(connection: Connection, settings: PlanConfig, rows: int) -> ordering.Permutation:
    """Returns (rows,) the seat of the row at each rank."""
    unscored = connection.execute("SELECT count(*) FROM chosen WHERE score IS NULL").fetchall()[0][0]
    base = ordering.strata(rows, settings.mixed)[0]
    ascending = ordering.seats(rows, unscored=unscored, base=base)
    return ascending[ordering.ordered(rows, settings, unscored=unscored)]


Costs = dict[str, npt.NDArray[np.float64]]


def costs(connection: Connection, order: ordering.Permutation) -> Costs:
    """Returns complexity, tokens and flops (rows,) in the order of the ranks."""
    found = connection.execute("SELECT complexity, tokens, flops FROM chosen ORDER BY seat").fetchnumpy()
    return {name: np.asarray(values)[order] for name, values in found.items()}


def row_stats(connection: Connection, hot: int) -> JsonObject:
    rows, unscored = connection.execute("SELECT count(*), count(*) FILTER (score IS NULL) FROM chosen").fetchall()[0]
    bands = connection.execute("SELECT band, count(*) FROM chosen GROUP BY band ORDER BY band").fetchall()
    return {"tiers": {"hot": hot, "cold": rows - hot}, "bands": dict(bands), "unscored": unscored}


def place(connection: Connection, order: ordering.Permutation, cut: balance.Cut) -> None:
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


def rows(connection: Connection, hot: int, size: int) -> pa.RecordBatchReader:
    """Returns the plan's rows by rank, in batches of `size` rows; the best `hot` are in the hot tier."""
    values = {f.name: f'"{f.name}"' for f in schemas.PLAN} | {
        "phase": "0",
        "pool": "CASE WHEN dedicated THEN 'dedicated' ELSE 'shared' END",
        "tier": f"CASE WHEN best <= {hot} THEN 'hot' ELSE 'cold' END",
    }
    picked = ", ".join(f'{values[name]} AS "{name}"' for name in schemas.PLAN.names)
    sql = f"SELECT {picked} FROM chosen JOIN places USING (seat) ORDER BY rank"
    return connection.sql(sql).to_arrow_reader(size)
