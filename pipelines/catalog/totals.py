"""The totals of a run: inputs, what each stage dropped, what is kept; and the check that no row is missing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from pipelines.catalog import views as catalog
from pipelines.catalog.losses import Loss, losses
from pipelines.core.project import Project
from pipelines.core.tables import Connection, select
from scoring.core.errors import DataError
from scoring.core.types import JsonObject, Record

TOKEN_KINDS = ("text", "image", "video", "audio")
NO_VERDICT = "rows that no filter kept or dropped"


@dataclass(frozen=True)
class Totals:
    """Counts from the catalog; a stage that has not run is absent, its counts are None."""

    stages: Sequence[str]  # the filters whose verdicts count
    sources: Mapping[str, Mapping[str, int]]  # source → inputs, rejects, rows, kept, and one count a filter
    reasons: Sequence[Record]  # stage, reason, rows, example, sentence; most rows first
    rejects: Sequence[Record]  # reason, rows, partial, uri, position, error, tail of one example
    tokens: Mapping[str, int] | None  # of kept rows, by kind
    plan: Mapping[str, float] | None  # rows, shards, tokens, flops
    faults: Mapping[str, int]  # what should be zero
    losses: Sequence[Loss]  # what should not be lost in silence

    def sum(self, name: str) -> int:
        """Returns the sum of one count over the sources."""
        return sum(counts[name] for counts in self.sources.values())

    @property
    def dropped(self) -> dict[str, int]:
        """The rows that each filter dropped."""
        return {stage: self.sum(stage) for stage in self.stages}


def views(connection: Connection) -> set[str]:
    """Returns the names of the catalog's views and tables."""
    return {name for (name,) in connection.execute("SHOW TABLES").fetchall()}


def measure(connection: Connection) -> Totals:
    """Returns the totals that the catalog shows."""
    there = views(connection)
    stages = catalog.filters(sorted(there))
    return Totals(
        stages=stages,
        sources=_sources(connection, stages),
        reasons=select(connection, _REASONS),
        rejects=select(connection, _REJECTS),
        tokens=_tokens(connection) if "tokens" in there else None,
        plan=select(connection, _PLAN)[0] if "plan" in there else None,
        faults=_faults(connection, there),
        losses=losses(connection),
    )


_REASONS = """
    SELECT f.stage, f.reason, count(*) AS rows, min(f.sample_id) AS example, any_value(r.sentence) AS sentence
    FROM (SELECT dropped_by AS stage, unnest(reasons) AS reason, sample_id FROM fates WHERE dropped_by IS NOT NULL) AS f
    LEFT JOIN reasons AS r ON r.stage = f.stage AND r.code = f.reason
    GROUP BY f.stage, f.reason ORDER BY rows DESC, f.stage, f.reason"""

_REJECTS = """
    SELECT reason, count(*) AS rows, count(*) FILTER (partial) AS partial,
           unnest(min_by({uri: uri, position: position, error: error, tail: tail}, (source, uri, position)))
    FROM rejects GROUP BY reason ORDER BY rows DESC, reason"""

_PLAN = """
    SELECT count(*) AS rows, count(DISTINCT shard) AS shards, coalesce(sum(tokens), 0)::BIGINT AS tokens,
           coalesce(sum(flops::HUGEINT), 0)::DOUBLE AS flops FROM plan"""


def _sources(connection: Connection, stages: Sequence[str]) -> dict[str, dict[str, int]]:
    """Returns the counts of each source. An input is a file or a row of one; a long video becomes several rows."""
    per_stage = "".join(f", count(*) FILTER (dropped_by = '{s}') AS {s}" for s in stages)
    dropped = "".join(f", coalesce({s}, 0) AS {s}" for s in stages)
    rows = select(
        connection,
        f"""SELECT source, coalesce(read, 0) + coalesce(rejects, 0) AS inputs, coalesce(rejects, 0) AS rejects,
                   coalesce(rows, 0) AS rows, coalesce(kept, 0) AS kept{dropped}
            FROM (SELECT source, count(*) AS rows, count(*) FILTER (kept) AS kept{per_stage} FROM fates GROUP BY source)
            LEFT JOIN (SELECT source, count(*) AS read FROM (SELECT DISTINCT source, uri, position FROM samples)
                       GROUP BY source) USING (source)
            FULL JOIN (SELECT source, count(*) AS rejects FROM rejects WHERE NOT partial GROUP BY source) USING (source)
            ORDER BY source""",
    )
    return {row.pop("source"): row for row in rows}


def _tokens(connection: Connection) -> dict[str, int]:
    sums = ", ".join(f"coalesce(sum({k}_tokens) FILTER (kept), 0)::BIGINT AS {k}" for k in TOKEN_KINDS)
    return select(connection, f"SELECT {sums} FROM fates")[0]


def _faults(connection: Connection, there: set[str]) -> dict[str, int]:
    """Returns counts of rows that contradict each other; all of them are zero in a correct run."""
    checks = {NO_VERDICT: "SELECT count(*) FROM fates WHERE NOT kept AND dropped_by IS NULL"}
    if "plan" in there:
        planned = "SELECT count(*) FROM samples_all WHERE selected"
        checks["planned rows that a filter dropped"] = f"{planned} AND NOT kept"
        checks["planned rows that are not samples"] = (
            f"SELECT (SELECT count(DISTINCT sample_id) FROM plan) - ({planned})"
        )
    if {"plan", "shards"} <= there:
        checks["planned rows that are in no shard"] = (
            "SELECT (SELECT count(*) FROM plan) - (SELECT count(*) FROM shards)"
        )
    return {what: int(connection.execute(sql).fetchall()[0][0]) for what, sql in checks.items()}


def check(project: Project, totals: Totals) -> None:
    """Checks conservation over the whole run: what `ingest` read is a row or a reject, and a row is kept or dropped.

    Raises:
      DataError: a row is missing, or counted twice.
    """
    faults = [f"{count:,} {what}" for what, count in totals.faults.items() if count]
    counted = _ingested(project)
    for source, counts in totals.sources.items():
        ended = counts["kept"] + sum(counts[stage] for stage in totals.stages)
        if counts["rows"] != ended and not totals.faults[NO_VERDICT]:
            faults.append(f"source {source}: {counts['rows']:,} rows, but {ended:,} kept or dropped")
        for name in ("inputs", "rows", "rejects"):
            if counted.get(source, counts)[name] != counts[name]:
                faults.append(
                    f"source {source}: ingest counted {counted[source][name]:,} {name}, the catalog {counts[name]:,}"
                )
    if faults:
        raise DataError(
            f"conservation is broken: {'; '.join(faults)}",
            where=str(project.data),
            remedy="a stage was rerun without those that read it: run `gradsift run`; if it persists, report it",
        )


def _ingested(project: Project) -> dict[str, Mapping[str, int]]:
    """Returns the counts of each source as `ingest` made them."""
    path = project.metrics("ingest")
    return dict(json.loads(path.read_text(encoding="utf-8"))["by_source"]) if path.is_file() else {}


def as_json(totals: Totals) -> JsonObject:
    """Returns the totals as `metrics/report.json` holds them."""
    funnel = {name: totals.sum(name) for name in ("inputs", "rejects", "rows", "kept")}
    sources = {
        name: {**{k: counts[k] for k in funnel}, "dropped": {s: counts[s] for s in totals.stages}}
        for name, counts in totals.sources.items()
    }
    return {
        **funnel,
        "dropped": totals.dropped,
        "by_reason": {f"{r['stage']}.{r['reason']}": r["rows"] for r in totals.reasons},
        "by_source": sources,
        "rejects_by_reason": {r["reason"]: r["rows"] for r in totals.rejects},
        "losses": [asdict(loss) for loss in totals.losses],
        "read_in_part": sum(r["partial"] for r in totals.rejects),
        **({"tokens": dict(totals.tokens)} if totals.tokens is not None else {}),
        **({"plan": dict(totals.plan)} if totals.plan is not None else {}),
    }
