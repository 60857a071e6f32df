"""Sums of floats that are exact: the same bits in whatever order and grouping the values come."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import numpy.typing as npt

_MANTISSA_BITS = 53
_LOW_BITS = 26  # two halves of a mantissa: their int64 sums hold for 2**36 values per call
_LOW = (1 << _LOW_BITS) - 1


class ExactSum:
    """The exact sum and mean of finite float64 values, one integer an exponent."""

    def __init__(self) -> None:
        self._bins: dict[int, int] = defaultdict(int)
        self.count = 0

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Adds finite `values` (n,)."""
        mantissas, exponents = np.frexp(values)
        whole = np.ldexp(mantissas, _MANTISSA_BITS).astype(np.int64)
        for exponent in np.unique(exponents):
            picked = whole[exponents == exponent]
            high, low = int((picked >> _LOW_BITS).sum()), int((picked & _LOW).sum())
            self._bins[int(exponent)] += (high << _LOW_BITS) + low
        self.count += len(values)

    def total(self) -> Fraction:
        """Returns the sum of all values added."""
        two = Fraction(2)
        return sum((n * two ** (e - _MANTISSA_BITS) for e, n in self._bins.items()), Fraction(0))

    def mean(self) -> float:
        """Returns the mean, correctly rounded; 0 when nothing was added."""
        return float(self.total() / self.count) if self.count else 0.0
