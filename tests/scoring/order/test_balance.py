"""Where an order is cut: by hand, and against a slow walk."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.order.balance import cut_shards


@pytest.mark.parametrize(
    ("complexity", "ends", "dedicated"),
    [
        ([], [], []),
        ([1], [1], [False]),
        ([9], [1], [True]),
        ([1] * 8, [8], [False]),
        ([1] * 9, [8, 9], [False, False]),
        ([9] * 3, [1, 2, 3], [True] * 3),
        ([2] * 4, [4], [False]),  # at the threshold is not above it
        ([1, 1, 1, 9, 1, 1, 1, 1, 1, 1, 1, 1], [1, 2, 3, 4, 12], [True] * 4 + [False]),  # until the costly row is gone
        ([1, 1, 1, 1, 9, 9, 9, 9, 9], [8, 9], [False, True]),  # the block is base rows, a shared shard two of them
    ],
)
def test_cuts_by_hand(complexity: list[float], ends: list[int], dedicated: list[bool]) -> None:
    cut = cut_shards(np.array(complexity, np.float64), base_rows=4, threshold=2.0)
    assert cut.ends.tolist() == ends
    assert cut.dedicated.tolist() == dedicated


@given(st.lists(st.sampled_from([0.5, 1.0, 30.0]), max_size=200), st.integers(1, 20))
def test_every_row_is_in_one_shard_of_the_declared_size(values: list[float], base: int) -> None:
    cut = cut_shards(np.array(values, np.float64), base_rows=base, threshold=4.0)
    assert cut.rows.sum() == len(values)
    wanted = np.where(cut.dedicated, max(1, base // 4), 2 * base)
    assert (cut.rows[:-1] == wanted[:-1]).all()
    assert (cut.rows <= wanted).all()
    assert (cut.rows > 0).all()
    for start, on in zip(cut.starts.tolist(), cut.dedicated.tolist(), strict=True):
        block = values[start : start + base]
        assert on == (sum(block) / len(block) > 4.0)
