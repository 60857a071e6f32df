"""Scores of batches: windows, verdicts, nulls, and independence of the company a row is in."""

import dataclasses
from pathlib import Path

import numpy as np
import prose
import pyarrow as pa
import pytest
from builders import REPO

from pipelines import params
from scoring import encoding, models
from scoring.errors import ConfigError, ToolError
from scoring.quality_head import Head
from transforms import quality, schemas
from transforms.quality import QualityConfig, Scorer

CONFIG = params.read(REPO / "params.yaml").section("quality", QualityConfig)
HEAD = Head(np.random.default_rng(1).normal(scale=20.0, size=384), 0.0)  # steep: it shows any difference
LONG = "A long text wanders on about " + "rivers and hills, and then about people, " * 150


def change(**values: object) -> QualityConfig:
    return dataclasses.replace(CONFIG, **values)  # type: ignore[arg-type]


def batch(rows: list[tuple[str | None, bool | None, bool | None]]) -> pa.RecordBatch:
    """Rows are (text, kept by clean, kept by dedup)."""
    texts, clean, dedup = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.record_batch(
        {
            "sample_id": pa.array([f"s{k}" for k in range(len(rows))], pa.string()),
            "clean.clean_text": pa.array(texts, pa.large_string()),
            "clean.kept": pa.array(clean, pa.bool_()),
            "dedup.kept": pa.array(dedup, pa.bool_()),
        }
    )


def kept(texts: list[str | None]) -> pa.RecordBatch:
    return batch([(t, True, True) for t in texts])


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    found = quality.load_scorer(CONFIG, Path(), 1, HEAD.to_bytes())
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
    assert found[0]["quality"] == found[0]["quality_min"] == found[0]["quality_max"]


@pytest.mark.parametrize("rows", [[], [(None, None, None)]])
def test_nothing_to_score(scorer: Scorer, rows: list[tuple[None, None, None]]) -> None:
    assert [r["kept"] for r in score(batch(rows), scorer)] == [None] * len(rows)


def test_without_a_head_every_row_passes_unscored() -> None:
    assert quality.load_scorer(CONFIG, Path("/nowhere"), 1, None) is None
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
    expected = scorer.classify([ids[s : s + 100] for s in starts])[0][:, 0]
    for name, value in (("mean", expected.mean()), ("min", expected.min()), ("max", expected.max())):
        assert rows[name]["quality"] == pytest.approx(value, abs=1e-5)
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


def test_two_megabytes_are_scored(scorer: Scorer) -> None:
    row = score(kept(["wind and rain " * 150_000]), scorer, change(window_tokens=64, max_windows=2))[0]
    assert (row["windows"], row["coverage"]) == (2, pytest.approx(128 / 450_000))


def test_a_classifier_s_good_labels_are_summed(tmp_path: Path) -> None:
    import torch

    name = prose.classifier(tmp_path / "model", ["Junk", "Fine", "Superb"])
    config = change(model=name, head="model", good_labels=("fine", "SUPERB"), window_tokens=62)
    scorer = quality.load_scorer(config, tmp_path, 1, None)
    texts = list(prose.paragraphs()[:6])
    found = score(kept(texts), scorer, config)
    assert all(r["embedding"] is None for r in found)
    tokenizer, model = models.load_tokenizer(name), models.load_classifier(name)
    for text, row in zip(texts, found, strict=True):
        if row["windows"] == 1:
            with torch.inference_mode():
                p = model(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0]
            assert row["quality"] == pytest.approx(float(p[1] + p[2]), abs=1e-5)
            assert row["quality_label"] == ["Junk", "Fine", "Superb"][int(p.argmax())]
    assert any(r["windows"] == 1 for r in found)


def test_a_regression_s_value_is_the_score(tmp_path: Path) -> None:
    name = prose.classifier(tmp_path / "model", ["LABEL_0"])
    config = change(model=name, head="model", window_tokens=62, min_quality=3.0)
    found = score(kept(list(prose.paragraphs()[:12])), quality.load_scorer(config, tmp_path, 1, None), config)
    assert any(not 0 <= float(str(r["quality"])) <= 1 for r in found)
    assert all((r["quality_label"] == "good") == (float(str(r["quality"])) >= 3.0) == r["kept"] for r in found)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"good_labels": ("great",)}, r"it has \['Junk', 'Fine'\]"), ({"window_tokens": 63}, "the model takes 62")],
)
def test_a_classifier_that_does_not_fit_the_params(tmp_path: Path, values: dict[str, object], message: str) -> None:
    name = prose.classifier(tmp_path / "model", ["Junk", "Fine"])
    config = change(**{"model": name, "head": "model", "good_labels": ("fine",), "window_tokens": 62, **values})
    with pytest.raises(ConfigError, match=message):
        quality.load_scorer(config, tmp_path, 1, None)


def test_a_model_that_gives_no_numbers_is_an_error(scorer: Scorer) -> None:
    nothing = (np.full((1, 1), np.nan), np.zeros((1, 0), np.float32))
    broken = dataclasses.replace(scorer, classify=lambda found: nothing)
    with pytest.raises(ToolError, match="no numbers"):
        score(kept(["Rain."]), broken)


@pytest.mark.parametrize(
    "values",
    [
        {"window_tokens": 0}, {"stride_tokens": 0}, {"max_windows": -1}, {"heldout_ratio": 0.0}, {"heldout_ratio": 1.0},
        {"min_heldout_f1": 1.1}, {"refresh_ratio": -0.1}, {"min_quality": float("nan")},
    ],
)  # fmt: skip
def test_impossible_values_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        change(**values)
