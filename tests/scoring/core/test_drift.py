"""The drift of training rows: the Jaccard distance of two sets of ids."""

import pytest

from scoring.core import drift


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ("", "", 0.0), ("", "a", 1.0), ("ab", "ab", 0.0), ("ab", "cd", 1.0), ("abc", "abd", 0.5), ("ab", "bc", 2 / 3),
        ("aab", "ab", 0.0),
    ],
)  # fmt: skip
def test_distance(before: str, now: str, found: float) -> None:
    assert drift.distance(list(before), list(now)) == pytest.approx(found, rel=0, abs=1e-15)
