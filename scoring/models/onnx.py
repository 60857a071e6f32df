"""Models in ONNX files, run by ONNX Runtime and called as transformers are: the only module that runs it.

`config.json` and `tokenizer.json` are next to the file, or in the parent folder if its folder is `onnx/`, as in the
exports on Hugging Face. Needs the extra `onnx`.
"""

import importlib.util
import mmap
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from scoring.core.errors import ConfigError, ToolError
from scoring.models.types import ModelConfig, Tensor

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Output = Literal["last_hidden_state", "logits"]
Ints = npt.NDArray[np.integer]

_RANKS = {"last_hidden_state": 3, "logits": 2}
_MADE = ("token_type_ids", "position_ids")  # inputs that follow from the mask
_NEEDED = ("input_ids", "attention_mask")
_DYNAMIC = (b"DynamicQuantizeLinear", b"DynamicQuantizeMatMul", b"QAttention")  # operators, as the file spells them
_REMEDY = "re-export it with the inputs input_ids and attention_mask, both with dynamic axes (docs/quality.md)"


def load(path: Path, config: ModelConfig, output: Output, threads: int) -> "OnnxModel":
    """Returns the model in `path`, which computes `output` with `threads` threads.

    Raises:
      ConfigError: it has another output.
      ToolError: ONNX Runtime is not installed or cannot read the file; or its inputs are not ours.
    """
    session = _session(path, threads)
    _check_inputs(session, path)
    name = _named(session, config, output, path)
    return OnnxModel(session, config, output, name, where=str(path), alone=_scales_by_batch(path))


def _scales_by_batch(path: Path) -> bool:
    """Returns whether activations are quantised by the range they have in the batch, as dynamic int8 does."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(operator) >= 0 for operator in _DYNAMIC)


def _session(path: Path, threads: int) -> "InferenceSession":
    if importlib.util.find_spec("onnxruntime") is None:
        raise ToolError("onnxruntime is not installed", where=str(path), remedy="pip install 'gradsift[onnx]'")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_mem_pattern = False  # patterns are kept by shape, and every batch has its own
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the core to others
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors share no base class
        what = str(error).strip()[:300]
        remedy = "re-download or re-export the file; a second file with weights must be next to it"
        raise ToolError(f"cannot load the ONNX file: {what}", where=str(path), remedy=remedy) from error


def _check_inputs(session: "InferenceSession", path: Path) -> None:
    inputs = {i.name: i for i in session.get_inputs()}
    missing = [n for n in _NEEDED if n not in inputs]
    unknown = sorted(set(inputs) - {*_NEEDED, *_MADE})
    fixed = [f"{n} of shape {i.shape}" for n, i in inputs.items() if any(isinstance(size, int) for size in i.shape)]
    for what, names in (("lacks the inputs", missing), ("has unsupported inputs", unknown), ("has fixed axes:", fixed)):
        if names:
            raise ToolError(f"the ONNX model {what} {', '.join(names)}", where=str(path), remedy=_REMEDY)


def _named(session: "InferenceSession", config: ModelConfig, output: Output, path: Path) -> str:
    """Returns the name of the output that is `output`: by name, else the only one of its rank."""
    outputs = {o.name: o.shape for o in session.get_outputs()}
    fitting = [n for n, shape in outputs.items() if len(shape) == _RANKS[output]]
    name = output if output in fitting else fitting[0] if len(fitting) == 1 else None
    if name is None:
        what = f"the ONNX model has no output {output}; it has {', '.join(f'{n} {s}' for n, s in outputs.items())}"
        raise ConfigError(what, where=str(path), remedy="use a model that was exported for this task")
    columns = outputs[name][-1]
    if output == "logits" and isinstance(columns, int) and columns != config.num_labels:
        what = f"the ONNX model returns {columns} values, but its config.json has {config.num_labels} labels"
        raise ConfigError(what, where=str(path), remedy="use the config.json that belongs to this model")
    return name


class OnnxModel:
    """An ONNX model with the call, the outputs and the `config` of a transformer.

    Rows go through it `alone` where a batch would change their numbers: no score may depend on company.
    """

    def __init__(
        self, session: "InferenceSession", config: ModelConfig, output: Output, name: str, *, where: str, alone: bool
    ) -> None:
        self.config, self.output, self.where, self.alone = config, output, where, alone
        self._session, self._name = session, name
        self._types = {i.name: np.int32 if "int32" in i.type else np.int64 for i in session.get_inputs()}

    def __call__(self, *, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        return SimpleNamespace(**{self.output: self.forward(input_ids, attention_mask)})

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Returns (b, t, d) hidden states or (b, k) logits as a float32 tensor, of (b, t) tensors of integers.

        Raises:
          ToolError: the model fails, or gives numbers that are not finite.
        """
        import torch

        ids, mask = ids.numpy(), mask.numpy()
        values = self._alone(ids, mask) if self.alone else self._run(ids, mask)
        if not np.isfinite(values).all():
            what = "the ONNX model returns values that are not finite"
            raise ToolError(what, where=self.where, remedy="use the float32 model, or another model")
        return torch.from_numpy(values.astype(np.float32, copy=False))

    def _alone(self, ids: Ints, mask: Ints) -> npt.NDArray[np.generic]:
        """Returns the values of rows that go one by one, without their padding, which is filled with zeros."""
        lengths = mask.sum(axis=1)
        rows = [self._run(ids[k : k + 1, :t], mask[k : k + 1, :t])[0] for k, t in enumerate(lengths)]
        if self.output == "logits":
            return np.stack(rows)
        values = np.zeros((*ids.shape, rows[0].shape[-1]), np.float32)
        for k, t in enumerate(lengths):
            values[k, :t] = rows[k]
        return values

    def _run(self, ids: Ints, mask: Ints) -> npt.NDArray[np.generic]:
        feed = _feed(ids, mask, self._types)
        try:
            return np.asarray(self._session.run([self._name], feed)[0])
        except Exception as error:  # its errors share no base class
            what = f"the ONNX model fails on {feed['input_ids'].shape} tokens: {str(error).strip()[:300]}"
            raise ToolError(what, where=self.where, remedy=_REMEDY) from error


def _feed(ids: Ints, mask: Ints, types: Mapping[str, type[np.integer]]) -> dict[str, npt.NDArray[np.generic]]:
    """Returns the inputs that the model names, padding at the end of a row."""
    positions = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids), "position_ids": positions}
    return {name: np.ascontiguousarray(known[name], dtype) for name, dtype in types.items()}
