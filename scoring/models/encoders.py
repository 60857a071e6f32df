"""Encoders and sequence classifiers by name, from safetensors or ONNX."""

from pathlib import Path

from scoring.models import first_token, onnx
from scoring.models.config import Dtype
from scoring.models.files import ONNX, resolve
from scoring.models.load import load_config, load_model
from scoring.models.types import Model


def load_encoder(name: str, root: Path = Path(), *, dtype: Dtype = "float32") -> Model | onnx.OnnxModel:
    """Returns the bare transformer of model `name` in evaluation mode: tokens to hidden states.

    An ONNX file computes in its own types, whatever `dtype`.
    """
    from transformers import AutoModel

    if resolve(name, root).suffix == ONNX:
        return _load_onnx(name, root, "last_hidden_state")
    return load_model(AutoModel, name, root, spare="pooler.", dtype=dtype)


def load_classifier(name: str, root: Path = Path(), *, dtype: Dtype = "float32") -> Model | onnx.OnnxModel:
    """Returns the sequence classifier `name` in evaluation mode.

    An ONNX file computes in its own types, whatever `dtype`.

    Raises:
      ConfigError: the model has no classifier of its own (it would be drawn at random).
    """
    from transformers import AutoModelForSequenceClassification

    if resolve(name, root).suffix == ONNX:
        return _load_onnx(name, root, "logits")
    return first_token.shortened(load_model(AutoModelForSequenceClassification, name, root, dtype=dtype))


def _load_onnx(name: str, root: Path, output: onnx.Output) -> onnx.OnnxModel:
    """Returns the ONNX model `name`, with as many threads as torch has."""
    import torch

    return onnx.load(resolve(name, root), load_config(name, root), output, torch.get_num_threads())
