"""Which of our modules a module imports: the import closure for fingerprints, dvc.yaml and compiled kernels."""

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from scoring.core import remembered

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pipelines", "transforms", "scoring", "gradsift")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def closure(module: str, without: tuple[str, ...] = ()) -> frozenset[str]:
    """Returns the own modules that `module` imports, directly or not, itself included.

    The modules and packages `without` are left out, with all that only they import.
    """
    found: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [m for m in imports(name) if not within(m, without)]
    return frozenset(found)


def within(module: str, packages: Iterable[str]) -> bool:
    """Returns whether `module` is one of `packages` or lies in one."""
    return any(module == p or module.startswith(f"{p}.") for p in packages)


def path_of(module: str) -> Path | None:
    """Returns the file of own module `module`, or None when there is no such module."""
    stem = ROOT / module.replace(".", "/")
    return next((p for p in (stem.with_suffix(".py"), stem / "__init__.py") if p.is_file()), None)


@cache
def tree(module: str) -> ast.Module:
    """Returns the code of `module` without its docstrings."""
    path = path_of(module)
    assert path is not None, module
    found = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(found):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return found


class Facts(NamedTuple):
    """What is asked of a module's code: its digest, and the dotted names in its import statements."""

    digest: str
    named: tuple[str, ...]


@cache
def _facts(module: str) -> Facts:
    """Returns the facts of `module`. Parsing all modules takes seconds, so they are remembered by their content."""
    path = path_of(module)
    assert path is not None, module
    key = b"\0".join([path.read_bytes(), sys.version.encode(), Path(__file__).read_bytes()])

    def find() -> str:
        digest = hashlib.blake2b(ast.dump(tree(module)).encode(), digest_size=16).hexdigest()
        return json.dumps([digest, list(_names(tree(module)))])

    digest, named = json.loads(remembered.recall("code", key, find))
    return Facts(digest, tuple(named))


def code_digest(module: str) -> str:
    """Returns the digest of the code of `module`; comments, docstrings and layout do not count."""
    return _facts(module).digest


def _names(code: ast.Module) -> Iterator[str]:
    """Yields the dotted names in any import statement of `code`, also inside functions."""
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{a.name}" for a in node.names)


@cache
def imports(module: str) -> tuple[str, ...]:
    """Returns the own modules that `module` names in its import statements."""
    names = list(_facts(module).named)
    if "pkgutil" in names:  # a package that loads every module of its folder
        names += _beside(module)
    return tuple(n for n in dict.fromkeys(names) if n.split(".")[0] in PACKAGES and path_of(n))


@cache
def libraries(module: str) -> frozenset[str]:
    """Returns the third-party packages that `module` imports, by the name it imports them under."""
    tops = {name.split(".")[0] for name in _facts(module).named}
    return frozenset(t for t in tops - set(PACKAGES) - sys.stdlib_module_names if not t.startswith("_"))


def _beside(package: str) -> list[str]:
    """Returns the modules in the folder of `package`."""
    path = path_of(package)
    assert path is not None, package
    return [f"{package}.{p.stem}" for p in sorted(path.parent.glob("*.py")) if p != path]
