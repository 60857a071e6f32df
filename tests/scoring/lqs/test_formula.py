"""The LQS formulas against plain loops, and the mix that no NaN leaves."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.core.errors import ConfigError
from scoring.lqs.config import LqsConfig
from scoring.lqs.formula import (
    Gradients,
    Moments,
    band_ends,
    delt,
    discounted,
    log_norm,
    lqs,
    mix,
    relative_norm,
    weighted,
    z_score,
)

NAN = math.nan
CONFIG = LqsConfig(
    formula="delt", learnability_weight=0.7, quality_weight=0.3, norm_discount=0.5, high_value=1.5, alpha=0.5, clip=3.0
)


def gradients(norm: Any, cosine: Any = None, dot: Any = None, costate: Any = None) -> Gradients:
    shape = np.array(norm, np.float64).shape
    filled = [np.full(shape, NAN) if v is None else np.array(v, np.float64) for v in (norm, cosine, dot, costate)]
    return Gradients(np.full(shape[0], 100.0), *filled)


def test_weighted_by_hand() -> None:
    found = weighted(gradients([[9.0, 2.0], [9.0, 4.0]], [[0.0, 1.0], [0.0, -0.5]]), CONFIG, mean_norm=2.0)
    np.testing.assert_allclose(found.learnability, [1.0, 2.0])
    np.testing.assert_allclose(found.quality, [1.0, 0.25])
    np.testing.assert_allclose(found.lqs, [1.0, 0.7 * 2 + 0.3 * 0.25])


ROW = st.integers(2, 5).flatmap(lambda t: st.tuples(*[st.lists(st.floats(0.01, 100), min_size=t, max_size=t)] * 3))


@given(ROW)
def test_delt_agrees_with_a_plain_loop(row: tuple[list[float], list[float], list[float]]) -> None:
    norm, dot, cosine = row
    found = delt(gradients([norm], None, [[*dot[:-1], NAN]], [[*cosine[:-1], NAN]]))
    steps = range(len(norm) - 1)
    assert found.learnability[0] == pytest.approx(sum(norm[t] / norm[t + 1] for t in steps))
    assert found.quality[0] == pytest.approx(sum(cosine[t] for t in steps))
    assert found.lqs[0] == pytest.approx(sum(dot[t] / norm[t + 1] for t in steps))


def test_log_norm_is_of_the_last_checkpoint_and_free_of_length() -> None:
    long, short = Gradients(np.array([64.0, 16.0]), *gradients([[9.0, 0.5], [9.0, 1.0]])[1:]), math.log(4.0)
    np.testing.assert_allclose(log_norm(long), [short, short])
    assert np.isnan(log_norm(gradients([[1.0, 0.0], [1.0, NAN]]))).all()


def test_a_large_norm_is_discounted_in_the_delt_formula_alone() -> None:
    z = np.array([1.0, 1.0, NAN])
    found = discounted(z, np.array([0.0, 3.0, 1.0]), CONFIG)
    np.testing.assert_allclose(found, np.array([1.0, 1.0 - 0.5 * 3.0, NAN]) / math.sqrt(1.25))
    for off in ({"norm_discount": 0.0}, {"formula": "weighted"}):
        np.testing.assert_array_equal(discounted(z, np.array([0.0, 3.0, 1.0]), replace(CONFIG, **off)), z)


@pytest.mark.parametrize("norm", [[1.0, 0.0], [NAN, 1.0], [math.inf, 1.0], [1.0, 1e-200]])
def test_a_degenerate_gradient_is_no_score(norm: list[float]) -> None:
    found = delt(gradients([norm], [[0.1, 0.1]], [[1.0, NAN]], [[0.5, NAN]]))
    assert all(math.isnan(v[0]) for v in found)


def test_delt_on_one_checkpoint_names_both_remedies() -> None:
    with pytest.raises(ConfigError) as caught:
        delt(gradients([[1.0]]))
    assert "lqs.formula" in str(caught.value)
    assert "reference.checkpoints" in str(caught.value)


def test_no_gradients_at_all() -> None:
    nothing = gradients(np.zeros((2, 0)))
    for config in (CONFIG, replace(CONFIG, formula="weighted")):
        assert np.isnan(lqs(nothing, config, mean_norm=0.0).lqs).all()
    assert len(delt(gradients(np.zeros((0, 3)))).lqs) == 0


def test_relative_norm_of_a_corpus_without_norm_is_unknown() -> None:
    assert np.isnan(relative_norm(gradients([[0.0, 0.0]]), mean_norm=0.0)).all()


def test_z_scores_are_clipped_and_a_constant_is_zero() -> None:
    found = z_score(np.array([0.0, 5.0, 100.0, NAN]), Moments(5.0, 2.0), clip=3.0)
    np.testing.assert_array_equal(found, [-2.5, 0.0, 3.0, NAN])
    np.testing.assert_array_equal(z_score(np.array([5.0, NAN]), Moments(5.0, 0.0), clip=3.0), [0.0, NAN])


@pytest.mark.parametrize(
    ("static", "score", "expected"), [(2.0, -1.0, 1.25), (2.0, NAN, 2.0), (NAN, -1.0, -1.0), (NAN, NAN, NAN)]
)
def test_what_a_row_lacks_leaves_its_weight_to_the_other(static: float, score: float, expected: float) -> None:
    np.testing.assert_array_equal(mix(np.array([static]), np.array([score]), alpha=0.25), [expected])


def test_no_negative_zero_reaches_a_sort() -> None:
    assert math.copysign(1.0, mix(np.array([-0.0]), np.array([-0.0]), alpha=0.5)[0]) == 1.0


MAYBE = st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.tuples(MAYBE, MAYBE, MAYBE, MAYBE, st.booleans()), max_size=6),
    st.floats(0, 1),
    st.sampled_from(["delt", "weighted"]),
)
def test_no_gradient_makes_a_score_that_is_not_finite(
    rows: list[tuple[float, float, float, float, bool]], alpha: float, formula: str
) -> None:
    table = np.array([r[:4] for r in rows], np.float64).reshape(-1, 4)
    drawn = Gradients(np.full(len(rows), 9.0), *(table[:, k : k + 1].repeat(3, 1) for k in range(4)))
    found = lqs(drawn, replace(CONFIG, formula=formula), mean_norm=0.5)
    z = z_score(found.lqs, Moments(0.0, 1.0), clip=3.0)
    static = np.array([0.5 if r[4] else NAN for r in rows])
    score = mix(static, z, alpha=alpha)
    for k, row in enumerate(rows):
        assert math.isfinite(score[k]) if row[4] else (math.isnan(score[k]) or abs(score[k]) <= 3)


@pytest.mark.parametrize(
    ("rows", "ends"), [(0, (0, 0)), (1, (1, 1)), (2, (1, 2)), (3, (2, 3)), (5, (2, 4)), (10, (4, 8))]
)
def test_bands_are_fifths_rounded_up(rows: int, ends: tuple[int, int]) -> None:
    assert band_ends(rows) == ends


@pytest.mark.parametrize(
    "change", [{"alpha": 1.1}, {"alpha": -0.1}, {"clip": 0.0}, {"norm_discount": -0.1}, {"quality_weight": -1.0}]
)
def test_out_of_range_names_the_field(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(CONFIG, **change)
