"""The static score: raw dimensions onto [0, 1] by corpus quantiles, then a weighted mean (docs/scoring.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bounds = Mapping[str, tuple[float, float]]  # group → (low, high) corpus quantile of the raw values

# Dimensions where less is better. Against pages that people labelled bad, few rare words tell a good
# page (AUC .74), many do not: names, fragments and keyboard noise are what is rare.
FALLING = frozenset({"rare_words"})

TEXTUAL = ("text", "interleaved")  # modalities that are read as text; pictures beside it do not count
BY_LANGUAGE = "reading_difficulty"  # English in Flesch points, other text in bits per character


def group(modality: str, dimension: str, *, english: bool) -> str:
    """Returns the group whose quantiles map a row: its modality; by language where the unit differs."""
    split = dimension == BY_LANGUAGE and modality in TEXTUAL
    return f"{modality}/{'en' if english else 'other'}" if split else modality


def unit_interval(raw: Floats, groups: Sequence[str], bounds: Bounds, *, falling: bool) -> Floats:
    """Returns (n,) in [0, 1]: the low quantile of a row's group is 0, the high one 1; the other way if `falling`.

    A dimension that is constant in its group is 0.5. NaN stays NaN.
    """
    nan = (np.nan, np.nan)
    low, high = np.array([bounds.get(g, nan) for g in groups], np.float64).reshape(-1, 2).T
    span = high - low
    with np.errstate(invalid="ignore", over="ignore"):  # a span may be tiny; what follows clips
        position = np.divide(raw - low, span, out=np.full(len(raw), 0.5), where=span > 0)
    position = np.where(np.isnan(raw) | np.isnan(low), np.nan, np.clip(position, 0.0, 1.0))
    return 1.0 - position if falling else position


def weighted_mean(values: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Returns (n,) Σ w·v/Σ w over the dimensions that a row has; NaN where it has none."""
    size = len(next(iter(values.values())))
    total, weight = np.zeros(size), np.zeros(size)
    for dimension, column in values.items():  # one after another: the same bits in a batch of any size
        known = ~np.isnan(column)
        total += np.where(known, column, 0.0) * weights[dimension]
        weight += known * weights[dimension]
    return np.asarray(np.divide(total, weight, out=np.full(size, np.nan), where=weight > 0))


def weighted_product(values: Mapping[str, Floats], weights: Mapping[str, float], *, floor: float) -> Floats:
    """Returns (n,) Π max(v, floor)^(w/Σ w) over the dimensions that a row has; NaN where it has none.

    The weighted product model (Bridgman 1922): one dimension near 0 cannot be made up for by the others.
    """
    logs = {d: np.log(np.maximum(column, floor)) for d, column in values.items()}
    return np.exp(weighted_mean(logs, weights))


@dataclass(frozen=True)
class Scale:
    """How dimensions become a score."""

    weights: Mapping[str, float]
    floor: float | None  # of a weighted product; None: a weighted sum

    def mean(self, columns: Mapping[str, Floats]) -> Floats:
        """Returns (n,) the score of rows by their dimensions on [0, 1]."""
        if self.floor is None:
            return weighted_mean(columns, self.weights)
        return weighted_product(columns, self.weights, floor=self.floor)
