"""Token counts of batches of every modality, from real pictures, against costs computed by hand."""

import dataclasses
import io

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from support import builders, prose
from support.places import SHIPPED

from pipelines.core import params
from scoring.core.errors import DataError
from scoring.models import load as models
from scoring.order.cost_config import TokensConfig
from transforms import tokens
from transforms.core import features, schemas

CONFIG = params.read(SHIPPED).section("tokens", TokensConfig)
SOUND = {"bytes": b"RIFF", "path": "a.wav"}


@pytest.fixture(scope="module")
def tokenizer() -> object:
    return models.load_tokenizer(prose.MINILM)


def picture(width: int, height: int) -> dict[str, object]:
    sink = io.BytesIO()
    Image.new("RGB", (width, height)).save(sink, "JPEG")
    return {"bytes": sink.getvalue(), "path": "a.jpg"}


def batch(rows: list[dict[str, object]], kept: list[bool | None] | None = None) -> pa.RecordBatch:
    """Sample rows as the stage reads them; the clean text is the text."""
    samples = builders.batch(schemas.SAMPLES, [builders.sample(k, **r) for k, r in enumerate(rows)])
    columns = {f"samples.{n}": samples[n] for n in tokens.READS["samples"]}
    return pa.record_batch(
        {
            "sample_id": samples["sample_id"],
            **columns,
            "clean.clean_text": samples["text"],
            "clean.kept": pa.array([True] * len(rows) if kept is None else kept, pa.bool_()),
        }
    )


def count(found: pa.RecordBatch, tokenizer: object, config: TokensConfig = CONFIG) -> list[dict[str, object]]:
    return schemas.conform(tokens.count_batch(found, config, tokenizer), schemas.TOKENS_RAW).to_pylist()


def counts(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    names = ("text_tokens", "image_tokens", "video_tokens", "audio_tokens", "tokens")
    return [tuple(r[n] for n in names) for r in rows]


def test_every_modality(tokenizer: object) -> None:
    frames = [picture(8, 8)] * 3
    rows = [
        {"text": "wind and rain"},
        {"text": "a cat", "modality": "image", "images": [picture(8, 8)]},
        {"text": "a cat and a dog", "modality": "interleaved", "images": [picture(8, 8), None, picture(9, 9)]},
        {"text": None, "modality": "video", "images": frames, "duration_s": 3.0, "audio": SOUND},
        {"text": None, "modality": "video", "images": frames, "duration_s": 3.0},
        {"text": None, "modality": "audio", "duration_s": 4.02, "audio": SOUND},
        {"text": None},
    ]
    found = count(batch(rows), tokenizer)
    assert counts(found) == [
        (3, 0, 0, 0, 3), (2, 256, 0, 0, 258), (5, 512, 0, 0, 517), (0, 0, 384, 75, 459), (0, 0, 384, 0, 384),
        (0, 0, 0, 101, 101), (0, 0, 0, 0, 0),
    ]  # fmt: skip
    assert found[0]["flops"] == 6e9 * 3 + 12 * 24 * 2048 * 9
    assert found[6]["flops"] == 0.0


def test_patches_follow_the_stored_size_not_the_original(tokenizer: object) -> None:
    config = dataclasses.replace(CONFIG, image=dataclasses.replace(CONFIG.image, scheme="patch"))
    row = {"text": None, "modality": "image", "images": [picture(512, 384)], "width": 4000, "height": 3000}
    assert count(batch([row]), tokenizer, config)[0]["image_tokens"] == 259


def test_a_broken_stored_picture_names_its_sample(tokenizer: object) -> None:
    config = dataclasses.replace(CONFIG, image=dataclasses.replace(CONFIG.image, scheme="patch"))
    row = {"modality": "image", "images": [{"bytes": b"no picture", "path": "a.jpg"}]}
    with pytest.raises(DataError, match="sample s00"):
        count(batch([row]), tokenizer, config)


def test_dropped_rows_have_nulls_and_no_row_is_fine(tokenizer: object) -> None:
    found = count(batch([{"text": "one"}, {"text": "two"}, {"text": "three"}], [False, None, True]), tokenizer)
    assert [r["tokens"] for r in found] == [None, None, 1]
    assert set(found[0].values()) == {"s00", None}
    assert count(batch([]), tokenizer) == []


def test_a_text_of_two_megabytes(tokenizer: object) -> None:
    assert count(batch([{"text": "wind and rain " * 150_000}]), tokenizer)[0]["text_tokens"] == 450_000


@pytest.mark.parametrize(
    ("array", "size"),
    [
        (pa.array(["ab", None, "é"], pa.large_string()), [2, 0, 2]),
        (pa.array([1, None], pa.int32()), [4, 4]),
        (pa.array([True], pa.bool_()), [1]),
        (pa.array([[1.0, 2.0], None, []], pa.list_(pa.float64())), [16, 0, 0]),
        (
            pa.array([[{"bytes": b"abc", "path": "p"}, {"bytes": None, "path": "q"}], None], pa.list_(features.IMAGE)),
            [5, 0],
        ),
        (pa.array([{"bytes": b"abc", "path": None}, None], features.IMAGE), [3, 0]),
        (pa.array([["a"], ["bc", "d"], ["e"]], pa.list_(pa.string())).slice(1, 2), [3, 1]),
    ],
)
def test_decoded_bytes(array: pa.Array, size: list[int]) -> None:
    assert tokens.decoded_bytes(array).tolist() == size


def test_bytes_are_those_of_the_whole_row(tokenizer: object) -> None:
    small, large = (
        count(batch([{"text": "x" * n, "audio": {"bytes": b"y" * n, "path": None}}]), tokenizer)[0] for n in (10, 1010)
    )
    assert int(str(large["bytes"])) - int(str(small["bytes"])) == 2000


def test_complexity_keeps_nulls() -> None:
    raw = pa.record_batch({"sample_id": pa.array(["a", "b", "c"]), **{
        f"tokens/raw.{n}": pa.array([1, 3, None], schemas.TOKENS_RAW.field(n).type)
        for n in schemas.TOKENS_RAW.names if n != "sample_id"
    }})  # fmt: skip
    found = schemas.conform(tokens.add_complexity(raw, 2.0), schemas.TOKENS)
    assert found["complexity"].to_pylist() == [0.5, 1.5, None]
    assert tokens.add_complexity(raw, None)["complexity"].to_pylist() == [0.0, 0.0, None]
    assert tokens.add_complexity(raw.slice(0, 0), None).num_rows == 0
    assert np.isfinite(found["flops"].to_numpy(zero_copy_only=False)[:2]).all()
