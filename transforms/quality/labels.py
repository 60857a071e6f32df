"""Labels: labelled texts with all annotations, and the table of those to review.

Definitions: docs/labels.md.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from scoring.core import files
from scoring.core.arrays import Array
from scoring.core.errors import ConfigError
from scoring.core.hashing import hash64
from scoring.core.types import JsonObject
from scoring.quality import agreement
from scoring.quality.head import MIN_ROWS, normal
from transforms.core import sealed
from transforms.core.schemas import LABELS, conform
from transforms.quality.config import LabelSource, ReviewConfig
from transforms.quality.label_rows import USE, Vote, judged_rows

DISPUTED, CONTRADICTED, OUTLIER = "annotators disagree", "model and label disagree", "cluster outlier"

_EXCERPT_CHARS = 200
_ODD = 0.7  # minimum `oddness` that is a reason

Doubles = npt.NDArray[np.float64]


class Judged(NamedTuple):
    """A text and all its judgements."""

    text_id: str  # 16 hex digits of the text's hash
    text: str
    votes: tuple[Vote, ...]  # sorted
    good: tuple[bool, ...]  # of each vote, whether its label is a good one

    @property
    def verdict(self) -> bool | None:
        """Whether most votes call the text good; None on a tie."""
        return agreement.majority(self.good)


def read_judged(root: Path, source: LabelSource, good_labels: Collection[str]) -> list[Judged]:
    """Returns the judged texts of `source`, sorted by id; the judgements of a text that comes twice are put together.

    The same label of the same named annotator counts once. Tasks of Label Studio that nobody has judged are left out.

    Raises:
      ConfigError: a file, a column, a text or a label is missing, an export is damaged, or `bad_labels` are given
        and there is a label that is neither good nor bad.
      DataError: a row cannot be read.
    """
    texts, votes = dict[str, str](), dict[str, list[Vote]]()
    for row in judged_rows(root, source):
        text_id = f"{hash64(row.text):016x}"
        texts[text_id] = row.text
        votes.setdefault(text_id, []).extend(row.votes)
    if not texts:
        what = f"label file {source.name}: no labelled texts in {', '.join(source.paths)}"
        raise ConfigError(what, where=USE.where, remedy="label some texts, or change `paths`")
    good = {normal(label) for label in good_labels}
    _require_known(source, good, Counter(v.label for found in votes.values() for v in found))
    return [_judged(text_id, texts[text_id], votes[text_id], good) for text_id in sorted(texts)]


def _judged(text_id: str, text: str, votes: Sequence[Vote], good: Collection[str]) -> Judged:
    counts = Counter(votes)
    found = sorted(v for vote, n in counts.items() for v in [vote] * (1 if vote.annotator else n))
    return Judged(text_id, text, tuple(found), tuple(v.label in good for v in found))


def _require_known(source: LabelSource, good: Collection[str], seen: Mapping[str, int]) -> None:
    """Raises ConfigError if `bad_labels` are given and not all labels `seen` are good or bad, or one is both."""
    bad = {normal(label) for label in source.bad_labels}
    if both := sorted(bad.intersection(good)):
        what = f"labels listed as both good and bad: {', '.join(both)}"
        raise ConfigError(what, where=USE.where, remedy="remove them from `good_labels` or `bad_labels`")
    unknown = {label: n for label, n in seen.items() if label not in good and label not in bad}
    if bad and unknown:
        raise ConfigError(
            f"labels of {source.name} that are neither good nor bad: {_shown(unknown)}",
            where=f"{USE.where}; all labels: {_shown(seen)}",
            remedy="add them to `good_labels` or `bad_labels`, or leave `bad_labels` empty to treat all others as bad",
        )


def require_classes(judged: Sequence[Judged], where: str, remedy: str) -> None:
    """Raises ConfigError unless the majority calls 20 texts good and 20 bad: fewer cannot be split and measured."""
    verdicts = [j.verdict for j in judged]
    good, other, ties = (verdicts.count(side) for side in (True, False, None))
    if min(good, other) < MIN_ROWS:
        what = "too few labelled rows" if good and other else "all labels belong to one class"
        raise ConfigError(
            f"{what}: {good} good, {other} other, {ties} undecided; need {MIN_ROWS} of each",
            where=f"{where}; labels: {_shown(Counter(v.label for j in judged for v in j.votes))}",
            remedy=remedy,
        )


def _shown(counts: Mapping[str, int]) -> str:
    found = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{label} {n}" for label, n in found[:20]) + (", …" if len(found) > 20 else "") or "none"


def agreement_summary(judged: Sequence[Judged], source: LabelSource) -> JsonObject:
    """Returns what metrics say of the judgements: counts, the labels, and Krippendorff's alpha.

    `alpha` is of the labels at the level of `source`, `alpha_good` of good against bad; None where it is not defined.
    """
    votes = [[v.label for v in j.votes] for j in judged]
    sides = [["good" if g else "bad" for g in j.good] for j in judged]
    alpha = {"alpha": agreement.krippendorff_alpha(votes, source.level, [normal(s) for s in source.scale]),
             "alpha_good": agreement.krippendorff_alpha(sides, "nominal")}  # fmt: skip
    return {
        "rows": len(judged),
        "judgements": sum(map(len, votes)),
        "judged_again": sum(len(v) > 1 for v in votes),
        "disputed": sum(len(set(s)) > 1 for s in sides),
        "ties": sum(j.verdict is None for j in judged),
        "annotators": len({v.annotator for j in judged for v in j.votes if v.annotator}),
        "labels": dict(sorted(Counter(label for found in votes for label in found).items())),
        "level": source.level,
        **{name: None if value is None else round(value, 6) for name, value in alpha.items()},
    }


def review_rows(
    judged: Sequence[Judged],
    quality: Doubles,
    embeddings: npt.NDArray[np.floating] | None,
    config: ReviewConfig,
    *,
    sample_ids: Sequence[str | None] | None = None,
) -> pa.RecordBatch:
    """Returns the table of `judged` texts, schema LABELS, in their order.

    `quality` (n,) is what a model that has not learned from the row says, P(good), NaN where there is none;
    `embeddings` (n, d) may be None; `sample_ids` (n,) are those of the same texts in the corpus.
    """
    label = np.array([-1 if j.verdict is None else int(j.verdict) for j in judged], np.int64)
    disputed = np.array([agreement.entropy(j.good) for j in judged], np.float64)
    against = contradiction(quality, label)
    near = _near(embeddings, label, config)
    odd = oddness(near["outlier"], near["neighbours"])
    columns = {
        "text_id": [j.text_id for j in judged],
        "sample_id": sample_ids or [None] * len(judged),
        "excerpt": [j.text[:_EXCERPT_CHARS] for j in judged],
        "label": [None if v < 0 else "good" if v else "bad" for v in label.tolist()],
        "judgements": [len(j.votes) for j in judged],
        "annotators": [_annotators(j) for j in judged],
        "vote_entropy": disputed,
        "quality": _nulls(quality),
        "cluster": near["cluster"],
        **{name: _nulls(near[name]) for name in ("cluster_entropy", "outlier", "neighbours")},
        "reasons": [_reasons(*row) for row in zip(disputed, against, odd, strict=True)],
        "priority": disputed + against + odd,
    }
    return pa.record_batch([pa.array(columns[f.name], f.type) for f in LABELS], schema=LABELS)


def contradiction(quality: Doubles, label: npt.NDArray[np.int64]) -> Doubles:
    """Returns (n,) how far the model is on the other side: max(0, 2·|quality − label| − 1); 0 where one is missing."""
    gap = 2 * np.abs(quality - label) - 1
    return np.where((label < 0) | np.isnan(gap), 0.0, np.clip(gap, 0.0, 1.0))


def oddness(outlier: Doubles, neighbours: Doubles) -> Doubles:
    """Returns (n,) in [0, 1] how unlike its surroundings a row is; 0 where nothing is known.

    The larger of two: the share of the nearest neighbours that have the other label, and the distance from the centre,
    from the median of the cluster (0) to twice that (1).
    """
    return np.fmax(np.nan_to_num(1.0 - neighbours), np.nan_to_num(np.clip(outlier - 1.0, 0.0, 1.0)))


def _near(
    embeddings: npt.NDArray[np.floating] | None, label: npt.NDArray[np.int64], config: ReviewConfig
) -> dict[str, Array]:
    """Returns the columns about the nearest rows of each row."""
    if embeddings is None or not len(label):
        nothing = np.full(len(label), np.nan)
        return {"cluster": pa.nulls(len(label)), "cluster_entropy": nothing, "outlier": nothing, "neighbours": nothing}
    found = agreement.cluster_entropy(embeddings, label, config.clusters, config.seed)
    far = agreement.outliers(embeddings, label, found, config.neighbours)
    return {"cluster": found.cluster, "cluster_entropy": found.entropy[found.cluster],
            "outlier": far.distance, "neighbours": far.neighbours}  # fmt: skip


def _annotators(row: Judged) -> int | None:
    """Returns how many people judged a row; None where not all are known."""
    names = {vote.annotator for vote in row.votes}
    return None if "" in names else len(names)


def _reasons(disputed: float, against: float, odd: float) -> list[str]:
    found = {DISPUTED: disputed > 0, CONTRADICTED: against > 0, OUTLIER: odd >= _ODD}
    return [reason for reason, holds in found.items() if holds]


def _nulls(values: Doubles) -> pa.Array:
    return pa.array(values, pa.float64(), mask=np.isnan(values))


def write_labels(path: Path, rows: pa.RecordBatch) -> None:
    """Writes `rows` of schema LABELS to `path`, whole or not at all; the same rows are the same bytes.

    Raises:
      SchemaError: `rows` has other columns.
      DataError: the disk is full or the folder cannot be written.
    """

    table = pa.Table.from_batches([conform(rows, LABELS)])
    files.write_atomic(path, lambda temporary: sealed.write_table(table, temporary))
