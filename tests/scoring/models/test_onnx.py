"""ONNX files by the real runtime: the same numbers as torch, and clear words where they cannot be had."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import prose

from scoring.core.errors import ConfigError, ToolError
from scoring.models import encoders, encoding, onnx_export
from scoring.models import files as model_files
from scoring.models import load as models

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(p) is None for p in ("onnx", "onnxruntime")), reason="the extra onnx is not installed"
)

LABELS = ["Junk", "Fine", "Superb"]
TEXTS = prose.paragraphs()[:24]


@pytest.fixture(scope="module")
def torch_name(tmp_path_factory: pytest.TempPathFactory) -> str:
    name = prose.classifier(tmp_path_factory.mktemp("torch") / "model", LABELS)
    model = encoders.load_classifier(name)
    with torch.no_grad():
        for layer in (m for m in model.modules() if isinstance(m, torch.nn.Linear)):
            layer.weight.mul_(0.3)  # else every rounding grows to chaos
    model.save_pretrained(name)
    return name


@pytest.fixture(scope="module")
def exported(torch_name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return onnx_export.export(torch_name, Path(), tmp_path_factory.mktemp("onnx"), classifier=True)


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    """A copy of the exported file and its company, to be spoilt."""
    return Path(shutil.copytree(exported.parent, tmp_path / "copy")) / exported.name


def found(tokenizer: Any, longest: int = 62) -> list[encoding.Ints]:
    return [ids[: 1 + (7 * k) % longest] for k, ids in enumerate(encoding.token_ids(tokenizer, TEXTS))]


def test_a_classifier_s_probabilities_are_torch_s(torch_name: str, exported: Path) -> None:
    models.use_threads(1)
    tokenizer, session = models.load_tokenizer(str(exported)), encoders.load_classifier(str(exported))
    windows = found(tokenizer)
    wanted = encoding.classify(encoders.load_classifier(torch_name), tokenizer, windows, 256)
    np.testing.assert_allclose(encoding.classify(session, tokenizer, windows, 256), wanted, atol=1e-5)
    alone = np.concatenate([encoding.classify(session, tokenizer, [w], 256) for w in windows])
    np.testing.assert_allclose(alone, wanted, atol=1e-5)
    assert [session.config.id2label[k] for k in range(3)] == LABELS
    assert encoding.max_window(tokenizer, session) == 62


def test_an_encoder_s_embeddings_are_torch_s(torch_name: str, tmp_path: Path) -> None:
    path = onnx_export.export(torch_name, Path(), tmp_path, classifier=False)
    tokenizer, session = models.load_tokenizer(str(path)), encoders.load_encoder(str(path))
    windows = found(tokenizer)
    wanted = encoding.embed(encoders.load_encoder(torch_name), tokenizer, windows, 256)
    np.testing.assert_allclose(encoding.embed(session, tokenizer, windows, 256), wanted, atol=1e-5)
    with pytest.raises(ConfigError, match=r"no output logits; it has last_hidden_state"):
        encoders.load_classifier(str(path))


def test_int8_lies_beside_its_measured_agreement(torch_name: str, tmp_path: Path) -> None:
    def score(model: str) -> Any:
        tokenizer, loaded = models.load_tokenizer(model), encoders.load_classifier(model)
        return encoding.classify(loaded, tokenizer, found(tokenizer), 256)[:, 1:].sum(1)

    card = onnx_export.export_int8(torch_name, Path(), tmp_path, score=score, classifier=True, min_quality=0.5)
    path = tmp_path / onnx_export.INT8
    assert card == json.loads((tmp_path / onnx_export.CARD).read_text())
    assert card["rows"] == len(TEXTS)
    assert card["digest"] == model_files.digest(torch_name)
    assert 0 < card["mean_difference"] <= card["largest_difference"] < 0.1
    assert path.stat().st_size < 0.6 * (tmp_path / onnx_export.FLOAT).stat().st_size
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".tmp-")]
    tokenizer, session = models.load_tokenizer(str(path)), encoders.load_classifier(str(path))
    windows = found(tokenizer)
    together = encoding.classify(session, tokenizer, windows, 512)
    alone = np.concatenate([encoding.classify(session, tokenizer, [w], 512) for w in windows])
    np.testing.assert_allclose(together, alone, atol=1e-6)  # dynamic scales would follow the company


def test_agreement_tells_of_ranks_and_of_flipped_rows() -> None:
    wanted = np.array([0.1, 0.4, 0.6, 0.9])
    assert onnx_export.agreement(wanted, wanted + 0.15, 0.5) == {
        "largest_difference": pytest.approx(0.15),
        "mean_difference": pytest.approx(0.15),
        "spearman": pytest.approx(1.0),
        "flipped_ratio": 0.25,
    }
    assert onnx_export.agreement(wanted, -wanted, 0.5)["spearman"] == pytest.approx(-1.0)
    assert np.isnan(onnx_export.agreement(wanted, np.ones(4), 0.5)["spearman"])
    assert onnx_export.agreement(wanted[:0], wanted[:0], 0.5)["flipped_ratio"] == 0.0


def test_a_file_is_found_by_path_folder_and_the_folder_onnx(copy: Path) -> None:
    folder = copy.parent
    assert model_files.resolve(str(folder)) == model_files.resolve("copy", folder.parent) == copy
    (folder / "onnx").mkdir()
    inner = copy.rename(folder / "onnx" / copy.name)
    assert model_files.resolve(str(folder)) == inner
    assert encoders.load_classifier(str(inner)).config.num_labels == 3
    shutil.copy(inner, folder / "onnx" / "other.onnx")
    with pytest.raises(ConfigError, match=r"2 ONNX files, expected one: model\.onnx, other\.onnx"):
        model_files.resolve(str(folder))


def test_the_digest_follows_file_config_and_tokenizer(copy: Path) -> None:
    before = {model_files.digest(str(copy))}
    words = model_files.digest(str(copy), weights=False)
    with copy.open("ab") as file:
        file.write(b"\0")
    before.add(model_files.digest(str(copy)))
    (copy.parent / "config.json").write_text("{}")
    before.add(model_files.digest(str(copy)))
    copy.with_name(f"{copy.name}_data").write_bytes(b"weights")
    assert len(before | {model_files.digest(str(copy))}) == 4
    assert model_files.digest(str(copy), weights=False) == words


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_file_alone_is_refused(copy: Path, name: str) -> None:
    (copy.parent / name).unlink()
    with pytest.raises(ToolError, match=rf"{name} is missing next to the ONNX file"):
        encoders.load_classifier(str(copy))


def test_a_damaged_file_is_a_tool_error(copy: Path) -> None:
    copy.write_bytes(copy.read_bytes()[:1000])
    with pytest.raises(ToolError, match="cannot load the ONNX file"):
        encoders.load_classifier(str(copy))


def test_a_missing_runtime_is_named(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolError, match=r"onnxruntime is not installed[\s\S]*pip install 'gradsift\[onnx\]'"):
        encoders.load_classifier(str(exported))


def _change(path: Path, change: Any) -> None:
    import onnx

    model = onnx.load(path)
    change(model.graph)
    onnx.save(model, path)


def _rename(graph: Any, old: str, new: str) -> None:
    next(i for i in graph.input if i.name == old).name = new
    for node in graph.node:
        for k, name in enumerate(node.input):
            if name == old:
                node.input[k] = new


def _bind(graph: Any) -> None:
    for value in graph.input:
        value.type.tensor_type.shape.dim[1].dim_value = 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: _rename(g, "attention_mask", "mask"), "lacks the inputs attention_mask"),
        (_bind, "has fixed axes: input_ids of shape"),
    ],
)
def test_inputs_that_are_not_ours(copy: Path, change: Any, message: str) -> None:
    _change(copy, change)
    with pytest.raises(ToolError, match=message):
        encoders.load_classifier(str(copy))


def test_labels_must_be_as_many_as_values(copy: Path) -> None:
    config = json.loads((copy.parent / "config.json").read_text())
    config["id2label"] = {"0": "a", "1": "b"}
    config["label2id"] = {"a": 0, "b": 1}
    (copy.parent / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"returns 3 values, but its config\.json has 2 labels"):
        encoders.load_classifier(str(copy))


def test_numbers_that_are_not_finite_are_a_tool_error(copy: Path) -> None:
    from onnx import numpy_helper

    def spoil(graph: Any) -> None:
        bias = next(t for t in graph.initializer if "classifier.bias" in t.name)
        bias.CopyFrom(numpy_helper.from_array(np.full(3, np.nan, np.float32), bias.name))

    _change(copy, spoil)
    tokenizer, session = models.load_tokenizer(str(copy)), encoders.load_classifier(str(copy))
    with pytest.raises(ToolError, match="not finite"):
        encoding.classify(session, tokenizer, found(tokenizer)[:2], 256)


def test_tokens_that_the_model_does_not_know_are_a_tool_error(copy: Path) -> None:
    tokenizer, session = models.load_tokenizer(str(copy)), encoders.load_classifier(str(copy))
    with pytest.raises(ToolError, match="fails on"):
        encoding.classify(session, tokenizer, [np.array([10**6], np.int32)], 256)


def test_an_onnx_file_is_no_reference_for_gradients(exported: Path) -> None:
    with pytest.raises(ConfigError, match="ONNX"):
        models.load_reference(str(exported))
