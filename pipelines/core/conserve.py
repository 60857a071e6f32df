"""Conservation: inputs = kept + dropped, per source and stage; anything else is a failed run."""

from collections.abc import Sequence

from pipelines.core import tables
from pipelines.core.project import Project
from scoring.core.errors import DataError
from scoring.core.types import JsonObject

FILTERS = ("clean", "dedup", "quality")


def verdicts(project: Project, stage: str) -> JsonObject:
    """Returns what filter `stage` kept and dropped, in all, by reason and by source.

    Raises:
      DataError: a row has no verdict, a verdict twice, or a reason that contradicts it.
    """
    before = FILTERS[: FILTERS.index(stage)]
    rows = _query(project, stage, before)
    breaches = {source: breach for source, _, _, _, breach, _ in rows if breach}
    if breaches:
        raise DataError(
            f"conservation is broken: rows without a verdict or with a contradictory one, by source: {breaches}",
            where=f"stage {stage}, {project.folder(stage)}",
            remedy=f"run `gradsift run {stage} --force`; if it persists, report it",
        )
    by_source = {
        source: {"inputs": inputs, "kept": kept, "dropped": dropped, "by_reason": dict(sorted(reasons.items()))}
        for source, inputs, kept, dropped, _, reasons in rows
    }
    return {**total(list(by_source.values())), "by_source": by_source}


def total(groups: Sequence[JsonObject]) -> JsonObject:
    """Returns the sums of per-source counts."""
    reasons: dict[str, int] = {}
    for group in groups:
        for code, n in group["by_reason"].items():
            reasons[code] = reasons.get(code, 0) + n
    sums = {key: sum(g[key] for g in groups) for key in ("inputs", "kept", "dropped")}
    return {**sums, "by_reason": dict(sorted(reasons.items()))}


def _query(project: Project, stage: str, before: Sequence[str]) -> list[tuple[str, int, int, int, int, dict[str, int]]]:
    """Returns (source, inputs, kept, dropped, breaches, {reason: rows}) rows, ordered by source."""
    columns = {"samples": ["source"], **{f: ["kept"] for f in before}, stage: ["kept", "reasons"]}
    prior = " AND ".join(f"coalesce({f}_kept, false)" for f in before) or "true"
    verdict = f"{stage}_kept" if before else "kept"
    sql = f"""
        WITH rows AS (SELECT source, {prior} AS prior, {verdict} AS kept, reasons
                      FROM ({tables.zipped(project, columns)})),
        reasons AS (SELECT source, reason, count(*) AS n
                    FROM (SELECT source, unnest(reasons) AS reason FROM rows) GROUP BY ALL),
        maps AS (SELECT source, map_from_entries(list((reason, n))) AS reasons FROM reasons GROUP BY source)
        SELECT source, count(*) FILTER (prior), count(*) FILTER (kept), count(*) FILTER (NOT kept),
               count(*) FILTER (prior <> (kept IS NOT NULL) OR coalesce(kept = (len(rows.reasons) > 0), false)),
               coalesce(any_value(maps.reasons), MAP {{}})
        FROM rows LEFT JOIN maps USING (source) GROUP BY source ORDER BY source"""
    with tables.connect(project) as connection:
        return list(connection.sql(sql).fetchall())
