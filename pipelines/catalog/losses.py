"""What no run loses in silence: sources that lose most of their rows, and reasons that alone drop many of one.

Rows that fail several rules are no one rule's loss: only those with a single reason count as dropped by it alone.
"""

from dataclasses import dataclass

from pipelines.core.tables import Connection, select

MOST = 0.5  # share of a source's rows that may be dropped without a warning
ALONE = 0.2  # the same by one reason alone
EXAMPLES = 3


@dataclass(frozen=True)
class Loss:
    """Rows of one source that a run dropped, more than should pass without a word."""

    source: str
    reason: str | None  # None: for whatever reason
    dropped: int
    rows: int  # of the source
    examples: tuple[str, ...]  # sample ids
    why: str  # what the reason means; of a whole source, its most frequent reasons
    param: str | None  # the threshold of the rule in params

    @property
    def cells(self) -> tuple[str | int, ...]:
        """Its row in a table."""
        return (
            self.source, self.reason or "any", self.dropped, self.rows, self.why, self.param or "",
            ", ".join(self.examples),
        )  # fmt: skip

    def __str__(self) -> str:
        """Says what was lost, why, where to look and what to change."""
        share = f"{self.dropped:,} of {self.rows:,} rows ({100 * self.dropped / self.rows:.0f} %)"
        what = f"{self.reason} alone drops {share} of source {self.source}"
        change = f"; its threshold is {self.param}" if self.param else ""
        if self.reason is None:
            what = f"source {self.source} loses {share}"
        return f"{what}: {self.why}{change}. Examples: {', '.join(self.examples)}"


def losses(connection: Connection) -> list[Loss]:
    """Returns the losses that the catalog shows: whole sources, then single reasons, the largest shares first."""
    return [Loss(**{**row, "examples": tuple(row["examples"])}) for row in select(connection, _LOSSES)]


_LOSSES = f"""
    WITH sizes AS (
        SELECT source, count(*) AS rows, count(*) FILTER (NOT kept) AS dropped,
               min(sample_id, {EXAMPLES}) FILTER (NOT kept) AS examples
        FROM fates GROUP BY source
    ), reasoned AS (
        SELECT source, reason, count(*) AS times
        FROM (SELECT source, unnest(reasons) AS reason FROM fates WHERE NOT kept) GROUP BY ALL
    ), often AS (
        SELECT source, list(reason || ' ' || format('{{:,}}', times) ORDER BY times DESC, reason)[1:3] AS most
        FROM reasoned GROUP BY source
    ), alone AS (
        SELECT source, dropped_by AS stage, reasons[1] AS reason, count(*) AS dropped,
               min(sample_id, {EXAMPLES}) AS examples
        FROM fates WHERE dropped_by IS NOT NULL AND len(reasons) = 1 GROUP BY ALL
    )
    SELECT * FROM (
        SELECT source, NULL AS reason, dropped, rows, examples, 'most fail ' || array_to_string(most, ', ') AS why,
               NULL AS param
        FROM sizes JOIN often USING (source) WHERE dropped > {MOST} * rows
        UNION ALL
        SELECT source, reason, alone.dropped, rows, alone.examples, coalesce(reasons.sentence, reason), rules.param
        FROM alone JOIN sizes USING (source)
        LEFT JOIN reasons ON reasons.stage = alone.stage AND reasons.code = reason
        LEFT JOIN rules ON rules.stage = alone.stage AND rules.code = reason
        WHERE alone.dropped > {ALONE} * rows
    ) ORDER BY reason IS NOT NULL, dropped / rows DESC, source, reason"""
