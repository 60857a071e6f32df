"""Figures of rows and costs: what became of the inputs, and why; tokens, shards and languages.

Memory is bounded whatever the corpus: DuckDB aggregates, lists are cut, shards are drawn in groups.
"""

from pipelines.catalog.totals import TOKEN_KINDS
from pipelines.reporting import charts
from pipelines.reporting.charts import Axis, Frame
from pipelines.reporting.figure import Figure, FigureData, not_run
from scoring.core.types import JsonObject
from transforms.core.rejects import REASONS

SHARD_BARS = 120
LISTED = 30
BARS = 12  # of a chart whose table has the rest


def funnel(data: FigureData) -> Figure:
    """Returns what became of the inputs of each source."""
    totals = data.totals
    ends = ["kept", *totals.stages, "rejects"]
    colours = dict(zip(("kept", "clean", "dedup", "quality", "rejects"), charts.SERIES, strict=True))
    largest = sorted(totals.sources, key=lambda s: (-totals.sources[s]["inputs"], s))[:LISTED]
    bars = [(s, [totals.sources[s][end] for end in ends]) for s in largest]
    rows = [(s, totals.sources[s]["inputs"], totals.sources[s]["rows"], *counts) for s, counts in bars]
    rows.append(("all sources", *(totals.sum(name) for name in ("inputs", "rows", *ends))))
    dropped = [f"{rows:,} dropped by {stage}" for stage, rows in totals.dropped.items()]
    said = ", ".join([f"{totals.sum('kept'):,} kept", *dropped, f"{totals.sum('rejects'):,} rejects"])
    frame = Frame("funnel", "Rows kept, dropped by stage and rejected, by source", f"Total: {said}.")
    return Figure(
        "funnel", "Outcome of every row",
        f"Every input is kept, dropped by one filter, or rejected; the totals are checked: {said}.",
        charts.stacked(frame, bars, ends, [colours[end] for end in ends]), ("source", "inputs", "rows", *ends), rows,
    )  # fmt: skip


def reasons(data: FigureData) -> Figure:
    """Returns the dropped rows by reason."""
    found = data.totals.reasons
    bars = [(r["reason"], r["rows"]) for r in found[:BARS]]
    frame = Frame("reasons", "Dropped rows by reason", ", ".join(f"{name} {rows:,}" for name, rows in bars[:5]))
    rows = [(r["stage"], r["reason"], r["sentence"] or "", r["rows"], r["example"]) for r in found]
    return Figure(
        "reasons", "Why rows were dropped",
        "A row that fails several rules counts once for each. `gradsift explain ID` shows all values of a row.",
        charts.bars(frame, bars), ("stage", "reason", "meaning", "rows", "example"), rows,
        missing="" if found else "No rows were dropped.",
    )  # fmt: skip


def near_misses(data: FigureData) -> Figure:
    """Returns, for each rule, the rows that failed it alone and by no more than a tenth of its threshold."""
    rows = [tuple(r.values()) for r in data.select(_NEAR)] if "clean_kept" in data.columns else []
    return Figure(
        "near", "Near misses",
        "Rows that failed only one rule, by at most 10 % of its threshold: a slightly looser threshold would "
        "keep them. `gradsift query near_miss` lists them.",
        columns=("rule", "threshold", "params key", "rows", "example"), rows=rows, open=True,
        missing="" if rows else "No row failed just one rule by a small margin.",
    )  # fmt: skip


_NEAR = """
    SELECT code, near.threshold, param, near.rows, example FROM (
        SELECT code, any_value(threshold) AS threshold, count(*) AS rows, min(sample_id) AS example FROM rule_values
        WHERE failed AND failures = 1 AND margin >= -0.1 GROUP BY code
    ) AS near JOIN rules USING (code) ORDER BY near.rows DESC, code"""


def rejects(data: FigureData) -> Figure:
    """Returns what could not be read, by reason, with one example each."""
    rows = [
        (r["reason"], REASONS.get(r["reason"], ""), r["rows"], r["partial"], f"{r['uri']}:{r['position']}",
         " · ".join(word for word in (r["error"], r["tail"]) if word))
        for r in data.totals.rejects
    ]  # fmt: skip
    return Figure(
        "rejects", "What could not be read",
        "Dead letters: each is a row of `rejects` with the decoder's output. Partly read files are samples as well.",
        columns=("reason", "meaning", "rows", "partly read", "example", "error"), rows=rows, open=True,
        missing="" if rows else "All inputs could be read.",
    )  # fmt: skip


def tokens(data: FigureData) -> Figure:
    """Returns the tokens of kept rows by kind."""
    found = data.totals.tokens
    if found is None:
        return Figure("tokens", "Tokens by modality", missing=not_run("tokens"))
    rows = [(kind, found[kind]) for kind in TOKEN_KINDS]
    said = ", ".join(f"{kind} {charts.short(count)}" for kind, count in rows)
    return Figure(
        "tokens", "Tokens by modality", "Kept rows only; a row with text and pictures counts under both.",
        charts.bars(Frame("tokens", "Tokens of kept rows by modality", said), rows), ("modality", "tokens"), rows,
    )  # fmt: skip


def shards(data: FigureData) -> Figure:
    """Returns the predicted cost of each shard, or of groups of neighbours where there are many."""
    key, title = "shards", "Predicted cost of each shard"
    if data.totals.plan is None:
        return Figure(key, title, missing=not_run("plan"))
    group = max(1, -(-int(data.totals.plan["shards"]) // SHARD_BARS))
    found = data.select(f"{_COSTS} SELECT shard // {group} AS g, min(shard) AS first, max(shard) AS last, "
                         "sum(rows)::BIGINT AS rows, sum(tokens)::BIGINT AS tokens, avg(flops) AS flops "
                         "FROM costs GROUP BY g ORDER BY g")  # fmt: skip
    costs = [r["flops"] for r in found]
    mean = sum(costs) / max(1, len(costs))
    frame = Frame(key, title, f"{data.totals.plan['shards']:,} shards, {charts.short(mean)} FLOPs on average.")
    x = Axis("shard", 0, found[-1]["last"] + 1 if found else 1, whole=True)
    y = Axis("FLOPs", 0, max(costs, default=0) or 1)
    svg = charts.columns(frame, costs, x, y, level=(mean, f"mean {charts.short(mean)}"))
    rows = [
        (str(r["first"]) if r["first"] == r["last"] else f"{r['first']} to {r['last']}", r["rows"], r["tokens"],
         charts.short(r["flops"]))
        for r in found
    ]  # fmt: skip
    return Figure(
        key, title, "FLOPs to train the target model (params `tokens.target`) on the rows of each shard.",
        svg, ("shard", "rows", "tokens", "FLOPs"), rows, missing="" if found else "The plan has no rows.",
    )  # fmt: skip


_COSTS = """WITH costs AS (SELECT shard, count(*) AS rows, sum(tokens)::BIGINT AS tokens,
                                  sum(flops::HUGEINT)::DOUBLE AS flops FROM plan GROUP BY shard)"""


def shard_costs(data: FigureData) -> list[JsonObject]:
    """Returns rows, tokens and FLOPs of every shard."""
    return data.select(f"{_COSTS} SELECT * FROM costs ORDER BY shard") if data.totals.plan is not None else []


def languages(data: FigureData) -> Figure:
    """Returns the detected languages."""
    key, title = "languages", "Languages"
    if "language" not in data.columns:
        return Figure(key, title, missing=not_run("clean"))
    found = data.select(
        "SELECT language, count(*) AS rows, count(*) FILTER (kept) AS kept FROM fates WHERE language IS NOT NULL "
        f"GROUP BY language ORDER BY rows DESC, language LIMIT {LISTED}"
    )
    rows = [(r["language"], r["rows"], r["kept"]) for r in found]
    bars = [(language, [kept, count - kept]) for language, count, kept in rows[:BARS]]
    frame = Frame(key, title, ", ".join(f"{language} {count:,}" for language, count, _ in rows[:5]))
    return Figure(
        key, title, "Detected on the cleaned text; the most frequent ones are shown.",
        charts.stacked(frame, bars, ("kept", "dropped"), (charts.BLUE, charts.ORANGE)), ("language", "rows", "kept"),
        rows, missing="" if rows else "No language was detected in any row.",
    )  # fmt: skip
