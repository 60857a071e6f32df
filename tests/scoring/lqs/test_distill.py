"""The distilled scorer: against scikit-learn and SciPy, what it refuses, what it does with features that lack."""

import dataclasses
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from scoring.core.errors import ConfigError
from scoring.core.hashing import chosen
from scoring.core.ranks import spearman
from scoring.lqs import distill
from scoring.lqs.config import DistillConfig
from scoring.lqs.distill import Distilled, Quantiles, Scaling, feature_matrix, fit

CONFIG = DistillConfig(min_spearman=0.5, min_rows=50, max_rows=10_000, seed=7)
NUMBERS = st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6)


def ids_of(count: int) -> list[str]:
    return [f"row-{k}" for k in range(count)]


def problem(n: int = 240, d: int = 12, *, seed: int = 1) -> tuple[Any, Any]:
    """Returns (n, d) features and (n,) scores of a heavy tail that follow from them but for some noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(3.0, [10.0**k for k in np.linspace(-4, 4, d)], (n, d))
    z = (features - 3.0) / features.std(axis=0)
    return features, np.exp(1.5 * (z[:, 0] - z[:, 5] + 0.5 * rng.normal(size=n))) - 4.0


@pytest.mark.parametrize("strength", range(len(distill._STRENGTHS)))
def test_the_weights_are_scikit_learn_s(strength: int) -> None:
    features, scores = problem(d=6)
    columns = Scaling.of(features, 0).apply(features)
    penalty = distill._STRENGTHS[strength] * len(scores)
    found = distill._ridge(columns.T @ columns, columns.T @ scores, len(scores))[:, strength]
    np.testing.assert_allclose(found, Ridge(alpha=penalty, fit_intercept=False).fit(columns, scores).coef_, rtol=1e-6)


def test_unseen_rows_are_predicted_by_the_other_folds_alone() -> None:
    features, scores = problem()
    folds = np.arange(len(scores)) % 5
    columns = Scaling.of(features, 0).apply(features)
    found = distill._unseen(columns, scores, folds)[3]
    for fold in range(5):
        own = folds == fold
        model = Ridge(alpha=distill._STRENGTHS[3] * (~own).sum(), fit_intercept=False)
        np.testing.assert_allclose(found[own], model.fit(columns[~own], scores[~own]).predict(columns[own]), rtol=1e-6)


def test_the_scorer_is_scikit_learn_s_kernel_ridge_where_every_row_is_a_landmark() -> None:
    features, scores = problem(200)
    found = fit(features, scores, ids_of(200), CONFIG)
    order = distill._picked(scores, ids_of(200), CONFIG)
    columns, target = found.scaling.apply(features[order]), found.quantiles.normalised(scores[order])
    model = KernelRidge(kernel="rbf", gamma=1.0, alpha=found.card["penalty"] * 200).fit(columns, target)
    predicted = found.quantiles.normalised(found.predict(features[order]))
    np.testing.assert_allclose(predicted, model.predict(columns), atol=2e-3)


def test_predicts_what_follows_from_the_features_and_measures_how_well() -> None:
    features, scores = problem(800)
    found = fit(features[:240], scores[:240], ids_of(240), CONFIG)
    predicted = found.predict(features[240:])
    truth = spearman(predicted, scores[240:])
    assert truth > 0.75
    assert found.card["spearman_heldout"] == pytest.approx(truth, abs=0.08)
    assert (found.card["rows"], found.card["features"]) == (240, 12)
    assert scores[:240].min() <= predicted.min() <= predicted.max() <= scores[:240].max()


def test_a_row_like_no_other_is_predicted_to_be_the_median() -> None:
    features, scores = problem()
    found = fit(features, scores, ids_of(240), CONFIG)
    assert found.predict(np.full((1, 12), 1e9))[0] == pytest.approx(np.median(scores), abs=0.05)


def test_an_embedding_weighs_as_much_as_all_other_features() -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(300, 40)) * rng.uniform(0.1, 50, 40)
    features[:, 3] = 1.0
    for width, share in ((0, 0.0), (32, 0.5), (40, 1.0)):
        variances = Scaling.of(features, width).apply(features).var(axis=0)
        assert (variances.sum(), variances[:width].sum()) == (pytest.approx(1.0), pytest.approx(share)), width


def test_the_order_of_the_rows_changes_no_byte_and_another_seed_does() -> None:
    features, scores = problem()
    ids, order = np.array(ids_of(len(scores))), np.random.default_rng(3).permutation(len(scores))
    first = fit(features, scores, ids.tolist(), CONFIG).to_bytes()
    assert fit(features[order], scores[order], ids[order].tolist(), CONFIG).to_bytes() == first
    assert fit(features, scores, ids.tolist(), dataclasses.replace(CONFIG, seed=8)).to_bytes() != first


def test_bytes_hold_all_of_it() -> None:
    features, scores = problem()
    features[::3, 2:5] = np.nan
    found = fit(features, scores, ids_of(len(scores)), CONFIG)
    again = Distilled.from_bytes(found.to_bytes())
    assert (again.card, again.to_bytes()) == (found.card, found.to_bytes())
    assert (again.predict(features) == found.predict(features)).all()


def test_a_feature_that_lacks_counts_as_its_mean_and_says_something_by_lacking() -> None:
    scores = problem(600)[1]
    lacking = scores < np.quantile(scores, 0.4)
    blind = np.random.default_rng(5).normal(size=(600, 4))
    blind[lacking, 1:3] = np.nan  # lacking together: one pattern
    scaling = Scaling.of(blind, 0)
    assert scaling.patterns.tolist() == [1]
    columns = scaling.apply(blind)
    assert columns.shape == (600, 5)
    np.testing.assert_allclose(columns.mean(axis=0), 0.0, atol=1e-12)
    assert (columns[lacking, 1:3] == 0).all()
    assert fit(blind, scores, ids_of(600), CONFIG).card["spearman_heldout"] > 0.6


def test_constant_and_empty_features_and_rows_without_any_do_no_harm() -> None:
    features, scores = problem()
    wide = np.column_stack([features, np.full(240, 7.5), np.full(240, np.nan), np.zeros(240)])
    found = fit(wide, scores, ids_of(240), CONFIG)
    plain = fit(features, scores, ids_of(240), CONFIG)
    np.testing.assert_allclose(found.predict(wide), plain.predict(features), rtol=1e-9)
    assert np.isfinite(found.predict(np.full((3, 15), np.nan))).all()
    assert found.predict(np.zeros((0, 15))).shape == (0,)


def test_a_row_is_predicted_alike_in_a_batch_of_any_size() -> None:
    features, scores = problem(n=300, d=97)
    features[::5, 7] = np.nan
    found = fit(features, scores, ids_of(300), dataclasses.replace(CONFIG, min_spearman=0.1))
    whole = found.predict(features)
    for size in (1, 3, 64):
        cuts = [found.predict(features[k : k + size]) for k in range(0, 300, size)]
        np.testing.assert_array_equal(np.concatenate(cuts), whole)


def test_rows_without_a_finite_score_are_left_out() -> None:
    features, scores = problem()
    more = np.concatenate([scores, [np.nan, np.inf, -np.inf]])
    found = fit(np.vstack([features, features[:3]]), more, ids_of(243), CONFIG)
    assert found.to_bytes() == fit(features, scores, ids_of(240), CONFIG).to_bytes()


def test_no_more_than_max_rows_are_fitted() -> None:
    features, scores = problem()
    assert fit(features, scores, ids_of(240), dataclasses.replace(CONFIG, max_rows=130)).card["rows"] == 130


def test_noise_is_refused() -> None:
    features, scores = problem()
    noise = np.random.default_rng(9).permutation(scores)
    wanted = (
        r"(?s)held-out Spearman of the predicted scores is too low: -?0\.\d+ over \d+ rows.*"
        r"min_spearman: 0\.5.*remedy: raise gradients"
    )
    with pytest.raises(ConfigError, match=wanted):
        fit(features, noise, ids_of(240), CONFIG)
    with pytest.raises(ConfigError, match="held-out Spearman of the predicted scores is too low"):
        fit(np.zeros((240, 2)), scores, ids_of(240), CONFIG)


@pytest.mark.parametrize(("rows", "what"), [(0, "0 rows have"), (1, "1 rows have"), (49, "49 rows have")])
def test_too_few_rows_are_refused(rows: int, what: str) -> None:
    features, scores = problem(49)
    with pytest.raises(ConfigError, match=rf"(?s)cannot fit a model to predict scores: {what}.*min_rows: 50.*remedy"):
        fit(features[:rows], scores[:rows], ids_of(rows), CONFIG)


def test_equal_scores_are_refused() -> None:
    with pytest.raises(ConfigError, match=re.escape("all scores are 2.5")):
        fit(problem()[0], np.full(240, 2.5), ids_of(240), CONFIG)


def test_rows_of_one_id_are_held_out_together() -> None:
    """Copies of a row teach its noise by heart, which predicts nothing of rows that have no copy."""
    rng = np.random.default_rng(11)
    features, scores = rng.normal(size=(60, 59)), rng.normal(size=60)
    copies = (np.repeat(features, 5, axis=0), np.repeat(scores, 5))
    assert fit(*copies, ids_of(300), CONFIG).card["spearman_heldout"] > 0.9
    with pytest.raises(ConfigError, match="held-out Spearman of the predicted scores is too low"):
        fit(*copies, np.repeat(ids_of(60), 5).tolist(), CONFIG)


def test_a_share_is_drawn_by_the_id_and_grows_with_its_ratio() -> None:
    ids = ids_of(4000)
    tenth, half = (chosen(ids, r, 7, "proxy") for r in (0.1, 0.5))
    assert (tenth.mean(), half.mean()) == (pytest.approx(0.1, abs=0.02), pytest.approx(0.5, abs=0.03))
    assert (half | ~tenth).all()
    assert chosen(ids[::-1], 0.1, 7, "proxy")[::-1].tolist() == tenth.tolist()
    assert (chosen(ids, 0.5, 8, "proxy") != half).any()
    assert (chosen(ids, 0.5, 7, "heldout") != half).any()
    assert chosen(ids, 1.0, 7, "proxy").all()
    assert not chosen(ids, 0.0, 7, "proxy").any()
    assert chosen([], 0.5, 7, "proxy").shape == (0,)


@given(st.lists(NUMBERS, min_size=1, max_size=60))
def test_quantiles_keep_the_order_and_come_back(values: list[float]) -> None:
    scores = np.array(values)
    found = Quantiles.of(scores)
    assert (np.diff(found.scores) > 0).all()
    assert (np.diff(found.normalised(np.sort(scores))) >= 0).all()
    restored = found.restored(found.normalised(scores))
    assert ((restored >= scores.min()) & (restored <= scores.max())).all()
    np.testing.assert_allclose(restored, np.clip(scores, found.scores[0], found.scores[-1]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [pa.int8(), pa.float16(), pa.float32()])
def test_features_stand_beside_directions_and_lack_where_those_are_null(kind: pa.DataType) -> None:
    column = pa.array([[3, 4], None, [3], [0, 0], [0, -9]], pa.list_(kind))
    extra, nan = np.array([10.0, 20.0, np.nan, 40.0, 50.0]), np.nan
    expected = [[0.6, 0.8, 10], [nan, nan, 20], [nan, nan, nan], [nan, nan, 40], [0, -1, 50]]
    np.testing.assert_allclose(feature_matrix(column, 2, [extra]), expected)
    np.testing.assert_allclose(feature_matrix(column.slice(2), 2, [extra[2:]]), expected[2:])
    np.testing.assert_array_equal(feature_matrix(column, 0, [extra]), extra[:, None])
    assert feature_matrix(column.slice(0, 0), 2, []).shape == (0, 2)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"min_spearman": 1.5}, "min_spearman"), ({"min_spearman": -1.1}, "min_spearman"),
        ({"min_rows": 3}, "min_rows"), ({"max_rows": 49}, "max_rows"),
    ],
)  # fmt: skip
def test_configs_out_of_range_are_refused(change: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        dataclasses.replace(CONFIG, **change)
