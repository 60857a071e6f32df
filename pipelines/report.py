"""The report: one HTML page that needs no network, the run's totals, and the tables that `dvc plots` draws.

Reads: every part folder, `data/plan`, `data/shards`, and the metrics of `ingest` and `reference`.
Writes: `reports/index.html`, `metrics/report.json`, `plots/*.csv`, `data/catalog.duckdb`.
Guarantees: inputs = kept + dropped by stage + rejects, for every source; the same data gives the same bytes;
a stage that has not run leaves a sentence that says so.
"""

import csv
import io
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.catalog import current, totals
from pipelines.catalog.results import cell, shown_text
from pipelines.catalog.totals import Totals
from pipelines.core import stage
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from pipelines.reporting import figures, head_figures, score_figures, trust_figures
from pipelines.reporting.charts import short
from pipelines.reporting.config import ReportConfig
from pipelines.reporting.figure import FigureData
from scoring.core import files
from scoring.core.types import JsonObject
from transforms.core import parts

if TYPE_CHECKING:
    from markupsafe import Markup

TEMPLATE = Path(__file__).parent / "reporting" / "report.html.j2"
TEXT_CHARS = 400
WARNINGS = 5  # lines of the summary

SECTIONS = (
    ("Inputs and outcomes", (figures.funnel, figures.reasons, figures.near_misses, figures.rejects)),
    ("Scores", (
        score_figures.score_histogram(
            "quality", "Quality", "quality", "quality", "All rows scored by the model, including dropped ones.",
            bounds=(0, 1)),
        head_figures.ways, head_figures.groups, head_figures.further,
        score_figures.score_histogram(
            "static_score", "Static score", "static_score", "static", "Weighted mean of the twelve dimensions.",
            bounds=(0, 1)),
        score_figures.score_histogram(
            "lqs", "Learnability-quality score", "lqs_z", "lqs", "z-scored and clipped, as used in the final score."),
        score_figures.score_histogram(
            "score", "Final score", "score", "lqs", "The score that the plan selects and orders rows by."),
        score_figures.learnability, score_figures.bands, score_figures.dimensions, score_figures.loss_curve,
        trust_figures.canaries, trust_figures.stability, score_figures.models,
    )),
    ("Tokens, cost and languages", (figures.tokens, figures.shards, figures.languages)),
)  # fmt: skip


def run(project: Project) -> None:
    """Writes the report, its metrics and its plots.

    Raises:
      DataError: the totals of the run do not add up.
    """
    settings = project.section("report", ReportConfig)
    with current.reading(project) as connection:
        data = look(project, connection)
        totals.check(project, data.totals)
        page = render(data, settings)
        plots = _plots(data)
    files.write_text(page_path(project), page)
    for name, text in plots.items():
        files.write_text(project.root / "plots" / f"{name}.csv", text)
    stage.write_metrics(project, "report", totals.as_json(data.totals))


def page_path(project: Project) -> Path:
    """Returns where the page lies."""
    return project.root / "reports" / "index.html"


def look(project: Project, connection: Connection) -> FigureData:
    """Returns what the figures are drawn from."""
    columns = {name for name, *_ in connection.execute("DESCRIBE samples_all").fetchall()}
    return FigureData(project, connection, frozenset(columns), totals.measure(connection))


def render(data: FigureData, settings: ReportConfig) -> str:
    """Returns the page; every value from the data is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATE.parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"cell": cell, "marked": marked}
    sections = [(title, [f for draw in drawn if (f := draw(data))]) for title, drawn in SECTIONS]
    return environment.get_template(TEMPLATE.name).render(
        title=settings.title,
        tiles=_tiles(data.totals),
        losses=[loss.cells for loss in data.totals.losses],
        sections=sections,
        examples=examples(data, settings.examples),
        digest=parts.digest({k: v for k, v in data.project.params.tree.items() if k != "runtime"}),
    )


def marked(text: str) -> "Markup":
    """Returns `text` escaped, with backticks turned into code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 (escaped above)


def _tiles(found: Totals) -> list[tuple[str, str, str]]:
    """Returns (name, value, explanation) of the figures on top of the page."""
    rows, kept, dropped = found.sum("rows"), found.sum("kept"), sum(found.dropped.values())
    tiles = [
        ("inputs", f"{found.sum('inputs'):,}", f"from {len(found.sources):,} sources"),
        ("rows", f"{rows:,}", "one training example each"),
        ("kept", f"{kept:,}", _percent(kept, rows)),
        ("dropped", f"{dropped:,}", _percent(dropped, rows)),
        ("rejects", f"{found.sum('rejects'):,}", "could not be read"),
    ]
    if found.tokens is not None:
        tiles.append(("tokens", short(sum(found.tokens.values())), "of kept rows"))
    if found.plan is not None:
        tiles.append(("shards", f"{found.plan['shards']:,}", f"{found.plan['rows']:,} rows planned"))
    return tiles


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} % of rows" if whole else "no rows"


def examples(data: FigureData, count: int) -> list[tuple[str, list[JsonObject]]]:
    """Returns the rows with the highest and the lowest score, each with the beginning of its text."""
    column = next((c for c in ("score", "quality") if c in data.columns), None)
    if column is None or not count:
        return []
    shown = [c for c in ("score", "lqs", "quality", "static_score", "learnability", "band") if c in data.columns]
    listed = ", ".join(["sample_id", "source", "modality", "uri", "part", "row", *shown])
    ends = []
    for title, order in ((f"Highest {column}", "DESC"), (f"Lowest {column} among kept rows", "ASC")):
        found = data.select(
            f"SELECT {listed} FROM fates WHERE kept AND isfinite({column}) ORDER BY {column} {order}, sample_id "
            f"LIMIT {count}"
        )
        ends.append((title, [_example(data.project, row, shown) for row in found]))
    return ends


def _example(project: Project, row: JsonObject, shown: Sequence[str]) -> JsonObject:
    text = parts.read_part(project.folder("samples") / row["part"], ["text"])["text"][row["row"]].as_py()
    begins = None if text is None else shown_text(text[:TEXT_CHARS]) + ("…" if len(text) > TEXT_CHARS else "")
    return {**row, "text": begins, "values": [(name, row[name]) for name in shown if row[name] is not None]}


def _plots(data: FigureData) -> dict[str, str]:
    """Returns the CSV files of `plots/`, by name."""
    found = data.totals
    ends = [("kept", found.sum("kept")), *found.dropped.items(), ("rejects", found.sum("rejects"))]
    scores = []
    for column in ("quality", "static_score", "lqs_z", "score"):
        if column in data.columns:
            counts, low, high = score_figures.histogram(data, column)
            width = (high - low) / max(1, len(counts))
            scores += [(column, round(low + (k + 0.5) * width, 6), n) for k, n in enumerate(counts)]
    return {
        "funnel": _csv(("stage", "rows"), ends),
        "scores": _csv(("score", "value", "rows"), scores),
        "shard_cost": _csv(
            ("shard", "rows", "tokens", "flops"), [tuple(r.values()) for r in figures.shard_costs(data)]
        ),
        "tokens": _csv(("modality", "tokens"), (found.tokens or {}).items()),
    }


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def summary(project: Project) -> str:
    """Returns a summary of the run in a few lines."""
    with current.reading(project) as connection:
        found = totals.measure(connection)
    lines = [f"{found.sum('inputs'):,} inputs became {found.sum('rows'):,} rows and {found.sum('rejects'):,} rejects"]
    lines += [f"  {r['rows'] - r['partial']:>9,} {r['reason']}" for r in found.rejects if r["rows"] > r["partial"]]
    lines += [f"  {r['partial']:>9,} partly read: {r['reason']}" for r in found.rejects if r["partial"]]
    lines.append(f"{sum(found.dropped.values()):,} rows dropped")
    lines += [f"  {rows:>9,} by {name}{_why(found, name)}" for name, rows in found.dropped.items()]
    lines.append(f"{found.sum('kept'):,} rows kept ({_percent(found.sum('kept'), found.sum('rows'))})")
    lines += [f"warning: {loss}" for loss in found.losses[:WARNINGS]]
    if len(found.losses) > WARNINGS:
        lines.append(f"warning: {len(found.losses) - WARNINGS:,} more such losses, see the report")
    if found.tokens is not None:
        counts = ", ".join(f"{kind} {short(n)}" for kind, n in found.tokens.items() if n)
        lines.append(f"{short(sum(found.tokens.values()))} tokens: {counts or 'none'}")
    if found.plan is not None:
        lines.append(
            f"{found.plan['rows']:,} rows in {found.plan['shards']:,} shards, {short(found.plan['flops'])} FLOPs"
        )
    if page_path(project).is_file():
        lines.append(f"report: {page_path(project)}")
    return "\n".join(lines)


def _why(found: Totals, name: str) -> str:
    """Returns the three most frequent reasons of a filter."""
    reasons = [f"{r['reason']} {r['rows']:,}" for r in found.reasons if r["stage"] == name]
    return f" ({', '.join(reasons[:3])}{', …' if len(reasons) > 3 else ''})" if reasons else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "report", argv)


if __name__ == "__main__":
    sys.exit(main())
