"""Spearman's rank correlation, of arrays and of the sums that a database makes."""

import math

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def spearman(a: Reals, b: Reals) -> float:
    """Returns the rank correlation of (n,) `a` and `b`, ties sharing their mean rank; NaN where one is constant.

    Doubled ranks are whole numbers, so the sums are exact: up to three million values fit an int64.
    """
    x, y = (_doubled_ranks(values) - (len(values) + 1) for values in (a, b))
    return pearson(len(a), 0, 0, int(x @ x), int(y @ y), int(x @ y))


def pearson(n: int, a: int, b: int, aa: int, bb: int, ab: int) -> float:
    """Returns the correlation of n pairs of whole numbers from Σa, Σb, Σa², Σb², Σab; NaN where one is constant."""
    spread = (n * aa - a * a) * (n * bb - b * b)
    return (n * ab - a * b) / math.sqrt(spread) if spread else math.nan


def _doubled_ranks(values: Reals) -> Ints:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((2 * np.cumsum(counts) - (counts - 1))[places], np.int64)
