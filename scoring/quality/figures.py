"""How well a quality head does on rows that it has not seen: against length alone, by group, at equal length."""

from collections.abc import Mapping, Sequence

import numpy as np

from scoring.core.types import JsonObject
from scoring.quality.head import Bools, Doubles, Fitted, Ints, Labelled

_CALIBRATION_BINS = 10
_MIN_GROUP = 8  # rows of each class that a domain or language needs for figures of its own
_STRATA = 5  # of length


def figures(fitted: Fitted, good: Bools, chars: Doubles, groups: Mapping[str, Sequence[str]]) -> JsonObject:
    """Returns the figures on unseen rows: all metrics of each way, its AUC among rows of similar length and by group.

    `groups` name the rows' domain, language and so on; one with fewer than 8 rows of a class is left out.
    """
    ways = fitted.unseen
    return {
        "ways": {way: {**evaluate(p, good), "auc_at_like_length": auc_within(p, good, _strata(chars))}
                 for way, p in ways.items()},
        **{f"auc_by_{kind}": {name: {way: auc(p[rows], good[rows]) for way, p in ways.items()}
                              for name, rows in _able(names, good)} for kind, names in groups.items()},
    }  # fmt: skip


def _strata(chars: Doubles) -> Ints:
    return np.searchsorted(np.quantile(chars, np.linspace(0, 1, _STRATA + 1)[1:-1]), chars)


def _able(names: Sequence[str], good: Bools) -> list[tuple[str, Bools]]:
    found = []
    for name in sorted(set(names)):
        rows = np.array([n == name for n in names], bool)
        if name and min((rows & good).sum(), (rows & ~good).sum()) >= _MIN_GROUP:
            found.append((name, rows))
    return found


def auc_within(probabilities: Doubles, good: Bools, strata: Ints) -> float | None:
    """Returns the share of pairs of a good and another row of one stratum in which the good one scores higher."""
    inside = total = 0.0
    for stratum in np.unique(strata):
        rows = strata == stratum
        pairs = int(good[rows].sum() * (~good[rows]).sum())
        if pairs:
            inside, total = inside + pairs * auc(probabilities[rows], good[rows]), total + pairs
    return round(inside / total, 6) if total else None


def auc(probabilities: Doubles, good: Bools) -> float:
    """Returns the share of pairs in which the good row scores higher, ties half, to six places."""
    from sklearn.metrics import roc_auc_score

    return round(float(roc_auc_score(good, probabilities)), 6)


def evaluate(probabilities: Doubles, good: Bools) -> dict[str, float]:
    """Returns accuracy, F1 (the mean over both classes), AUC and calibration error of P(good) against the truth.

    F1 is the macro mean, since a head that calls every row good has an F1 of 0.67 on the good class alone.
    """
    from sklearn.metrics import accuracy_score, f1_score

    found = probabilities >= 0.5
    values = {
        "accuracy": accuracy_score(good, found),
        "f1": f1_score(good, found, average="macro", zero_division=0.0),
        "auc": auc(probabilities, good),
        "calibration_error": calibration_error(probabilities, good),
    }
    return {name: round(float(value), 6) for name, value in values.items()}


def calibration_error(probabilities: Doubles, good: Bools) -> float:
    """Returns the expected calibration error over ten equal bins (Guo et al. 2017, eq. 3)."""
    bins = np.minimum((probabilities * _CALIBRATION_BINS).astype(int), _CALIBRATION_BINS - 1)
    n = np.bincount(bins, minlength=_CALIBRATION_BINS)
    gaps = np.bincount(bins, probabilities - good, minlength=_CALIBRATION_BINS)
    return float(np.abs(gaps).sum() / n.sum())


def detected(rows: Sequence[Labelled], probabilities: Doubles) -> dict[str, float]:
    """Returns, for each origin of `rows`, the share that the head puts on its right side."""
    hits: dict[str, list[bool]] = {}
    for row, p in zip(rows, probabilities, strict=True):
        hits.setdefault(row.origin, []).append(bool((p >= 0.5) == row.good))
    return {origin: round(sum(found) / len(found), 6) for origin, found in sorted(hits.items())}
