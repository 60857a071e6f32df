"""`kernel`: the decorator of compiled functions, and the folders in which their machine code is kept.

The compiler's own cache looks at the one file a function stands in; a kernel that inlines a changed helper
from another file would stay stale. So the folder's name holds a digest of that file and of all of ours that it
imports. That says all: where the files lie does not matter, and a second checkout compiles nothing again.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching

F = TypeVar("F", bound=Callable[..., Any])
_ROOT = Path(__file__).parent.parent
_IMPORT = re.compile(r"^\s*(?:from|import) +(transforms\.text|scoring)(?:\.(\w+)| +import +([\w, ]+))", re.MULTILINE)


def _path(module: str) -> Path:
    return _ROOT / f"{module.replace('.', '/')}.py"


@cache
def _closure(module: str) -> frozenset[str]:
    """Returns the names of our modules that `module` imports, directly or not, itself included."""
    found, todo = set(), [module]
    while todo:
        name = todo.pop()
        if name in found or not _path(name).exists():
            continue
        found.add(name)
        for package, one, several in _IMPORT.findall(_path(name).read_text(encoding="utf-8")):
            todo += [f"{package}.{m}" for m in ([one] if one else re.findall(r"\w+", several))]
    return frozenset(found)


@cache
def folder(module: str) -> str:
    """Returns the folder of a module's compiled kernels and kept tables; a fresh one where none can be written."""
    sources = b"\0".join(_path(name).read_bytes() for name in sorted(_closure(module)))
    digest = hashlib.blake2b(sources, digest_size=8).hexdigest()
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = home / "gradsift" / f"{module.rpartition('.')[2]}-{digest}"
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
    """Keeps a function of ours in the folder that its module's digest names."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)  # type: ignore[no-untyped-call]
        self._cache_path = folder(function.__module__)

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        ours = Path(file).is_relative_to(_ROOT) and _path(function.__module__).exists()
        return super().from_function(function, file) if ours else None  # type: ignore[no-untyped-call]


caching.CacheImpl._locator_classes.insert(0, _ByDigest)


def kernel(function: F) -> F:
    """Returns `function` compiled at its first call, without the interpreter's lock, kept on disk."""
    numba.config.CACHE_DIR = folder(function.__module__)  # type: ignore[attr-defined]
    return numba.njit(cache=True, nogil=True)(function)  # type: ignore[return-value]
