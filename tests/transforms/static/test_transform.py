"""The static transforms: what each kind of row gets, what is refused, and batches of any shape."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import scored_corpus
from support.places import SHIPPED

from pipelines.core import params
from pipelines.static import COUNT_READS, RAW_READS, SCORE_READS
from scoring.core.errors import ConfigError
from scoring.static.dimensions import DIMENSIONS
from scoring.static.unigrams import Unigrams
from transforms.core import parts, schemas
from transforms.static.config import StaticConfig
from transforms.static.media import media_length, media_readings, small_picture, spread
from transforms.static.transform import count_batch, load_unigrams, read_batch, score_batch

CONFIG = params.read(SHIPPED).section("static", StaticConfig)
UNIGRAMS = Unigrams(words={"the": 9, "river": 3}, word_total=40, chars={"e": 20}, char_total=100)


def batch(tmp_path: Path, rows: list[dict[str, Any]], reads: parts.Reads) -> pa.RecordBatch:
    project = scored_corpus.write(tmp_path, rows, max(1, len(rows)))
    return parts.read_columns(project.data, parts.names(project.folder("samples"))[0], reads)


def raw(tmp_path: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = read_batch(batch(tmp_path, rows, RAW_READS), UNIGRAMS, max_tokens=200)
    assert found.schema.equals(schemas.STATIC_RAW)
    return found.to_pylist()


def named(row: dict[str, Any]) -> set[str]:
    return {d for d in (*DIMENSIONS, *schemas.STATIC_READINGS) if row[d] is not None}


def test_every_kind_of_row_gets_its_own_readings(tmp_path: Path) -> None:
    rows = raw(tmp_path, [scored_corpus.row(n) for n in (0, 3, 4, 5, 6, 21, 22, 23)])
    text, dropped, late, chinese, unscored, image, video, audio = rows
    everything = set(DIMENSIONS)
    picture = everything - {"rare_words"} | {"visual_learnability"}
    assert named(text) == everything
    assert named(dropped) == named(late) == set()
    assert named(chinese) == everything
    assert named(unscored) == everything - {"predictability"}
    assert named(image) == picture - {"predictability", "originality"}
    assert named(video) == picture - {"predictability"} | {"frame_ssim"}
    assert named(audio) == everything - {"rare_words", "predictability", "originality"}
    assert text["length"] == pytest.approx(np.log(21))
    assert text["originality"] == 1.0
    gradient = scored_corpus.gradient(0)
    assert text["predictability"] == gradient["order_gain"] - gradient["loss"][-1]
    assert image["length"] == pytest.approx(np.log(640 * 480 + 1))
    assert chinese["reading_difficulty"] < 8 < text["reading_difficulty"]  # bits against points


def test_a_picture_with_a_caption_is_read_as_a_picture_and_keeps_its_loss(tmp_path: Path) -> None:
    row = scored_corpus.row(9)
    caption = {**row, "clean": {"clean_text": "A hill.", **scored_corpus.KEPT}, "gradients": scored_corpus.gradient(9)}
    (found,) = raw(tmp_path, [caption])
    assert named(found) == set(DIMENSIONS) - {"rare_words", "originality"} | {"visual_learnability"}
    assert found["syntactic_variety"] > 2  # of its edges


def test_payloads_that_do_not_decode_leave_the_length(tmp_path: Path) -> None:
    rows = [scored_corpus.row(n) for n in (9, 10, 11)]
    for r in rows:
        broken = {"bytes": b"\xff\xd8\xff", "path": "x"}
        r["samples"] |= {k: (broken if k == "audio" else [broken]) for k in ("images", "audio") if k in r["samples"]}
    assert [named(r) for r in raw(tmp_path, rows)] == [{"length"}] * 3


def test_payloads_that_are_missing() -> None:
    for modality in ("image", "video", "audio"):
        assert media_readings(modality, None, None) == {}
    assert small_picture({"bytes": None}) is None
    assert np.isnan(media_length("image", width=None, height=3, duration_s=None))
    assert np.isnan(media_length("audio", width=None, height=None, duration_s=None))


def test_a_video_is_read_from_frames_spread_over_it() -> None:
    frames = [{"bytes": bytes([k])} for k in range(20)]
    assert [f["bytes"][0] for f in spread(frames, 8) if f] == [0, 2, 5, 7, 10, 12, 15, 17]
    assert spread(frames[:3], 8) == frames[:3]
    assert spread([], 8) == []


def test_a_large_picture_is_read_small() -> None:
    payload = scored_corpus.picture(1, side=500)
    found = small_picture(payload)
    assert found is not None
    pixels, weight = found
    assert max(pixels.shape[:2]) == 128
    assert weight == len(payload["bytes"]) / 250_000


def test_counts_come_from_kept_texts_alone(tmp_path: Path) -> None:
    rows = [scored_corpus.row(n) for n in (0, 3)]
    rows[0]["clean"]["clean_text"] = "To be or not to be"
    found = count_batch(batch(tmp_path, rows, COUNT_READS), max_tokens=5).to_pylist()
    words = {r["token"]: r["count"] for r in found if r["kind"] == "word"}
    assert words == {"to": 2, "be": 1, "or": 1, "not": 1}
    assert sum(r["count"] for r in found if r["kind"] == "char") == len("To be or not to ")
    assert found == sorted(found, key=lambda r: (r["kind"], r["token"]))


def test_a_table_of_counts_is_read_back(tmp_path: Path) -> None:
    rows = [("char", "a", 4), ("word", "", 2), ("word", "the", 5)]
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schemas.TOKEN_COUNTS, strict=True)]
    pq.write_table(pa.Table.from_arrays(columns, schema=schemas.TOKEN_COUNTS), tmp_path / "u.parquet")
    found = load_unigrams(tmp_path / "u.parquet")
    assert found == Unigrams(words={"the": 5}, word_total=7, chars={"a": 4}, char_total=4)


def test_an_empty_batch_gives_empty_columns(tmp_path: Path) -> None:
    assert raw(tmp_path, []) == []
    counts = count_batch(batch(tmp_path, [], COUNT_READS), max_tokens=5)
    assert counts.schema.equals(schemas.TOKEN_COUNTS)
    assert counts.num_rows == 0


def test_scores_follow_bounds_direction_and_weights() -> None:
    values = {"length": [1.0, None], "rare_words": [10.0, None]}
    found = score_batch(
        scored(values), {"length": {"text": (0.0, 2.0)}, "rare_words": {"text": (0.0, 40.0)}}, CONFIG.scale
    )
    first, second = found.to_pylist()
    weights = CONFIG.weights
    assert (first["length"], first["rare_words"]) == (0.5, 0.75)  # few rare words are good
    whole = weights["length"] + weights["rare_words"]
    logs = math.log(0.5) * weights["length"] + math.log(0.75) * weights["rare_words"]
    assert first["static_score"] == pytest.approx(math.exp(logs / whole))
    summed = score_batch(
        scored(values), {"length": {"text": (0.0, 2.0)}, "rare_words": {"text": (0.0, 40.0)}},
        replace(CONFIG, mean="sum").scale,
    ).to_pylist()[0]  # fmt: skip
    assert summed["static_score"] == pytest.approx((0.5 * weights["length"] + 0.75 * weights["rare_words"]) / whole)
    assert second["static_score"] is None
    assert found.schema.equals(schemas.STATIC)


def scored(values: dict[str, list[float | None]]) -> pa.RecordBatch:
    rows = len(next(iter(values.values())))
    columns: dict[str, pa.Array] = {
        "sample_id": pa.array([str(k) for k in range(rows)]),
        "samples.modality": pa.array(["text"] * rows),
        "clean.language": pa.array(["en"] * rows),
    }
    for column in SCORE_READS["static/raw"]:
        columns[f"static/raw.{column}"] = pa.array(values.get(column, [None] * rows), pa.float64())
    return pa.record_batch(columns)


def test_the_shipped_weights_put_what_finds_noise_first() -> None:
    weights = CONFIG.weights
    assert sum(weights.values()) == pytest.approx(1)
    assert CONFIG.priorities.consistency_ratio < 0.02
    ranked = sorted(weights, key=lambda d: -weights[d])
    assert ranked[0] == "predictability"
    assert set(ranked[1:4]) == {"originality", "cleanliness", "coherence"}
    assert weights["length"] < 0.04


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"low_quantile": 0.99}, "low_quantile 0.99"),
        ({"max_tokens": 0}, "max_tokens 0"),
        ({"vocabulary": 0}, "vocabulary 0"),
        ({"ahp": {k: v for k, v in CONFIG.ahp.items() if k != "originality"}}, r"missing \['originality'\]"),
        ({"ahp": {**CONFIG.ahp, "lenght": (1.0,)}}, r"unknown \['lenght'\]"),
        ({"ahp": {**CONFIG.ahp, "coherence": (1.0, 1.0)}}, "ahp.coherence has 2 values, must have 3"),
        ({"ahp": {**CONFIG.ahp, "originality": (0.0,)}}, "ahp.originality"),
        ({"ahp": {**CONFIG.ahp, "originality": (10.0,)}}, "Saaty"),
    ],
)
def test_wrong_params_are_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(CONFIG, **change)


def test_contradicting_judgements_are_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="length against"):
        replace(CONFIG, ahp={**CONFIG.ahp, "length": (9.0, 0.2) * 5 + (9.0,)})
