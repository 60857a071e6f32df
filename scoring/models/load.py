"""Models by name, from this machine only: the only module that calls `from_pretrained`.

Names are those of `model_files`. Weights are safetensors, GGUF or ONNX, never pickles; no code of a model runs.
"""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

from scoring.core.errors import ConfigError, ToolError
from scoring.models.config import Dtype, Wanted
from scoring.models.encoding import read_as_text
from scoring.models.files import GGUF, ONNX, onnx_home, resolve
from scoring.models.types import ImageProcessor, Model, ModelConfig, Tokenizer

T = TypeVar("T")

_GGUF_NEEDS = ("gguf", "accelerate")
_MASKED = ("ForMaskedLM", "ForPreTraining")


_BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # of /proc/cpuinfo; the last is Arm's


def fast_bf16() -> bool:
    """Returns whether the processor multiplies bfloat16 in hardware."""
    info = Path("/proc/cpuinfo")
    return info.exists() and bool(set(info.read_text().split()) & _BF16_FLAGS)


def dtype_of(wanted: Wanted) -> Dtype:
    """Returns the type to compute in: `auto` is bfloat16 where the processor has it, and float32 elsewhere."""
    if wanted == "auto":
        return "bfloat16" if fast_bf16() else "float32"
    return wanted


def use_threads(threads: int) -> None:
    """Lets this process compute with `threads` threads, in torch and in the tokenizers."""
    import torch

    torch.set_num_threads(threads)
    os.environ.setdefault("RAYON_NUM_THREADS", str(threads))


def load_tokenizer(name: str, root: Path = Path()) -> Tokenizer:
    """Returns the fast tokenizer of model `name`, which reads all of a text, and all as text."""
    from transformers import AutoTokenizer

    tokenizer = _load(AutoTokenizer.from_pretrained, name, root)
    if not tokenizer.is_fast:
        raise ToolError(
            "the tokenizer has no fast version", where=name, remedy="add the tokenizer.json to the model's folder"
        )
    read_as_text(tokenizer.backend_tokenizer)
    return tokenizer


def quick_tokenizer(name: str, root: Path = Path()) -> SimpleNamespace | None:
    """Returns what only cuts text as model `name` does, as its `backend_tokenizer`; None where no file says how.

    It is read from tokenizer.json alone, without transformers and torch, which take seconds to load.
    """
    from tokenizers import Tokenizer

    path = resolve(name, root) / "tokenizer.json"
    if not path.is_file():
        return None
    backend = Tokenizer.from_file(str(path))
    read_as_text(backend)
    return SimpleNamespace(backend_tokenizer=backend)


def load_config(name: str, root: Path = Path()) -> ModelConfig:
    """Returns the config of model `name`."""
    from transformers import AutoConfig

    return _load(AutoConfig.from_pretrained, name, root)


def load_causal(name: str, root: Path = Path(), *, dtype: Dtype = "float32") -> Model:
    """Returns the causal language model `name` in evaluation mode."""
    from transformers import AutoModelForCausalLM

    return load_model(AutoModelForCausalLM, name, root, dtype=dtype)


def load_masked(name: str, root: Path = Path(), *, dtype: Dtype = "float32") -> Model:
    """Returns the masked language model `name`, a BERT or one of its kin, in evaluation mode.

    Raises:
      ConfigError: the model has no masked-token head of its own (it would be drawn at random).
    """
    from transformers import AutoModelForMaskedLM

    return load_model(AutoModelForMaskedLM, name, root, dtype=dtype)


def is_masked(name: str, root: Path = Path()) -> bool:
    """Returns whether the config of model `name` says that it predicts masked tokens, not the next one."""
    if resolve(name, root).is_file():
        return False  # transformers reads decoders alone from GGUF
    kinds = load_config(name, root).architectures or ()
    return any(kind.endswith(_MASKED) for kind in kinds)


def load_reference(name: str, root: Path = Path(), *, dtype: Dtype = "float32") -> Model:
    """Returns the language model `name`, masked or causal as its config says, in evaluation mode."""
    return (load_masked if is_masked(name, root) else load_causal)(name, root, dtype=dtype)


def load_image_processor(name: str, root: Path = Path()) -> ImageProcessor:
    """Returns what turns pictures into the pixel values that model `name` takes; it computes with Pillow and numpy."""
    from transformers import AutoImageProcessor

    return _load(AutoImageProcessor.from_pretrained, name, root, needs="preprocessor_config.json", backend="pil")


def load_two_towers(name: str, root: Path = Path()) -> Model:
    """Returns the CLIP-like model `name`, one of texts and pictures in one space, in evaluation mode.

    Raises:
      ConfigError: the model does not bring texts and pictures into one space.
    """
    from transformers import AutoModel

    model = load_model(AutoModel, name, root, spare="pooler.")
    if not (hasattr(model, "get_text_features") and hasattr(model, "get_image_features")):
        raise ConfigError(
            f"a {type(model).__name__} does not embed texts and images in one space",
            where=name,
            remedy="use a CLIP-like model such as CLIP or SigLIP, or null for none",
        )
    return model


def load_model(kind: type[Model], name: str, root: Path, *, spare: str = "", dtype: Dtype = "float32") -> Model:
    """Returns model `name` as a `kind` of transformers, in evaluation mode, its weights as `dtype`.

    Raises:
      ConfigError: it would begin with random weights, in other layers than `spare`.
    """
    import torch
    from transformers import GgufConfig

    if resolve(name, root).suffix == ONNX:
        what = "gradients cannot be computed on an ONNX file"
        raise ConfigError(what, where=name, remedy="use a model folder with safetensors")
    plain = {"quantization_config": GgufConfig(dequantize=True)} if resolve(name, root).suffix == GGUF else {}
    options = {"use_safetensors": True, "dtype": getattr(torch, dtype), "output_loading_info": True, **plain}
    model, info = _load(kind.from_pretrained, name, root, **options)
    missing = sorted(k for k in info["missing_keys"] if not (spare and k.startswith(spare)))
    if missing or info["mismatched_keys"]:
        lacks = ", ".join(missing[:3]) or "weights with the shapes given in config.json"
        raise ConfigError(
            f"the model does not fit {kind.__name__.removeprefix('Auto')}: missing {lacks}",
            where=name,
            remedy="use a model that was trained for this task",
        )
    return model.eval()


def _load(from_pretrained: Callable[..., T], name: str, root: Path, *, needs: str = "", **options: object) -> T:
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    found = resolve(name, root)
    folder = found
    if found.suffix == ONNX:
        folder = onnx_home(found)
    elif found.is_file():
        _prepare_gguf(name)
        folder, options = found.parent, {**options, "gguf_file": found.name}
    try:
        return from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)
    except Exception as error:  # a damaged file can raise anything, a bare Exception of the tokenizers included
        what = str(error).strip()[:300] or type(error).__name__
        raise ToolError(
            f"cannot load the model: {what}", where=f"{name} ({found})", remedy=_remedy(found, needs)
        ) from error


def _remedy(found: Path, needs: str) -> str:
    if found.suffix == GGUF:
        return "re-download the file if it is corrupt; transformers must support its architecture in GGUF"
    if needs:
        return f"the folder needs the {needs} published with the model"
    return "the folder needs config.json, tokenizer.json and model.safetensors of a supported architecture"


def _prepare_gguf(name: str) -> None:
    """Sees to what reading GGUF needs, and that its progress bar obeys the switch of all others.

    Raises:
      ToolError: a package that transformers reads GGUF with is not installed.
    """
    missing = [package for package in _GGUF_NEEDS if importlib.util.find_spec(package) is None]
    if missing:
        raise ToolError(
            f"a GGUF model needs packages that are not installed: {', '.join(missing)}",
            where=name,
            remedy=f"pip install {' '.join(missing)}",
        )
    from transformers import modeling_gguf_pytorch_utils as reader
    from transformers.utils import logging

    reader.tqdm = logging.tqdm
