"""`kept`: the decorator of tables that follow from code and Unicode alone, made once on a machine and then read."""

import hashlib
import unicodedata
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import TypeVar
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from scoring.core import jit
from scoring.core.errors import DataError
from scoring.core.files import write_atomic

Array = npt.NDArray[np.generic]
F = TypeVar("F", bound=Callable[..., object])


def kept(function: F) -> F:
    """Returns `function`, of strings to an array or some arrays, computed once and kept beside the compiled kernels.

    What it is made from must be a part of its module's digest (`jit`), its arguments, or Unicode's version.
    """

    @cache
    @wraps(function)
    def found(*keys: str) -> Array | tuple[Array, ...]:
        path = _path(function, keys)
        arrays = _read(path)
        if arrays is None:
            made = function(*keys)
            arrays = tuple(map(np.array, made if isinstance(made, tuple) else (made,)))  # never read-only
            _write(path, arrays)
        return arrays if len(arrays) > 1 else arrays[0]

    return found  # type: ignore[return-value]


def _path(function: Callable[..., object], keys: tuple[str, ...]) -> Path:
    digest = hashlib.blake2b("\0".join([unicodedata.unidata_version, *keys]).encode(), digest_size=8).hexdigest()
    return Path(jit.folder(function.__module__)) / f"{function.__name__}-{digest}.npz"


def _read(path: Path) -> tuple[Array, ...] | None:
    """Returns the arrays in `path`; None where it is missing or damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            return tuple(found[name] for name in found.files)
    except (OSError, ValueError, EOFError, BadZipFile):
        return None


def _write(path: Path, arrays: tuple[Array, ...]) -> None:
    def save(temporary: str) -> None:
        with Path(temporary).open("wb") as file:
            np.savez(file, *arrays)

    try:
        write_atomic(path, save)
    except DataError:
        return  # a full disk costs time, no more
