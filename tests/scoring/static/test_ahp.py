"""AHP: the eigenvector against power iteration and a published example, and the words of a contradiction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.core.errors import ConfigError
from scoring.static.ahp import most_inconsistent, priorities, reciprocal, require_consistent


def triangle(weights: list[float]) -> list[list[float]]:
    return [[weights[i] / w for w in weights[i + 1 :]] for i in range(len(weights) - 1)]


@given(st.lists(st.floats(0.2, 5.0), min_size=1, max_size=15))
def test_a_perfectly_consistent_matrix_gives_its_weights_back(weights: list[float]) -> None:
    found = priorities(reciprocal(triangle(weights)))
    np.testing.assert_allclose(found.weights, np.array(weights) / sum(weights), rtol=1e-9)
    assert found.lambda_max == pytest.approx(len(weights))
    assert found.consistency_ratio == pytest.approx(0, abs=1e-9)


def test_a_textbook_example() -> None:
    # [[1, 3, 5], [1/3, 1, 3], [1/5, 1/3, 1]]: weights .637 .258 .105, λmax 3.0385, CR .033
    found = priorities(reciprocal([[3, 5], [3]]))
    np.testing.assert_allclose(found.weights, [0.6370, 0.2583, 0.1047], atol=5e-5)
    assert found.lambda_max == pytest.approx(3.0385, abs=5e-5)
    assert found.consistency_ratio == pytest.approx(0.0385 / 2 / 0.58, abs=1e-4)


JUDGEMENTS = st.sampled_from([1 / 9, 1 / 3, 1, 2, 5, 9])


@given(
    st.integers(3, 12).flatmap(
        lambda n: st.tuples(*(st.lists(JUDGEMENTS, min_size=k, max_size=k) for k in range(n - 1, 0, -1)))
    )
)
def test_any_matrix_agrees_with_power_iteration(rows: tuple[list[float], ...]) -> None:
    matrix = reciprocal(rows)
    vector = np.ones(len(matrix))
    for _ in range(3000):
        vector = matrix @ vector
        vector /= vector.sum()
    found = priorities(matrix)
    np.testing.assert_allclose(found.weights, vector, atol=1e-8)
    assert found.lambda_max == pytest.approx(float((matrix @ vector)[0] / vector[0]), rel=1e-6)
    assert found.consistency_ratio >= 0


@pytest.mark.parametrize("rows", [[], [[9]]])
def test_two_dimensions_cannot_contradict_each_other(rows: list[list[float]]) -> None:
    assert priorities(reciprocal(rows)).consistency_ratio == 0


def test_the_entry_that_was_turned_round_is_named_first() -> None:
    names = ["a", "b", "c", "d", "e"]
    rows = triangle([5, 4, 3, 2, 1])
    rows[0][3] = 1 / 5  # a is 5 times e, not a fifth
    matrix = reciprocal(rows)
    worst = most_inconsistent(matrix, priorities(matrix).weights)
    assert (worst[0].row, worst[0].column) == (0, 4)
    assert worst[0].consistent > 3 * worst[0].value
    assert len(worst) == 3
    with pytest.raises(ConfigError) as caught:
        require_consistent(matrix, names, max_ratio=0.1, where="static.ahp")
    said = str(caught.value)
    assert said.count("a consistent value is") == 3
    assert "fix these first: a against e is 0.2, a consistent value is" in said
    assert caught.value.exit_code == 2


def test_a_consistent_matrix_passes() -> None:
    assert require_consistent(reciprocal([[3, 5], [3]]), "abc", max_ratio=0.1, where="").weights.sum() == pytest.approx(
        1
    )
