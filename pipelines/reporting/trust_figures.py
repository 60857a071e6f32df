"""Figures on how far the scores can be trusted: which junk they separate, and how stable they are."""

from collections.abc import Iterator

from pipelines.reporting import charts
from pipelines.reporting.charts import Frame
from pipelines.reporting.figure import Figure, FigureData, not_run
from scoring.core.types import Record

SIGNALS = {  # of metrics/lqs.json → what the table calls it
    "score": "final score",
    "static": "static",
    "lqs": "LQS",
    "formula": "LQS formula only",
    "low_norm": "small gradient",
    "predictability": "predictability",
}
_CHANCE = 0.5


def canaries(data: FigureData) -> Figure:
    """Returns how often each score puts a good row above junk, by kind of junk."""
    key, title = "canaries", "Can the score separate junk from good rows?"
    found = data.metrics("lqs")
    signals = found.get("canary_auc_by_signal") or {}
    if not signals:
        why = "The canary check did not run: there is no reference model, or lqs.canaries.rows is 0."
        return Figure(key, title, missing=why if "lqs_z" in data.columns else not_run("lqs"))
    kinds = list(signals["score"])
    rows = [(kind.replace("_", " "), *(f"{signals[s][kind]:.2f}" for s in SIGNALS if s in signals)) for kind in kinds]
    worst = min(signals["score"].items(), key=lambda item: item[1])
    frame = Frame(key, title, f"The final score is weakest on {worst[0].replace('_', ' ')}: {worst[1]:.2f}.")
    return Figure(
        key, title,
        f"{found['canaries']:,} canary rows, never shipped: the share of pairs in which a good row scores above a bad "
        f"one (AUC; {_CHANCE} is chance, below it junk ranks higher). Bars: final score.",
        charts.bars(frame, [(kind.replace("_", " "), round(value, 3)) for kind, value in signals["score"].items()]),
        ("junk", *(name for s, name in SIGNALS.items() if s in signals)), rows, open=True,
    )  # fmt: skip


def stability(data: FigureData) -> Figure:
    """Returns how alike rows are ranked when checkpoint, precision or seed changes."""
    key, title = "stability", "How stable are the gradient scores?"
    found, ran = data.metrics("gradients").get("stability") or {}, "grad_norm" in data.columns
    if not found:
        return Figure(key, title, missing="Too few rows have gradients." if ran else not_run("gradients"))
    rows = [(what, "constant" if value is None else f"{value:.3f}") for what, value in _correlations(found)]
    return Figure(
        key, title, f"Rank correlations (Spearman) over {found['rows']:,} scored rows; 1 means identical order.",
        columns=("between", "correlation"), rows=rows, open=True,
    )  # fmt: skip


def _correlations(found: Record) -> Iterator[tuple[str, float | None]]:
    for column, values in found["checkpoints"].items():
        for n, value in enumerate(values, start=1):
            yield f"{column.replace('_', ' ')} at checkpoints {n} and {n + 1}", value
    for name, words in (
        ("sketch_against_exact", "cosine with the target: int8 sketch vs. exact"),
        ("seed_against_seed", "cosine with the target: target rows from this seed vs. the next seed"),
    ):
        if name in found:
            yield words, found[name]
    if found.get("conflict_rate") is not None:
        yield "share of row pairs with opposing gradients", found["conflict_rate"]
