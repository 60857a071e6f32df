"""Rank correlation against scipy's, and where it is no number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from scoring.core.ranks import spearman

NUMBERS = st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=40))
def test_spearman_is_scipy_s_with_ties(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert np.isnan(spearman(a, b))
    else:
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


def test_spearman_of_nothing_and_of_one_row_is_no_number() -> None:
    assert np.isnan(spearman(np.zeros(0), np.zeros(0)))
    assert np.isnan(spearman(np.ones(1), np.ones(1)))
