"""The way from raw values to a score: quantiles, groups, renormalised weights."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.static.dimensions import DIMENSIONS
from scoring.static.scale import FALLING, group, unit_interval, weighted_mean, weighted_product
from transforms.core import schemas

VALUES = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(math.nan)), max_size=20)


def test_the_names_are_those_of_the_schema() -> None:
    assert schemas.STATIC.names == ["sample_id", *DIMENSIONS, "static_score"]
    assert set(DIMENSIONS) > FALLING


@pytest.mark.parametrize(
    ("raw", "falling", "expected"),
    [(1.0, False, 0.0), (3.0, False, 1.0), (2.0, False, 0.5), (-9.0, False, 0.0), (9.0, False, 1.0), (1.5, True, 0.75)],
)
def test_quantiles_map_to_zero_and_one(raw: float, falling: bool, expected: float) -> None:
    assert unit_interval(np.array([raw]), ["text"], {"text": (1.0, 3.0)}, falling=falling).tolist() == [expected]


def test_a_constant_dimension_is_in_the_middle() -> None:
    assert unit_interval(np.array([4.0, 7.0]), ["a", "a"], {"a": (4.0, 4.0)}, falling=True).tolist() == [0.5, 0.5]


def test_each_group_has_its_own_scale() -> None:
    bounds = {"text": (0.0, 10.0), "image": (0.0, 2.0)}
    found = unit_interval(np.array([1.0, 1.0, 1.0]), ["text", "image", "audio"], bounds, falling=False)
    np.testing.assert_array_equal(found, [0.1, 0.5, np.nan])


@given(VALUES, st.floats(-1e6, 1e6), st.floats(0, 1e6), st.booleans())
def test_the_scale_is_bounded_monotone_and_keeps_nulls(
    raw: list[float], low: float, span: float, falling: bool
) -> None:
    values = np.array(raw, np.float64)
    found = unit_interval(values, ["g"] * len(raw), {"g": (low, low + span)}, falling=falling)
    assert (np.isnan(found) == np.isnan(values)).all()
    known = ~np.isnan(values)
    assert ((found[known] >= 0) & (found[known] <= 1)).all()
    steps = np.diff(found[known][np.argsort(values[known], kind="stable")])
    assert (steps <= 0).all() if falling else (steps >= 0).all()


def test_only_reading_difficulty_is_scaled_by_language() -> None:
    assert group("text", "reading_difficulty", english=True) == "text/en"
    assert group("interleaved", "reading_difficulty", english=False) == "interleaved/other"
    assert group("image", "reading_difficulty", english=True) == "image"
    assert group("text", "length", english=True) == "text"


def test_weights_are_renormalised_over_what_a_row_has() -> None:
    nan = math.nan
    values = {"a": np.array([1.0, nan, 0.5, nan]), "b": np.array([0.0, 0.25, 0.5, nan])}
    found = weighted_mean(values, {"a": 3.0, "b": 1.0})
    np.testing.assert_array_equal(found, [0.75, 0.25, 0.5, nan])


@given(st.lists(st.tuples(*[st.one_of(st.floats(0, 1), st.just(math.nan))] * 12), max_size=10))
def test_a_weighted_mean_stays_between_its_parts(rows: list[tuple[float, ...]]) -> None:
    table = np.array(rows, np.float64).reshape(-1, 12)
    weights = {d: 1.0 + k for k, d in enumerate(DIMENSIONS)}
    found = weighted_mean({d: table[:, k] for k, d in enumerate(DIMENSIONS)}, weights)
    for row, score in zip(table, found, strict=True):
        known = row[~np.isnan(row)]
        assert math.isnan(score) if not len(known) else known.min() - 1e-12 <= score <= known.max() + 1e-12


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.floats(0.001, 0.5))
def test_a_product_is_the_geometric_mean_above_the_floor(row: list[float], floor: float) -> None:
    names = [str(k) for k in range(len(row))]
    weights = {n: 1.0 + k for k, n in enumerate(names)}
    found = weighted_product({n: np.array([v, np.nan]) for n, v in zip(names, row, strict=True)}, weights, floor=floor)
    whole = sum(weights.values())
    truth = math.prod(max(v, floor) ** (weights[n] / whole) for n, v in zip(names, row, strict=True))
    assert found[0] == pytest.approx(truth)
    assert math.isnan(found[1])


def test_what_fails_once_does_not_make_up_for_it() -> None:
    even, torn = np.array([0.5]), (np.array([1.0]), np.array([0.0]))
    weights = {"a": 1.0, "b": 1.0}
    assert weighted_mean({"a": torn[0], "b": torn[1]}, weights) == weighted_mean({"a": even, "b": even}, weights)
    product = weighted_product({"a": torn[0], "b": torn[1]}, weights, floor=0.02)
    assert product < weighted_product({"a": even, "b": even}, weights, floor=0.02)
