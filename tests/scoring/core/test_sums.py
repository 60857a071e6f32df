"""Exact sums: right to the last bit, in any order and grouping."""

import math
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scoring.core.sums import ExactSum

VALUES = st.lists(
    st.floats(allow_nan=False, allow_infinity=False, width=64, min_value=-1e200, max_value=1e200), max_size=60
)


@given(VALUES, st.randoms(use_true_random=False))
def test_any_order_and_grouping_gives_the_bits_of_fsum(values: list[float], rng: random.Random) -> None:
    shuffled = rng.sample(values, len(values))
    total = ExactSum()
    cut = rng.randint(0, len(values))
    for group in (shuffled[:cut], shuffled[cut:]):
        total.add(np.array(group, np.float64))
    assert float(total.total()) == math.fsum(values)
    assert total.count == len(values)


def test_the_mean_of_a_constant_is_the_constant() -> None:
    total = ExactSum()
    total.add(np.full(1_000_003, 0.1))
    assert total.mean() == 0.1


def test_the_mean_of_nothing_is_zero() -> None:
    assert ExactSum().mean() == 0.0


def test_subnormal_values_count() -> None:
    total = ExactSum()
    total.add(np.array([5e-324, 5e-324, 1.0, -1.0]))
    assert float(total.total()) == 1e-323
