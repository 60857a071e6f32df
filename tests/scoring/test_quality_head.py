"""The fitted head: what it learns, how it is split, measured and stored, and what labels it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring import quality_head
from scoring.errors import ConfigError
from scoring.quality_head import Labelled


def cloud(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping clouds of n points each in 20 dimensions."""
    rng = np.random.default_rng(seed)
    good = np.repeat([True, False], n)
    return (rng.normal(size=(2 * n, 20)) + 0.6 * good[:, None]).astype(np.float32), good


def rows(n: int) -> list[Labelled]:
    return [Labelled(f"r{k}", "x", k % 2 == 0, "kept" if k % 2 == 0 else "noise") for k in range(n)]


def write(path: Path, lines: list[object]) -> Path:
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines), encoding="utf-8")
    return path


def labelled(n: int, label: object, word: str) -> list[object]:
    return [{"text": f"{word} {k}", "label": label} for k in range(n)]


def test_a_head_tells_unseen_points_apart_and_fits_to_the_same_bytes() -> None:
    head = quality_head.fit(*cloud(200))
    points, good = cloud(200, seed=1)
    found = quality_head.evaluate(head.probabilities(points), good)
    assert found["auc"] > 0.85
    assert found["f1"] > 0.75
    assert found["calibration_error"] < 0.1
    assert quality_head.fit(*cloud(200)).to_bytes() == head.to_bytes()


def test_a_head_survives_its_file_and_is_a_logistic_regression() -> None:
    head = quality_head.fit(*cloud(50))
    again = quality_head.Head.from_bytes(head.to_bytes())
    points, _ = cloud(3, seed=2)
    np.testing.assert_array_equal(again.probabilities(points), head.probabilities(points))
    expected = 1 / (1 + np.exp(-(points.astype(float) @ head.weights + head.bias)))
    np.testing.assert_allclose(head.probabilities(points), expected, rtol=1e-12)


def test_extreme_embeddings_overflow_nothing() -> None:
    head = quality_head.Head(np.array([1e4]), 0.0)
    assert head.probabilities(np.array([[1.0], [-1.0]], np.float32)).tolist() == [1.0, 0.0]


def test_held_out_rows_are_the_share_of_each_class_whatever_the_order() -> None:
    found = rows(80)
    held = quality_head.heldout(found, 0.25, seed=1)
    assert sum(held) == 20
    assert sum(h and r.good for h, r in zip(held, found, strict=True)) == 10
    names = {r.row_id for h, r in zip(held, found, strict=True) if h}
    backwards = found[::-1]
    again = quality_head.heldout(backwards, 0.25, seed=1)
    assert {r.row_id for h, r in zip(again, backwards, strict=True) if h} == names


def test_calling_all_rows_good_is_not_a_good_f1() -> None:
    good = np.repeat([True, False], 50)
    assert quality_head.evaluate(np.full(100, 0.9), good)["f1"] == pytest.approx(1 / 3, abs=1e-6)


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
    found = quality_head.calibration_error(np.array(probabilities), np.array(good))
    assert found == pytest.approx(error)


def test_detected_is_the_share_on_the_right_side_by_origin() -> None:
    found = quality_head.detected(rows(4), np.array([0.9, 0.9, 0.1, 0.2]))
    assert found == {"kept": 0.5, "noise": 0.5}


@given(st.text(alphabet="abc ", max_size=200), st.integers(1, 50), st.integers(0, 99))
def test_an_excerpt_is_a_bounded_stretch_of_the_text(text: str, chars: int, seed: int) -> None:
    found = quality_head.excerpt(text, chars, np.random.default_rng(seed))
    assert found in text
    assert len(found) <= chars or found == text
    assert bool(found) == bool(text)


def test_labels_are_read_in_the_order_of_their_ids_and_once(tmp_path: Path) -> None:
    lines = [*labelled(25, 1, "fine"), "", *labelled(25, "Spam", "win"), *labelled(1, "1", "fine")]
    found = quality_head.read_labels(write(tmp_path / "a.jsonl", lines), ["1", "good"])
    assert sum(r.good for r in found) == 25
    assert len(found) == 50
    assert quality_head.read_labels(write(tmp_path / "b.jsonl", lines[::-1]), ["1", "good"]) == found


def test_a_lone_surrogate_in_a_label_file_is_replaced(tmp_path: Path) -> None:
    lines = [*labelled(20, "good", "fine"), *labelled(20, "bad", "\ud800")]
    assert len(quality_head.read_labels(write(tmp_path / "a.jsonl", lines), ["good"])) == 40


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (labelled(40, "good", "fine"), "40 good, 0 other"),
        (labelled(40, "spam", "win"), "0 good, 40 other"),
        ([*labelled(19, "good", "fine"), *labelled(40, "bad", "win")], "19 good, 40 other"),
        (["{}"], "no text in"),
        ([{"text": " ", "label": "good"}], "no text in"),
        ([{"text": "fine", "label": "good"}, {"text": "fine"}], "line 2"),
        ([{"text": "fine", "label": None}], "no label in"),
        (["nonsense"], "line 1"),
        (["[1]"], "no text in"),
        ([], "0 good, 0 other"),
    ],
)
def test_labels_that_cannot_be_learned_from(tmp_path: Path, lines: list[object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        quality_head.read_labels(write(tmp_path / "labels.jsonl", lines), ["good"])


def test_a_missing_label_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the labels.*"):
        quality_head.read_labels(tmp_path / "none.jsonl", ["good"])
