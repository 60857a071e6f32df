"""The fitted head: what it learns, how it is split, measured and stored."""

import numpy as np
import pytest

from scoring.quality import figures as quality_figures
from scoring.quality import head as quality_head
from scoring.quality.head import Fitted, Labelled

NAMES = ("level", "noise")


def cloud(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two overlapping clouds of n points each: embeddings in 20 dimensions, two values, and which are good."""
    rng = np.random.default_rng(seed)
    good = np.repeat([True, False], n)
    values = np.column_stack([rng.normal(size=2 * n) + 1.5 * good, rng.normal(size=2 * n)])
    return (rng.normal(size=(2 * n, 20)) + 0.4 * good[:, None]).astype(np.float32), values, good


def rows(n: int) -> list[Labelled]:
    return [Labelled(f"r{k}", "x", k % 2 == 0, "kept" if k % 2 == 0 else "noise") for k in range(n)]


def fitted(n: int) -> Fitted:
    embeddings, values, good = cloud(n)
    folds = np.arange(2 * n) % 5
    return quality_head.fit(embeddings, values, np.full(2 * n, 100.0), good, folds, NAMES)


def test_both_together_tell_unseen_points_apart_better_than_either() -> None:
    found = fitted(200)
    embeddings, values, good = cloud(300, seed=1)
    logits = found.head.linear.logits(embeddings)
    both = quality_figures.evaluate(found.head.probabilities(logits, values), good)
    assert both["auc"] > quality_figures.auc(logits, good) + 0.03
    assert both["auc"] > quality_figures.auc(values[:, 0], good) + 0.01
    assert both["calibration_error"] < 0.1
    unseen = quality_figures.auc(found.unseen["both"], cloud(200)[2])
    assert both["auc"] == pytest.approx(unseen, abs=0.05)


def test_a_head_fits_to_the_same_bytes_and_survives_its_file() -> None:
    head = fitted(50).head
    assert fitted(50).head.to_bytes() == head.to_bytes()
    again = quality_head.Head.from_bytes(head.to_bytes())
    embeddings, values, _ = cloud(3, seed=2)
    logits = head.linear.logits(embeddings)
    np.testing.assert_array_equal(again.probabilities(logits, values), head.probabilities(logits, values))
    assert again.names == (*NAMES, quality_head.MODEL)
    total = head.contributions(logits, values).sum(1) + head.stack.bias
    np.testing.assert_allclose(quality_head.logit(head.probabilities(logits, values)), total, atol=1e-9)


def test_length_is_no_help_where_all_are_as_long() -> None:
    embeddings, values, good = cloud(40)
    found = quality_head.fit(embeddings, values, np.full(80, 7.0), good, np.arange(80) % 4, NAMES)
    told = quality_figures.figures(found, good, np.full(80, 7.0), {"language": ["en"] * 80})
    assert 0.3 < told["ways"]["length"]["auc"] < 0.7
    assert set(told["auc_by_language"]["en"]) == {"length", "rules", "model", "both"}
    assert told["ways"]["both"]["auc_at_like_length"] == pytest.approx(told["ways"]["both"]["auc"], abs=1e-6)


def test_noise_is_told_apart_no_better_than_by_chance() -> None:
    rng = np.random.default_rng(3)
    good = np.arange(120) % 2 == 0
    noise = rng.normal(size=(120, 8)).astype(np.float32)
    chars = rng.uniform(1, 9, 120)
    found = quality_head.fit(noise, rng.normal(size=(120, 2)), chars, good, np.arange(120) // 2 % 5, NAMES)
    assert abs(quality_figures.auc(found.unseen["both"], good) - 0.5) < 0.2


def test_extreme_log_odds_overflow_nothing() -> None:
    assert quality_head.sigmoid(np.array([1e4, -1e4])).tolist() == [1.0, 0.0]
    assert np.isfinite(quality_head.logit(np.array([0.0, 1.0]))).all()


def test_folds_deal_out_each_class_whatever_the_order() -> None:
    found = rows(80)
    folds = quality_head.folds_of(found, 4, seed=1)
    good = np.array([r.good for r in found])
    assert np.bincount(folds[good]).tolist() == [10] * 4
    backwards = found[::-1]
    again = quality_head.folds_of(backwards, 4, seed=1)
    by_id = {r.row_id: f for r, f in zip(found, folds, strict=True)}
    assert {r.row_id: f for r, f in zip(backwards, again, strict=True)} == by_id


def test_calling_all_rows_good_is_not_a_good_f1() -> None:
    good = np.repeat([True, False], 50)
    assert quality_figures.evaluate(np.full(100, 0.9), good)["f1"] == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize(
    ("probabilities", "good", "error"),
    [
        ([1.0, 0.0], [True, False], 0.0),
        ([1.0, 1.0], [False, False], 1.0),
        ([0.75, 0.75, 0.75, 0.75], [True, True, True, False], 0.0),
        ([0.05, 0.95], [True, False], 0.95),
        ([0.85, 0.95], [True, True], 0.1),  # gaps of 0.15 and 0.05 in bins of one row each
    ],
)
def test_calibration_error(probabilities: list[float], good: list[bool], error: float) -> None:
    found = quality_figures.calibration_error(np.array(probabilities), np.array(good))
    assert found == pytest.approx(error)


def test_detected_is_the_share_on_the_right_side_by_origin() -> None:
    found = quality_figures.detected(rows(4), np.array([0.9, 0.9, 0.1, 0.2]))
    assert found == {"kept": 0.5, "noise": 0.5}


@pytest.mark.parametrize(("strata", "expected"), [([0, 0, 0, 0], 0.75), ([0, 0, 1, 1], 1.0), ([0, 1, 2, 3], None)])
def test_auc_within_strata_counts_pairs_of_one_stratum(strata: list[int], expected: float | None) -> None:
    good = np.array([True, False, True, False])
    found = quality_figures.auc_within(np.array([0.9, 0.5, 0.4, 0.1]), good, np.array(strata))
    assert found == expected


def test_a_group_with_few_rows_of_a_class_has_no_figures() -> None:
    names = ["de"] * 7 + ["en"] * 33
    told = quality_figures.figures(fitted(20), cloud(20)[2], np.arange(40.0), {"language": names})
    assert list(told["auc_by_language"]) == ["en"]
