"""The LQS transform: bands, notes and nulls of each kind of row."""

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from support import scored_corpus

from scoring.lqs.config import LqsConfig
from scoring.lqs.formula import Moments
from transforms.core import schemas
from transforms.gradients.notes import NOT_SAMPLED
from transforms.lqs.transform import Corpus, score_batch

CONFIG = LqsConfig(
    formula="weighted", learnability_weight=0.7, quality_weight=0.3, norm_discount=0.0, high_value=1.5, alpha=0.5,
    clip=3.0,
)  # fmt: skip
CORPUS = Corpus(
    mean_norm=2.0, static=Moments(0.5, 0.25), lqs=Moments(1.0, 0.5), log_norm=Moments(0.0, 1.0),
    band_ends=((0.0, "b"), (1.0, "b")),
)  # fmt: skip
FIELDS = ("grad_norm", "target_cosine", "costate_dot", "costate_cosine")


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    columns: dict[str, pa.Array] = {"sample_id": pa.array([r["id"] for r in rows], pa.string())}
    for folder in ("clean", "dedup", "quality"):
        columns[f"{folder}.kept"] = pa.array([r.get(folder, True) for r in rows], pa.bool_())
    columns["static.static_score"] = pa.array([r.get("static") for r in rows], pa.float64())
    for field in FIELDS:
        columns[f"gradients.{field}"] = pa.array([r.get(field) for r in rows], pa.list_(pa.float64()))
    columns["gradients.gradient_tokens"] = pa.array([r.get("tokens", 100) for r in rows], pa.int32())
    columns["gradients.gradient_note"] = pa.array([r.get("note") for r in rows], pa.string())
    return pa.record_batch(columns)


def one(row: dict[str, Any], config: LqsConfig = CONFIG, corpus: Corpus = CORPUS) -> dict[str, Any]:
    found = score_batch(batch({"id": "a", **row}), config, corpus)
    assert found.schema.equals(schemas.LQS)
    return found.to_pylist()[0]


GOOD = {"grad_norm": [9.0, 4.0], "target_cosine": [0.0, 0.0], "costate_dot": [8.0, None], "costate_cosine": [0.5, None]}


def test_a_whole_row() -> None:
    # learnability 4/2, quality (0 + 1)/2, lqs 1.55, z 1.1; static z 2; score 1.55
    found = one({**GOOD, "static": 1.0})
    assert found["learnability"] == 2.0
    assert found["gradient_quality"] == 0.5
    assert found["lqs"] == pytest.approx(1.55)
    assert found["lqs_z"] == pytest.approx(1.1)
    assert found["score"] == pytest.approx(1.55)
    assert (found["high_value"], found["band"], found["score_note"]) == (True, "challenge", None)


def test_high_value_means_the_norm_in_both_formulas() -> None:
    found = one({**GOOD, "static": 1.0}, replace(CONFIG, formula="delt"))
    assert found["learnability"] == 2.25  # 9/4, not a norm over the mean norm
    assert found["lqs"] == 2.0
    assert found["high_value"] is True
    assert one({**GOOD, "grad_norm": [9.0, 2.0], "static": 1.0}, replace(CONFIG, formula="delt"))["high_value"] is False


def test_a_row_whose_tokens_pull_one_way_is_discounted() -> None:
    # relative to 1: ln(4 · √4) = 2.08; lqs 2, z 2; (2 − 0.5 · 2.08)/√1.25
    config = replace(CONFIG, formula="delt", norm_discount=0.5)
    found = one({**GOOD, "tokens": 4, "static": 1.0}, config)
    assert found["lqs_z"] == pytest.approx((2 - 0.5 * math.log(8)) / math.sqrt(1.25))


@pytest.mark.parametrize(
    ("row", "score", "note"),
    [
        ({"static": 0.75}, 1.0, "static only: no text"),
        ({"static": 0.75, "note": "infinite gradient"}, 1.0, "static only: infinite gradient"),
        ({"static": 0.75, "note": NOT_SAMPLED}, 1.0, "static only: not in the proxy sample"),  # and there is no scorer
        (
            {"static": 0.75, **GOOD, "grad_norm": [1.0, float("inf")]},
            1.0,
            "static only: gradient is zero or not finite",
        ),
        (
            {"static": 0.75, **GOOD, "target_cosine": [0.0, float("nan")]},
            1.0,
            "static only: gradient is zero or not finite",
        ),
        (GOOD, 1.1, "gradients only: no static score"),
        ({}, None, "no score: no static score, no text"),
    ],
)
def test_what_a_score_lacks_is_said(row: dict[str, Any], score: float | None, note: str) -> None:
    found = one(row)
    assert found["score"] == (pytest.approx(score) if score else None)
    assert found["score_note"] == note
    assert (found["band"] is None) == (found["high_value"] is None) == (score is None)


@pytest.mark.parametrize("folder", ["clean", "dedup", "quality"])
def test_a_dropped_row_is_null(folder: str) -> None:
    found = one({**GOOD, "static": 1.0, folder: False})
    assert {k: v for k, v in found.items() if v is not None} == {"sample_id": "a"}


def test_bands_end_at_a_row_not_at_a_score() -> None:
    rows = [
        {"id": i, "static": s} for i, s in (("a", 0.5), ("b", 0.5), ("c", 0.5), ("b", 0.75), ("c", 0.75), ("a", 0.25))
    ]
    found = score_batch(batch(*rows), CONFIG, CORPUS)
    bands = ["base", "base", "reinforcement", "reinforcement", "challenge", "base"]
    assert found["band"].to_pylist() == bands


def test_lists_of_another_length_are_no_gradients() -> None:
    found = score_batch(
        batch({"id": "a", **GOOD, "static": 0.5}, {"id": "b", "grad_norm": [1.0], "static": 0.5}), CONFIG, CORPUS
    )
    assert found["lqs"].is_valid().to_pylist() == [True, False]


def test_no_rows() -> None:
    assert score_batch(batch(), CONFIG, CORPUS).num_rows == 0
    assert scored_corpus.row(0)["gradients"].keys() >= set(FIELDS)
