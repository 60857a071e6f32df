"""Figures of scores: how they are spread, how they lie against each other, how the reference learned.

Distributions are counted in bins and never sorted, so memory is bounded and the figures do not depend on
the number of threads.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pipelines.reporting import charts
from pipelines.reporting.charts import Axis, Frame
from pipelines.reporting.figure import Figure, FigureData, not_run
from scoring.core.types import Record
from scoring.static.dimensions import DIMENSIONS

BINS = 40
GRID = (36, 24)
FINE_BINS = 400  # for quantiles to a 400th of the range
LISTED = 30
MODEL_FACTS = 100
ELSEWHERE = (
    "canary_auc", "canary_auc_by_signal", "stability", "ways", "auc_by_language", "auc_by_domain",
)  # fmt: skip  # in figures of their own
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def score_histogram(
    key: str, title: str, column: str, stage: str, note: str, *, bounds: tuple[float, float] | None = None
) -> Callable[[FigureData], Figure]:
    """Returns the figure of the distribution of `column`, over `bounds` or else from its least to its largest value."""

    def draw(data: FigureData) -> Figure:
        counts, low, high = histogram(data, column, bounds) if column in data.columns else ([], 0.0, 1.0)
        if not sum(counts):
            why = "No row has this score." if column in data.columns else not_run(stage)
            return Figure(key, title, missing=why)
        step = (high - low) / len(counts)
        rows = [(f"{low + k * step:.3f} to {low + (k + 1) * step:.3f}", n) for k, n in enumerate(counts)]
        frame = Frame(key, title, f"{sum(counts):,} rows from {low:.3g} to {high:.3g}.")
        svg = charts.histogram(frame, counts, Axis(title, low, high), mark=_threshold(data, column))
        return Figure(key, title, note, svg, ("range", "rows"), rows)

    return draw


def _threshold(data: FigureData, column: str) -> tuple[float, str] | None:
    """Returns the threshold of the rule on `column`, and its label."""
    found = data.select(f"SELECT threshold, param FROM rules WHERE value = '{column}'")
    return (found[0]["threshold"], found[0]["param"]) if found else None


def histogram(
    data: FigureData, column: str, bounds: tuple[float, float] | None = None, bins: int = BINS
) -> tuple[list[int], float, float]:
    """Returns the counts of the finite values of `column` in equal bins, and the bounds of the bins."""
    finite = f"FROM fates WHERE isfinite({column})"
    low, high = bounds or data.connection.execute(f"SELECT min({column}), max({column}) {finite}").fetchall()[0]
    if low is None:
        return [], 0.0, 1.0
    high = high if high > low else low + 1.0
    found = data.select(f"SELECT {_bin(column, low, high, bins)} AS bin, count(*) AS n {finite} GROUP BY bin")
    counts = {r["bin"]: r["n"] for r in found}
    return [counts.get(k, 0) for k in range(bins)], low, high


def _bin(column: str, low: float, high: float, bins: int) -> str:
    """Returns the SQL of the bin of `column`, 0 … bins − 1; values outside fall into the outer bins."""
    place = f"floor(({column} - {low!r}::DOUBLE) / {high - low!r}::DOUBLE * {bins})"
    return f"greatest(0, least({bins - 1}, {place}))::INTEGER"


def learnability(data: FigureData) -> Figure:
    """Returns the rows by learnability and gradient quality, binned over the middle 98 % of each."""
    key, title = "learnability", "Learnability against quality"
    names = ("learnability", "gradient_quality")
    if not data.columns.issuperset(names):
        return Figure(key, title, missing=not_run("lqs"))
    x, y = (Axis(n.replace("_", " "), *_middle(data, n)) for n in names)
    place = ", ".join(
        f"{_bin(n, a.low, a.high, size)} AS b{k}"
        for k, (n, a, size) in enumerate(zip(names, (x, y), GRID, strict=True))
    )
    cells = data.select(
        f"SELECT {place}, count(*) AS n FROM fates WHERE isfinite(learnability) AND isfinite(gradient_quality) "
        "GROUP BY ALL ORDER BY ALL"
    )
    if not cells:
        return Figure(key, title, missing="No row has gradients; they are computed on text only.")
    placed = [(c["b0"], c["b1"], c["n"]) for c in cells]
    frame = Frame(key, title, f"{sum(n for _, _, n in placed):,} rows in {len(placed)} cells; darker cells hold more.")
    rows = [
        (f"{x.value((a + 0.5) / GRID[0]):.3g}", f"{y.value((b + 0.5) / GRID[1]):.3g}", n)
        for a, b, n in sorted(placed, key=lambda c: (-c[2], c))[:LISTED]
    ]  # fmt: skip
    return Figure(
        key, title, "How much the reference can still learn from a row, against how well its gradient aligns with the "
        "target. Values outside the middle 98 % are in the outer cells.",
        charts.heat(frame, placed, GRID, x, y), ("learnability", "gradient quality", "rows"), rows,
    )  # fmt: skip


def _middle(data: FigureData, column: str) -> tuple[float, float]:
    """Returns the bounds of the middle 98 % of `column`, to a 400th of its range, from counts alone."""
    counts, low, high = histogram(data, column, bins=FINE_BINS)
    if not sum(counts):
        return 0.0, 1.0
    first, last = (quantile(counts, q) for q in (0.01, 0.99))
    return low + (high - low) * first, low + (high - low) * last


def quantile(counts: Sequence[int], share: float) -> float:
    """Returns where in [0, 1] the quantile `share` of binned values lies, interpolated inside its bin."""
    wanted, seen = share * sum(counts), 0
    for k, count in enumerate(counts):
        if count and seen + count >= wanted:
            return (k + (wanted - seen) / count) / len(counts)
        seen += count
    return 1.0


def dimensions(data: FigureData) -> Figure:
    """Returns the spread of each static dimension."""
    key, title = "static", "The twelve static dimensions"
    if "static_score" not in data.columns:
        return Figure(key, title, missing=not_run("static"))
    listed = ", ".join(DIMENSIONS)
    counts: dict[str, list[int]] = {}
    for row in data.select(
        f"SELECT dimension, {_bin('value', 0.0, 1.0, FINE_BINS)} AS bin, count(*) AS n FROM "
        f"(SELECT {listed} FROM fates) UNPIVOT (value FOR dimension IN ({listed})) GROUP BY ALL"
    ):
        counts.setdefault(row["dimension"], [0] * FINE_BINS)[row["bin"]] = row["n"]
    spread = [(d, [quantile(counts[d], q) for q in QUANTILES]) for d in DIMENSIONS if d in counts]
    frame = Frame(key, title, "Quantiles of each dimension, scaled to 0–1.")
    rows = [(d, sum(counts[d]), *(f"{v:.3f}" for v in values)) for d, values in spread]
    return Figure(
        key, title, "Box: middle 50 %; line: 5 to 95 %; mark: median. Each dimension is scaled by corpus quantiles.",
        charts.spans(frame, [(d.replace("_", " "), v) for d, v in spread]),
        ("dimension", "rows", "5 %", "25 %", "median", "75 %", "95 %"), rows,
        missing="" if spread else "No row has a static score.",
    )  # fmt: skip


def bands(data: FigureData) -> Figure:
    """Returns the scored rows by difficulty band."""
    key, title = "bands", "Difficulty bands"
    if "band" not in data.columns:
        return Figure(key, title, missing=not_run("lqs"))
    found = data.select(
        "SELECT band, count(*) AS rows, count(*) FILTER (high_value) AS high FROM fates "
        "WHERE kept AND band IS NOT NULL GROUP BY band ORDER BY rows DESC, band"
    )
    rows = [(r["band"], r["rows"], r["high"]) for r in found]
    frame = Frame(key, title, ", ".join(f"{band} {count:,}" for band, count, _ in rows))
    return Figure(
        key, title, "Base, reinforcement and challenge bands of the kept rows, by final score.",
        charts.bars(frame, [(band, count) for band, count, _ in rows]), ("band", "rows", "high value"), rows,
        missing="" if rows else "No row has a score.",
    )  # fmt: skip


def loss_curve(data: FigureData) -> Figure:
    """Returns the training loss of the reference model by step."""
    key, title = "loss", "Training loss of the reference model"
    metrics = data.metrics("reference")
    points = [(float(step), float(loss)) for step, loss in metrics.get("loss", [])]
    if not points:
        why = metrics.get("skipped", "it was not trained in this project") if metrics else ""
        return Figure(key, title, missing=f"The reference has no loss curve: {why}." if why else not_run("reference"))
    steps, losses = zip(*points, strict=True)
    frame = Frame(key, title, f"From {losses[0]:.3g} at step {steps[0]:g} to {losses[-1]:.3g} at step {steps[-1]:g}.")
    svg = charts.line(frame, points, Axis("step", 0, max(steps), whole=True), Axis("loss", min(losses), max(losses)))
    rows = [(int(step), f"{loss:.4f}") for step, loss in points]
    return Figure(key, title, "Mean loss per token since the previous point.", svg, ("step", "loss"), rows)


def models(data: FigureData) -> Figure:
    """Returns what the models and scores say of themselves: accuracy on unseen rows, agreement, consistency."""
    found = {
        "quality": data.metrics("quality").get("head", {}),
        **{stage: data.metrics(stage) for stage in ("reference", "gradients", "static", "lqs")},
    }
    shown = {s: {k: v for k, v in values.items() if k not in ELSEWHERE} for s, values in found.items()}
    rows = [(stage, *pair) for stage, values in shown.items() for pair in _scalars(values)][:MODEL_FACTS]
    return Figure(
        "models", "Model metrics",
        "From the stage metrics: accuracy on held-out rows, losses, and agreement between scores.",
        columns=("stage", "figure", "value"), rows=rows,
        missing="" if rows else "No stage with a model has run yet.",
    )  # fmt: skip


def _scalars(values: Record, prefix: str = "") -> Iterator[tuple[str, float | str]]:
    """Yields (dotted name, number or short text), leaving lists out."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _scalars(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) or (isinstance(value, str) and len(value) < 80):
            yield f"{prefix}{name}".replace("_", " "), value
