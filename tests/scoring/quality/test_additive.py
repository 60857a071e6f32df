"""The additive model against the logistic regression that it is, and what it makes of odd values."""

import numpy as np

from scoring.quality import additive
from scoring.quality import figures as quality_figures


def test_it_adds_up_and_knows_missing_and_constant_values() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 4))
    values[:60, 1] = np.nan
    values[:, 3] = 5.0
    good = np.where(np.isnan(values[:, 1]), rng.random(300) < 0.9, values[:, 0] > 0)
    model = additive.fit(values, good)
    parts = model.contributions(values)
    np.testing.assert_allclose(parts.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(parts.sum(1) + model.bias, model.logits(values))
    assert set(parts[:, 3]) == {0.0}
    assert parts[0, 1] > parts[60:, 1].max()
    assert quality_figures.auc(model.logits(values), good) > 0.8
    assert np.isfinite(model.logits(np.array([[np.nan] * 4, [np.inf] * 4, [-np.inf] * 4]))).all()
    np.testing.assert_allclose(model.scaled(2.0, 1.0).logits(values), 2 * model.logits(values) + 1)


def test_it_is_the_logistic_regression_on_its_steps() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(1)
    values = rng.normal(size=(200, 2))
    values[::7, 1] = np.nan
    good = values[:, 0] + rng.normal(size=200) > 0
    model = additive.fit(values, good)
    above = np.where(np.isnan(values)[..., None], 0.5, values[:, :, None] > model.edges)
    steps = np.concatenate([np.isnan(values)[..., None], above], 2).reshape(200, -1)
    scaled = StandardScaler().fit_transform(steps)
    truth = LogisticRegression(C=0.003, class_weight="balanced", max_iter=5000).fit(scaled, good)
    np.testing.assert_allclose(model.logits(values), truth.decision_function(scaled), atol=1e-9)


def test_no_values_leave_the_bias() -> None:
    model = additive.fit(np.full((40, 1), np.nan), np.arange(40) % 2 == 0)
    np.testing.assert_allclose(model.logits(np.zeros((3, 1))), model.logits(np.full((3, 1), np.nan)), atol=1e-9)
