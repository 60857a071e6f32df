"""Figures of the quality head on rows that it has not seen, where one was fitted, and of further quality models."""

from collections.abc import Iterator, Mapping

from pipelines.reporting import charts
from pipelines.reporting.charts import Frame
from pipelines.reporting.figure import Figure, FigureData
from scoring.core.types import Record

WAYS = {  # of metrics/quality.json → what a row was judged by
    "length": "length only",
    "rules": "text statistics",
    "model": "encoder only",
    "both": "head (both)",
}
GROUPS = {"language": "auc_by_language", "domain": "auc_by_domain"}
LISTED = 30

_FIGURES = {
    "AUC": "auc", "F1": "f1", "calibration error": "calibration_error", "AUC at equal length": "auc_at_like_length",
}  # fmt: skip


def ways(data: FigureData) -> Figure | None:
    """Returns how well the head separates good rows from others, compared with its parts and with length only."""
    head = _head(data)
    if not head:
        return None
    found = {way: head["ways"][way] for way in WAYS}
    rows = [(WAYS[way], *(_told(found[way][name]) for name in _FIGURES.values())) for way in WAYS]
    title = "Is the quality head better than simple baselines?"
    bars = [(WAYS[way], round(found[way]["auc"], 3)) for way in WAYS]
    return Figure(
        "head", title,
        f"{_learned(head)} {_gain(found)} AUC: the share of pairs in which the good row scores higher; at "
        "equal length: among pairs from the same length quintile.",
        charts.bars(Frame("head", title, _gain(found)), bars), ("features", *_FIGURES), rows, open=True,
    )  # fmt: skip


def groups(data: FigureData) -> Figure | None:
    """Returns the AUC of each way by language and domain, the head's lowest first."""
    listed = sorted(_by_group(_head(data)), key=lambda found: (found[2]["both"], found[:2]))
    if not listed:
        return None
    rows = [(name, kind, *(_told(aucs[way]) for way in WAYS)) for kind, name, aucs in listed[:LISTED]]
    more = f" The lowest {LISTED} of {len(listed)} are shown." if len(listed) > LISTED else ""
    return Figure(
        "head_groups", "Where is the quality head weak?",
        f"AUC on unseen rows, by language and domain; 0.5 is chance. Small groups are omitted.{more}",
        columns=("group", "of", *WAYS.values()), rows=rows, open=True,
    )  # fmt: skip


def further(data: FigureData) -> Figure | None:
    """Returns what the models of `quality.also` say of the rows, a line per model."""
    found = data.metrics("quality").get("also")
    if not found:
        return None
    rows = [
        (name, told["model"], f"{told['rows']:,}", ", ".join(f"{q:.3g}" for q in told["quartiles"]) or "–",
         _told(told["coverage"]), ", ".join(f"{label} {n:,}" for label, n in told["by_label"].items()) or "–")
        for name, told in found.items()
    ]  # fmt: skip
    return Figure(
        "also", "Scores of additional models",
        "Scores of the models in quality.also, on the same rows as the main score; they never drop a row.",
        columns=("column", "model", "rows", "min, quartiles, max", "text covered", "rows by label"),
        rows=rows, open=True,
    )  # fmt: skip


def _head(data: FigureData) -> Record:
    """Returns the metrics of a fitted head, or nothing."""
    head = data.metrics("quality").get("head") or {}
    return head if "ways" in head else {}


def _by_group(head: Record) -> Iterator[tuple[str, str, Mapping[str, float]]]:
    for kind, key in GROUPS.items():
        yield from ((kind, name, aucs) for name, aucs in head.get(key, {}).items())


def _told(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _learned(head: Record) -> str:
    """Returns what the head learned from, and how far its annotators agree."""
    said = f"{head['rows']['unseen']:,} rows with {head['kind']}, scored out of fold."
    agreement = head.get("agreement")
    if not agreement:
        return said
    alpha = "not defined" if agreement["alpha"] is None else _told(agreement["alpha"])
    return f"{said} Krippendorff's alpha of the labels is {alpha}; {agreement['disputed']:,} rows are disputed."


def _gain(found: Mapping[str, Mapping[str, float]]) -> str:
    """Returns what the head has over the best of its parts and of length."""
    best = max((way for way in WAYS if way != "both"), key=lambda way: found[way]["auc"])
    gain = f"{found['both']['auc'] - found[best]['auc']:+.3f}".replace("-", "−")
    return (
        f"The head has an AUC of {_told(found['both']['auc'])}, {gain} against the best single baseline ({WAYS[best]})."
    )
