"""The model card of a head: README.md next to it, in words and tables, from card.json."""

from collections.abc import Iterator, Sequence

from scoring.core.types import Record

Card = Record

_WAYS = {
    "length": "length only", "rules": "rules: text statistics", "model": "model: the embedding",
    "both": "both: this head",
}  # fmt: skip
_COLUMNS = ("auc", "f1", "accuracy", "calibration_error", "auc_at_like_length")


def readme(card: Card, usage: str) -> str:
    """Returns the model card of `card`; `usage` is the line of params that uses the head."""
    base = card["encoder"]["base"] if "encoder" in card else card["model"]
    blocks = [
        [f"# A quality head, {card['date']}"],
        [f"P(good) of a text, from embeddings of `{base}` and the text statistics that gradsift computes.",
         "Text length is not a feature."],
        ["## Use", "", "```yaml", usage, "```", "",
         "Put this in `params.yaml` and run `gradsift run`. Rows below `quality.min_quality` are dropped."],
        ["## Data", "", *_data(card)],
        *_results(card),
    ]  # fmt: skip
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _data(card: Card) -> Iterator[str]:
    if "teacher" in card:
        yield from _taught(card["teacher"])
    else:
        yield f"* Labels: `{card['labels']}`, digest `{card['labels_digest']}`; good: {', '.join(card['good_labels'])}."
    yield f"* Training rows: {card['learned']['good']} good and {card['learned']['bad']} other."
    if "agreement" in card:
        yield from _judges(card["agreement"])
    if "encoder" in card:
        encoder = card["encoder"]
        yield (f"* Encoder: the last {encoder['layers']} of {encoder['of']} layers of `{encoder['base']}` were tuned "
               f"on these rows for {encoder['epochs']} epochs. It has seen them, so cross-validation is optimistic; "
               "rely on the figures for rows that neither the encoder nor the head was trained on.")  # fmt: skip
    if "test" in card:
        test = card["test"]
        yield (f"* Test: `{test['file']}`, digest `{test['digest']}`: {test['rows']['good']} good and "
               f"{test['rows']['bad']} other rows, none of them in the training data.")  # fmt: skip


def _taught(teacher: Card) -> Iterator[str]:
    yield (f"* Pseudo-labels: the scores of `{teacher['model']}` (digest `{teacher['digest']}`) on "
           f"{teacher['rows']['learned']} rows of the corpus; good from {teacher['threshold']:g} up. No person has "
           "labelled them: they are no better than the teacher.")  # fmt: skip
    yield (f"* Agreement with the teacher on {teacher['unseen']} held-out rows: Spearman {teacher['spearman']:.3f}, "
           f"AUC at the threshold {teacher['auc']:.3f}.")  # fmt: skip


def _judges(found: Card) -> Iterator[str]:
    alpha = "not defined" if found["alpha_good"] is None else f"{found['alpha_good']:.3f}"
    yield (f"* Annotations: {found['judgements']} on {found['rows']} texts, {found['ties']} ties left out; "
           f"Krippendorff's alpha of good against bad is {alpha}.")  # fmt: skip


def _results(card: Card) -> Iterator[list[str]]:
    """Yields a block for each held-out set that the head was evaluated on."""
    if "encoder" not in card:
        yield from _figures(card, f"Cross-validation, {card['rows']['folds']} folds")
    if "test" in card:
        yield from _figures(card["test"], f"Test: {card['test']['file']}")
    if "teacher" in card:
        yield from _figures(card["teacher"]["figures"], "Held-out rows labelled by the teacher")
    if "encoder" in card:
        yield from _figures(card["seen"], "Cross-validation on rows the encoder has seen (optimistic)")


def _figures(found: Card, title: str) -> Iterator[list[str]]:
    ways, columns = found["ways"], _COLUMNS
    head = ["", *(c.replace("_", " ") for c in columns)]
    yield [f"## {title}", "", *table(head, [[_WAYS[w], *(ways[w][c] for c in columns)] for w in _WAYS])]
    if "reliability" in found:
        rows = [[r["rows"], r["said"], r["good"]] for r in found["reliability"]]
        yield ["Calibration: predicted probability against the observed share of good rows.", "",
               *table(["rows", "mean P(good)", "share good"], rows)]  # fmt: skip
    for kind in ("language", "domain"):
        if groups := found.get(f"auc_by_{kind}"):
            rows = [[name, *(auc[w] for w in _WAYS)] for name, auc in groups.items()]
            yield [f"AUC by {kind}, for groups with at least 8 rows of each class:", "", *table([kind, *_WAYS], rows)]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Returns a Markdown table; floats have three decimals."""
    shown = [[f"{v:.3f}" if isinstance(v, float) else "–" if v is None else str(v) for v in row] for row in rows]
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *shown)]
