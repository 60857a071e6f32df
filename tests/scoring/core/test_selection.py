"""A share selects what it says: never everything by accident, never nothing in silence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.core.errors import ConfigError
from scoring.core.selection import share, top_share


@pytest.mark.parametrize(
    ("rows", "ratio", "wanted"),
    [(10, 1.0, 10), (10, 0.25, 3), (10, 0.24, 2), (1, 0.5, 1), (0, 0.5, 0), (0, 0.0, 0), (1000, 0.0, 0), (3, 1 / 3, 1)],
)
def test_shares_round_half_up(rows: int, ratio: float, wanted: int) -> None:
    assert top_share(rows, ratio, name="plan.top_ratio") == wanted


def test_a_share_that_rounds_to_no_row_is_an_error_with_a_remedy_that_works() -> None:
    with pytest.raises(
        ConfigError, match=r"plan\.top_ratio = 0\.001 selects no rows: the share of 100 rows rounds to 0"
    ) as error:
        top_share(100, 0.001, name="plan.top_ratio")
    assert error.value.exit_code == 2
    suggested = float(str(error.value).split("set it to ")[1].split(" ")[0])
    assert top_share(100, suggested, name="plan.top_ratio") == 1


@given(st.integers(0, 10**9), st.floats(0, 1))
def test_a_share_is_within_half_a_row_and_never_above_all(rows: int, ratio: float) -> None:
    assert 0 <= share(rows, ratio) <= rows
    assert abs(share(rows, ratio) - ratio * rows) <= 0.5 + 1e-6
    assert share(rows, 1.0) == rows
    assert share(rows, 0.0) == 0
