"""`kernel`: the decorator of compiled functions, and the folders in which their machine code is kept.

The compiler's own cache looks only at the file that defines a function; a kernel that inlines a changed helper
from another file would stay stale. So the folder's name holds a digest of that file and of all our modules that it
imports. That says all: where the files lie does not matter, and a second checkout compiles nothing again.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import TypeVar

import numba
from numba.core import caching

from scoring.core import imports, remembered

F = TypeVar("F", bound=Callable[..., object])


def _source(module: str) -> bytes:
    path = imports.path_of(module)
    return path.read_bytes() if path else b""


@cache
def folder(module: str) -> str:
    """Returns the folder of a module's compiled kernels and kept tables; a fresh one where none can be written."""
    sources = b"\0".join(_source(name) for name in sorted(imports.closure(module)))
    digest = hashlib.blake2b(sources, digest_size=8).hexdigest()
    found = remembered.folder() / f"{module.rpartition('.')[2]}-{digest}"
    try:
        found.mkdir(parents=True, exist_ok=True)
        writable = os.access(found, os.W_OK)
    except OSError:
        writable = False
    return str(found) if writable else tempfile.mkdtemp(prefix="gradsift-")


def is_compiled(module: str) -> bool:
    """Returns whether an earlier run left the compiled kernels of this very code of `module`."""
    return any(Path(folder(module)).rglob("*.nbc"))


class _ByDigest(caching.UserProvidedCacheLocator):
    """Caches a function in the folder named after its module's digest."""

    def __init__(self, function: FunctionType, file: str) -> None:
        super().__init__(function, file)  # type: ignore[no-untyped-call]
        self._cache_path = folder(function.__module__)

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> "_ByDigest | None":
        ours = Path(file).is_relative_to(imports.ROOT) and imports.path_of(function.__module__)
        return super().from_function(function, file) if ours else None  # type: ignore[no-untyped-call]


caching.CacheImpl._locator_classes.insert(0, _ByDigest)


def kernel(function: F) -> F:
    """Returns `function` compiled at its first call, without the interpreter's lock, kept on disk."""
    numba.config.CACHE_DIR = folder(function.__module__)  # type: ignore[attr-defined]
    return numba.njit(cache=True, nogil=True)(function)  # type: ignore[return-value]
