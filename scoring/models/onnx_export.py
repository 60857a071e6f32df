"""Torch models written as ONNX files and as int8, with the measured agreement beside them.

Needs the extra `onnx`. The int8 file has weights of 7 bits per channel (`reduce_range`): with 8, the integer products
of processors without VNNI overflow (ONNX Runtime, "Quantize ONNX models", When and why do I need to try U8U8?).
"""

import importlib.util
import io
import logging
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scoring.core.errors import ToolError
from scoring.core.files import write_atomic, write_json
from scoring.core.ranks import spearman
from scoring.core.types import JsonObject
from scoring.models import encoders
from scoring.models import files as model_files
from scoring.models import onnx as onnx_models
from scoring.models.types import Model, Tensor

Scores = npt.NDArray[np.floating]

FLOAT, INT8 = "model.onnx", "model.int8.onnx"
CARD = "model.int8.json"
_PACKAGES = ("onnx", "onnxruntime")
_OPSET = 17
_MAX_DIFFERENCE = 1e-4
_COPIED = ("config.json", "tokenizer*", "vocab*", "merges*", "special_tokens_map.json", "*.model")


def export(name: str, root: Path, folder: Path, *, classifier: bool) -> Path:
    """Returns `folder`/model.onnx: the classifier `name`, or its bare encoder, with config and tokenizer.

    Raises:
      ToolError: a package is missing, or the model cannot be exported.
    """
    _check_packages(name)
    model = (encoders.load_classifier if classifier else encoders.load_encoder)(name, root)
    output: onnx_models.Output = "logits" if classifier else "last_hidden_state"
    path = folder / FLOAT
    try:
        write_atomic(path, lambda temporary: _write(model, output, temporary))
    except (RuntimeError, TypeError) as error:  # what torch raises for an operation that it cannot export
        raise ToolError(
            f"cannot export the model: {str(error)[:300]}", where=name, remedy="use the model in torch"
        ) from error
    for pattern in _COPIED:
        for source in model_files.resolve(name, root).glob(pattern):
            shutil.copyfile(source, folder / source.name)
    _check_same(model, path, output, name)
    return path


def _check_same(model: Model, path: Path, output: onnx_models.Output, name: str) -> None:
    """Raises where the exported model gives other numbers for a padded batch."""
    import torch

    ids, mask = torch.arange(3, 27).reshape(2, 12), torch.ones((2, 12), dtype=torch.int64)
    mask[1, 7:] = 0
    with torch.inference_mode():
        wanted = model(input_ids=ids, attention_mask=mask)[output]
        found = onnx_models.load(path, model.config, output, torch.get_num_threads()).forward(ids, mask)
    if output == "last_hidden_state":
        wanted, found = wanted * mask[..., None], found * mask[..., None]
    difference = float((wanted - found).abs().max() / wanted.abs().max().clamp_min(1e-12))
    if not difference <= _MAX_DIFFERENCE:
        what = f"the outputs of the exported model differ by {difference:.2g}, relative to the largest"
        raise ToolError(what, where=f"{name} ({path})", remedy="use the model in torch")


def _check_packages(name: str) -> None:
    missing = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        what = f"ONNX export needs packages that are not installed: {', '.join(missing)}"
        raise ToolError(what, where=name, remedy="pip install 'gradsift[onnx]'")


def _write(model: Model, output: str, path: str) -> None:
    """Writes the traced model, its attention and its norms fused where ONNX Runtime knows their pattern."""
    from onnxruntime.transformers import optimizer

    before = model.config._attn_implementation
    model.set_attn_implementation("eager")  # the pattern that it knows
    _trace(model, output, path)
    model.set_attn_implementation(before)
    with _quiet():
        fused = optimizer.optimize_model(path, model_type="bert", opt_level=0)
    fused.save_model_to_file(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps ONNX Runtime's tools from logging and printing advice."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def _trace(model: Model, output: str, path: str) -> None:
    import torch

    class Plain(torch.nn.Module):  # tensors in, a tensor out
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            return self.model(input_ids=input_ids, attention_mask=attention_mask)[output]

    ids = torch.ones((2, 8), dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0  # a mask of ones alone would be traced away
    free = {0: "batch", 1: "tokens"}
    axes = {"input_ids": free, "attention_mask": free, output: free if output == "last_hidden_state" else {0: "batch"}}
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # the tracer warns of its own age and of every constant shape
        torch.onnx.export(
            Plain().eval(), (ids, mask), path, input_names=["input_ids", "attention_mask"], output_names=[output],
            dynamic_axes=axes, opset_version=_OPSET, dynamo=False,
        )  # fmt: skip


def quantize(path: Path) -> Path:
    """Returns the file of the same model with int8 weights and activations quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    target = path.with_name(INT8)
    options = {"weight_type": QuantType.QInt8, "per_channel": True, "reduce_range": True}
    options["extra_options"] = {"DefaultTensorType": 1}  # float: shapes and types end at fused operators
    with _quiet():
        write_atomic(target, lambda temporary: quantize_dynamic(str(path), temporary, **options))
    return target


def agreement(wanted: Scores, found: Scores, min_quality: float) -> dict[str, float]:
    """Returns how (n,) scores differ from those wanted: the largest and the mean difference, Spearman, flipped rows.

    `flipped_ratio` is the share of rows that `min_quality` keeps by one and drops by the other.
    """
    difference = np.abs(np.asarray(wanted, np.float64) - np.asarray(found, np.float64))
    return {
        "largest_difference": float(difference.max(initial=0.0)),
        "mean_difference": float(difference.mean()) if len(difference) else 0.0,
        "spearman": spearman(wanted, found),
        "flipped_ratio": float(((wanted >= min_quality) != (found >= min_quality)).mean()) if len(wanted) else 0.0,
    }


def export_int8(
    name: str, root: Path, folder: Path, *, score: Callable[[str], Scores], classifier: bool, min_quality: float
) -> JsonObject:
    """Writes `folder`/model.int8.onnx beside the float32 export of `name`; returns their agreement, its card.

    `score(model)` gives the (n,) scores of some rows by the model of that name, in torch or ONNX.
    """
    path = quantize(export(name, root, folder, classifier=classifier))
    wanted, found = score(name), score(str(path.resolve()))
    card = {"model": name, "digest": model_files.digest(name, root), "rows": len(wanted), "min_quality": min_quality}
    card |= agreement(wanted, found, min_quality)
    write_json(path.with_name(CARD), card)
    return card
