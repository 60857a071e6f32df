"""Alignment by a small CLIP of real classes, against the model called by hand; and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from PIL import Image
from support import tiny_clip, tiny_models

from scoring.core.errors import ConfigError, ToolError
from scoring.static import alignment
from scoring.static.alignment import Aligner, cosines, load_aligner

TEXTS = ["A hill.", "the river under the bridge of stone, the river of the hill", "stone"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_clip.save(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def aligner(folder: Path) -> Aligner:
    return load_aligner(str(folder), Path(), 1)


def pictures(count: int) -> list[Any]:
    rng = np.random.default_rng(5)
    return [Image.fromarray(rng.integers(0, 256, (20 + k, 30, 3)).astype(np.uint8)) for k in range(count)]


def by_hand(folder: Path, text: str, picture: Any) -> float:
    """One text and one picture through transformers itself, without padding."""
    model = tf.CLIPModel.from_pretrained(folder).eval()
    tokens = tf.AutoTokenizer.from_pretrained(folder)(text, truncation=True, return_tensors="pt")
    pixels = tf.AutoImageProcessor.from_pretrained(folder, backend="pil")(images=picture, return_tensors="pt")
    with torch.inference_mode():
        found = model(**{k: v for k, v in tokens.items() if k != "token_type_ids"}, **pixels)
        return float((found.text_embeds @ found.image_embeds.T)[0, 0])


def test_a_cosine_is_that_of_the_model_called_by_hand(folder: Path, aligner: Aligner) -> None:
    seen = pictures(3)
    found = cosines(aligner.texts(TEXTS), aligner.pictures(seen), [0, 1, 2])
    wanted = [by_hand(folder, t, p) for t, p in zip(TEXTS, seen, strict=True)]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert len({round(v, 4) for v in wanted}) == 3


def test_vectors_do_not_depend_on_the_batch(aligner: Aligner, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = pictures(5)
    together = aligner.texts(TEXTS), aligner.pictures(seen)
    monkeypatch.setattr(alignment, "BATCH", 2)
    np.testing.assert_allclose(aligner.texts(TEXTS), together[0], atol=1e-6)
    np.testing.assert_allclose(aligner.pictures(seen), together[1], atol=1e-6)


def test_pictures_are_taken_a_batch_at_a_time(aligner: Aligner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "BATCH", 2)
    sizes: list[int] = []
    plain = type(aligner)._pictures
    monkeypatch.setattr(type(aligner), "_pictures", lambda self, b: (sizes.append(len(b)), plain(self, b))[1])
    assert aligner.pictures(iter(pictures(5))).shape == (5, 12)
    assert sizes == [2, 2, 1]


def test_a_text_has_the_mean_of_its_pictures_and_nan_without() -> None:
    texts = np.eye(3, dtype=np.float32)
    seen = np.array([[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], np.float32)
    found = cosines(texts, seen, [0, 0, 1])
    np.testing.assert_allclose(found, [0.5, 0.8, np.nan], atol=1e-6)
    assert cosines(texts[:0], seen[:0], []).tolist() == []


def test_no_text_and_no_picture(aligner: Aligner) -> None:
    assert len(aligner.texts([])) == len(aligner.pictures([])) == 0


def test_a_model_without_pictures_is_no_clip(tmp_path: Path) -> None:
    with torch.random.fork_rng():
        tiny_models.made("bert", torch.float32).bert.save_pretrained(tmp_path)
    tiny_clip.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="a BertModel does not embed") as caught:
        load_aligner(str(tmp_path), Path(), 1)
    assert "CLIP or SigLIP" in str(caught.value)


def test_a_missing_image_processor_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="preprocessor_config"):
        load_aligner(str(tiny_clip.save(tmp_path, processor=False)), Path(), 1)


def test_a_tokenizer_that_cannot_pad_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no padding token"):
        load_aligner(str(tiny_clip.save(tmp_path, pad=False)), Path(), 1)


def test_a_model_that_is_not_here(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="neither a folder nor"):
        load_aligner("no/such-clip", tmp_path, 1)


def test_a_model_with_weights_missing_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = tiny_clip.save(tmp_path) / "model.safetensors"
    weights = load_file(path)
    del weights["visual_projection.weight"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ConfigError, match="visual_projection"):
        load_aligner(str(tmp_path), Path(), 1)


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    folder = tiny_clip.save(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ToolError, match="cannot load the model"):
        load_aligner(str(folder), Path(), 1)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "clip"
