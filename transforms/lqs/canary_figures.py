"""How well the scores separate junk from good rows, by signal and kind of junk."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.core import parts
from transforms.lqs.config import LqsSection
from transforms.lqs.transform import Corpus, mix_batch

GOOD = "good"
LABELLED_GOOD = "labelled_good"
LABELLED_BAD = "labelled_bad"
MIN_ROWS = 8  # fewer tell nothing

_NO_TEXT = -1e9  # the score of a row that has none: the worst

Floats = npt.NDArray[np.float64]


def figures(measured: pa.RecordBatch, config: LqsSection, corpus: Corpus) -> dict[str, dict[str, float]]:
    """Returns signal → kind → AUC: how often a good row scores above a bad one of that kind.

    The signals are the final `score`, its parts `static` and `lqs`, and what they are made of. Junk made from good
    rows is compared with these, labelled bad rows with labelled good ones.
    """
    scored = mix_batch(measured, config, corpus)
    signals = {
        "score": scored.score,
        "static": parts.floats(measured["static.static_score"]),
        "lqs": scored.lqs_z,
        "formula": scored.lqs,
        "low_norm": -scored.relative_norm,
        "predictability": parts.floats(measured["static/raw.predictability"]),
    }
    kinds = np.array(measured["kind"].to_pylist(), object)
    return {signal: _by_kind(values, kinds) for signal, values in signals.items()}


def _by_kind(values: Floats, kinds: npt.NDArray[np.object_]) -> dict[str, float]:
    groups = {kind: values[kinds == kind] for kind in dict.fromkeys(kinds.tolist())}
    against = {LABELLED_BAD: LABELLED_GOOD}
    return {
        kind: auc(groups[against.get(kind, GOOD)], found)
        for kind, found in groups.items()
        if kind not in (GOOD, LABELLED_GOOD)
    }


def auc(good: Floats, bad: Floats) -> float:
    """Returns the share of pairs in which the good row scores higher, ties half; a missing score is the worst."""
    from sklearn.metrics import roc_auc_score

    labels = np.concatenate([np.ones(len(good)), np.zeros(len(bad))])
    return float(roc_auc_score(labels, np.nan_to_num(np.concatenate([good, bad]), nan=_NO_TEXT)))
