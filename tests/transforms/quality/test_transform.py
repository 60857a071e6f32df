"""Scores of batches: windows, verdicts, nulls, and independence of the company a row is in."""

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support import prose
from support.places import SHIPPED

from pipelines.core import params
from scoring.core.errors import ConfigError, ToolError
from scoring.models import encoders, encoding
from scoring.models import load as models
from scoring.quality.additive import Additive
from scoring.quality.head import Head, Linear, logit, sigmoid
from transforms.clean import transform as clean
from transforms.clean.config import CleanConfig
from transforms.core import schemas
from transforms.quality import scorer as quality_scorer
from transforms.quality import transform as quality
from transforms.quality import values as quality_values
from transforms.quality.config import QualityConfig
from transforms.quality.scorer import Scorer

PARAMS = params.read(SHIPPED)
CONFIG, CLEAN = PARAMS.section("quality", QualityConfig), PARAMS.section("clean", CleanConfig)
EDGES = np.array([[-1.0, -0.5, 0.0, 0.5, 1.0]])
STEPS = Additive(EDGES, np.array([[-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 0.0]]), 0.0)


def head() -> Head:
    """A steep head, which shows any difference of embeddings, and one that says something of function words."""
    linear = Linear(np.random.default_rng(1).normal(scale=20.0, size=384), 0.0)
    count = len(quality_values.NAMES) + 1
    edges, table = np.full((count, 5), np.inf), np.zeros((count, 7))
    edges[-1], table[-1] = STEPS.edges[0], STEPS.table[0]
    words = quality_values.NAMES.index("function_word_ratio")
    edges[words, 0], table[words, :2] = 0.1, (-1.0, 1.0)
    return Head(linear, Additive(edges, table, 0.0), (*quality_values.NAMES, "model"))


HEAD = head()
LONG = "A long text wanders on about " + "rivers and hills, and then about people, " * 150


def change(**values: object) -> QualityConfig:
    return dataclasses.replace(CONFIG, **values)  # type: ignore[arg-type]


def batch(rows: list[tuple[str | None, bool | None, bool | None]]) -> pa.RecordBatch:
    """Rows are (text, kept by clean, kept by dedup), measured by the real `clean`."""
    texts, by_clean, by_dedup = zip(*rows, strict=True) if rows else ((), (), ())
    measured = clean.clean_batch(clean.samples_of(["" if t is None else t for t in texts], "t"), CLEAN, clean.load())
    columns = {f"clean.{name}": measured[name] for name in quality_values.COLUMNS}
    return pa.record_batch(
        {
            "sample_id": pa.array([f"s{k}" for k in range(len(rows))], pa.string()),
            **columns,
            "clean.clean_text": pa.array(texts, pa.large_string()),
            "clean.kept": pa.array(by_clean, pa.bool_()),
            "dedup.kept": pa.array(by_dedup, pa.bool_()),
        }
    )


def kept(texts: list[str | None]) -> pa.RecordBatch:
    return batch([(t, True, True) for t in texts])


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    found = quality_scorer.load_scorer(CONFIG, Path(), 1, HEAD.to_bytes())
    assert found is not None
    return found


def score(found: pa.RecordBatch, scorer: Scorer | None, config: QualityConfig = CONFIG) -> list[dict[str, object]]:
    return schemas.conform(quality.score_batch(found, config, scorer), schemas.QUALITY).to_pylist()


def test_every_fate_of_a_row(scorer: Scorer) -> None:
    rows = [("Rain falls.", True, True), (None, True, True), ("", True, True), (" \n", True, True),
            ("Dropped.", False, None), ("Twice.", True, False), (None, None, None)]  # fmt: skip
    found = score(batch(rows), scorer)
    assert [r["kept"] for r in found][1:] == [True, True, True, None, None, None]
    assert [r["reasons"] for r in found][1:] == [[], [], [], None, None, None]
    assert [r["windows"] for r in found] == [1, None, None, None, None, None, None]
    assert all(r["quality"] is r["quality_label"] is r["embedding"] is None for r in found[1:])
    assert found[0]["model_quality"] == found[0]["quality_min"] == found[0]["quality_max"]
    assert found[0]["window_scores"] == [found[0]["model_quality"]]


@pytest.mark.parametrize("rows", [[], [(None, None, None)]])
def test_nothing_to_score(scorer: Scorer, rows: list[tuple[None, None, None]]) -> None:
    assert [r["kept"] for r in score(batch(rows), scorer)] == [None] * len(rows)


def test_without_a_head_every_row_passes_unscored() -> None:
    assert quality_scorer.load_scorer(CONFIG, Path("/nowhere"), 1, None) is None
    found = score(batch([("Rain.", True, True), ("Rain.", False, None)]), None)
    assert [(r["kept"], r["quality"]) for r in found] == [(True, None), (None, None)]


def test_low_quality_is_dropped_with_its_reason(scorer: Scorer) -> None:
    value = score(kept(["Rain falls."]), scorer)[0]["quality"]
    assert isinstance(value, float)
    for bound, verdict in ((value, (True, [], "good")), (value + 1e-6, (False, ["low_quality"], "bad"))):
        row = score(kept(["Rain falls."]), scorer, change(min_quality=bound))[0]
        assert (row["kept"], row["reasons"], row["quality_label"]) == verdict


def test_a_row_scores_alike_in_whatever_company(scorer: Scorer) -> None:
    texts = [*prose.paragraphs()[:24], LONG, "Rain", "雨が降る。"]
    together = score(kept(texts), scorer)
    for other in (kept(texts[::-1]), *(kept([t]) for t in texts[:4])):
        for row, text in zip(score(other, scorer), other["clean.clean_text"].to_pylist(), strict=True):
            assert row["quality"] == pytest.approx(together[texts.index(text)]["quality"], abs=1e-5)
            np.testing.assert_allclose(row["embedding"], together[texts.index(text)]["embedding"], atol=1)
    tight = score(kept(texts), scorer, change(batch_tokens=1))
    np.testing.assert_allclose([r["quality"] for r in tight], [r["quality"] for r in together], atol=1e-5)


def test_windows_and_aggregates_of_a_long_text(scorer: Scorer) -> None:
    config = change(window_tokens=100, stride_tokens=100, max_windows=0)
    ids = next(encoding.token_ids(scorer.tokenizer, [LONG]))
    rows = {a: score(kept([LONG]), scorer, dataclasses.replace(config, aggregate=a))[0] for a in ("mean", "min", "max")}
    starts = [*range(0, len(ids) - 100, 100), len(ids) - 100]
    told, embeddings = scorer.classify([ids[s : s + 100] for s in starts])
    expected, mean = told[:, 0], sigmoid(HEAD.linear.logits(embeddings).mean(keepdims=True))[0]
    for name, value in (("mean", mean), ("min", expected.min()), ("max", expected.max())):
        assert rows[name]["model_quality"] == pytest.approx(value, abs=1e-5)
    np.testing.assert_allclose(rows["mean"]["window_scores"], expected, atol=1e-5)
    assert rows["mean"]["windows"] == len(starts)
    assert rows["mean"]["coverage"] == 1.0
    thinned = score(kept([LONG]), scorer, dataclasses.replace(config, max_windows=4))[0]
    assert (thinned["windows"], thinned["coverage"]) == (4, pytest.approx(400 / len(ids)))


def test_the_embedding_points_where_the_mean_of_its_windows_does(scorer: Scorer) -> None:
    config = change(window_tokens=100, stride_tokens=100, max_windows=0)
    row = score(kept([LONG]), scorer, config)[0]
    assert isinstance(row["embedding"], list)
    stored = np.array(row["embedding"])
    ids = next(encoding.token_ids(scorer.tokenizer, [LONG]))
    starts = [*range(0, len(ids) - 100, 100), len(ids) - 100]
    mean = scorer.classify([ids[s : s + 100] for s in starts])[1].mean(axis=0)
    assert (len(stored), np.abs(stored).max()) == (384, 127)
    np.testing.assert_allclose(stored, mean * 127 / np.abs(mean).max(), atol=1)
    assert stored @ mean / np.linalg.norm(stored) / np.linalg.norm(mean) > 0.999


def test_the_head_stacks_the_model_and_the_values_of_the_text(scorer: Scorer) -> None:
    prose_like, list_like = "The top of the hill is in the north of the town.", "Hill. Town. North. Top. Contact."
    for text, words in ((prose_like, 1.0), (list_like, -1.0)):
        row = score(kept([text]), scorer)[0]
        value = logit(np.array([row["model_quality"]]))
        total = words + STEPS.logits(value[:, None])[0]
        assert logit(np.array([row["quality"]]))[0] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("text", ["x" * 5_000_000, "字" * 100_000, "?"])
def test_odd_texts_are_scored(scorer: Scorer, text: str) -> None:
    row = score(kept([text]), scorer)[0]
    assert 0 <= float(str(row["quality"])) <= 1


def test_two_megabytes_are_scored(scorer: Scorer) -> None:
    row = score(kept(["wind and rain " * 150_000]), scorer, change(window_tokens=64, max_windows=2))[0]
    assert (row["windows"], row["coverage"]) == (2, pytest.approx(128 / 450_000))


def test_a_classifier_s_good_labels_are_summed(tmp_path: Path) -> None:
    import torch

    name = prose.classifier(tmp_path / "model", ["Junk", "Fine", "Superb"])
    config = change(model=name, dtype="float32", head="model", good_labels=("fine", "SUPERB"), window_tokens=62)
    scorer = quality_scorer.load_scorer(config, tmp_path, 1, None)
    texts = list(prose.paragraphs()[:6])
    found = score(kept(texts), scorer, config)
    assert all(r["embedding"] is None for r in found)
    tokenizer, model = models.load_tokenizer(name), encoders.load_classifier(name)
    for text, row in zip(texts, found, strict=True):
        if row["windows"] == 1:
            with torch.inference_mode():
                p = model(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0]
            assert row["quality"] == pytest.approx(float(p[1] + p[2]), abs=1e-5)
            assert row["quality_label"] == ["Junk", "Fine", "Superb"][int(p.argmax())]
    assert any(r["windows"] == 1 for r in found)


def test_labels_that_do_not_exclude_each_other_are_not_summed(tmp_path: Path) -> None:
    import json

    name = prose.classifier(tmp_path / "model", ["Junk", "Fine", "Superb"])
    path = tmp_path / "model/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "problem_type": "multi_label_classification"}))
    config = change(model=name, head="model", good_labels=("fine", "superb"), window_tokens=62)
    scorer = quality_scorer.load_scorer(config, tmp_path, 1, None)
    assert scorer is not None
    told = scorer.classify([next(encoding.token_ids(scorer.tokenizer, ["Rain falls."]))])[0][0]
    assert not np.isclose(told.sum(), 1)
    assert score(kept(["Rain falls."]), scorer, config)[0]["quality"] == pytest.approx(told[1:].max(), abs=1e-6)


def test_a_regression_s_value_is_the_score(tmp_path: Path) -> None:
    name = prose.classifier(tmp_path / "model", ["LABEL_0"])
    config = change(model=name, head="model", window_tokens=62, min_quality=3.0)
    found = score(kept(list(prose.paragraphs()[:12])), quality_scorer.load_scorer(config, tmp_path, 1, None), config)
    assert any(not 0 <= float(str(r["quality"])) <= 1 for r in found)
    assert all((r["quality_label"] == "good") == (float(str(r["quality"])) >= 3.0) == r["kept"] for r in found)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"good_labels": ("great",)}, r"it has \['Junk', 'Fine'\]"),
        ({"window_tokens": 63}, "the model accepts at most 62"),
    ],
)
def test_a_classifier_that_does_not_fit_the_params(tmp_path: Path, values: dict[str, object], message: str) -> None:
    name = prose.classifier(tmp_path / "model", ["Junk", "Fine"])
    config = change(**{"model": name, "head": "model", "good_labels": ("fine",), "window_tokens": 62, **values})
    with pytest.raises(ConfigError, match=message):
        quality_scorer.load_scorer(config, tmp_path, 1, None)


def test_a_model_that_gives_no_numbers_is_an_error(scorer: Scorer) -> None:
    nothing = (np.full((1, 1), np.nan), np.zeros((1, 0), np.float32))
    broken = dataclasses.replace(scorer, classify=lambda found: nothing)
    with pytest.raises(ToolError, match="not finite"):
        score(kept(["Rain."]), broken)


@pytest.mark.parametrize(
    "values",
    [
        {"window_tokens": 0}, {"stride_tokens": 0}, {"max_windows": -1}, {"folds": 2},
        {"min_heldout_f1": 1.1}, {"refresh_ratio": -0.1}, {"min_quality": float("nan")},
    ],
)  # fmt: skip
def test_impossible_values_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        change(**values)
