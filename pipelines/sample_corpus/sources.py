"""Where the corpus finds prose: the language reference, docstrings, licences and package descriptions."""

import ast
import os
import platform
import re
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path, PurePath
from typing import NamedTuple

PROJECT = "gradsift"
# Parts of the standard library without prose, or not installed everywhere.
_LEFT_OUT = frozenset(
    {"test", "tests", "idle_test", "idlelib", "lib2to3", "turtledemo", "tkinter", "distutils", "ensurepip",
     "pydoc_data", "site-packages", "dist-packages", "__pycache__"}
)  # fmt: skip
_MATHEMATICS = "networkx"  # its docstrings describe graphs in whole sentences
_LICENCE = re.compile(r"licen[cs]e|copying|notice", re.I)
_NAME = re.compile(r"[\w.-]+")
_MIN_CHARS = 300
_LONG_STRING = re.compile(rb'"""[^"]{500}|\'\'\'[^\']{500}')


class Origin(NamedTuple):
    """A long text as stored on disk."""

    name: str  # e.g. "topic:assert", "module:json.decoder"
    domain: str
    text: str


@cache
def packages() -> Mapping[str, metadata.Distribution]:
    """Returns what the project depends on, directly or not, by name: what else is installed changes nothing."""
    installed = {_plain(d.metadata["Name"]): d for d in metadata.distributions() if d.metadata["Name"]}
    found: dict[str, metadata.Distribution] = {}
    todo = [PROJECT]
    while todo:
        name = todo.pop()
        if name in installed and name not in found:
            found[name] = installed[name]
            needs = [r for r in installed[name].requires or [] if "extra ==" not in r]
            todo += [_plain(m[0]) for m in map(_NAME.match, needs) if m]
    return {name: found[name] for name in sorted(found) if name != PROJECT}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def versions() -> list[str]:
    """Returns what decides the texts beside our code: the versions of Python and of the packages."""
    return [f"python=={platform.python_version()}", *(f"{n}=={d.version}" for n, d in packages().items())]


def origins() -> Iterator[Origin]:
    """Yields every long text, in an order that depends on the names alone."""
    from pydoc_data.topics import topics

    for name, text in sorted(topics.items()):
        yield Origin(f"topic:{name}", "reference", text)
    yield from _docstrings(_library(), "library")
    yield from _docstrings(_modules(packages().get(_MATHEMATICS)), "mathematics")
    for name, package in packages().items():
        yield Origin(f"package:{name}", "packages", _description(package))
        for file, text in _licences(package):
            yield Origin(f"licence:{name}:{file}", "licences", text)


def _library() -> Iterator[tuple[PurePath, Path]]:
    """Yields the modules of the standard library: their place in it, and on disk."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for path in (Path(folder, name) for name in sorted(files) if name.endswith(".py")):
            yield path.relative_to(root), path


def _modules(package: metadata.Distribution | None) -> Iterator[tuple[PurePath, Path]]:
    """Yields the modules of an installed package."""
    for file in sorted((package.files if package else None) or [], key=str):
        if file.suffix == ".py":
            yield file, Path(str(file.locate()))


def _docstrings(modules: Iterable[tuple[PurePath, Path]], domain: str) -> Iterator[Origin]:
    """Yields the long docstrings of each module, parsed but never imported: imports have effects."""
    for place, path in modules:
        if _LEFT_OUT.intersection(place.parts):
            continue
        source = path.read_bytes()
        # Parsing all modules takes seconds; few hold a docstring of some length.
        if _LONG_STRING.search(source):
            name = ".".join(place.with_suffix("").parts).removesuffix(".__init__")
            texts = [t for t in _docstrings_of(source) if len(t) >= _MIN_CHARS]
            yield Origin(f"module:{name}", domain, "\n\n".join(texts))


def _docstrings_of(source: bytes) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    yield ast.get_docstring(tree) or ""
    yield from _docstrings_in(tree.body)


def _docstrings_in(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            yield from _docstrings_in(node.body)


def _description(package: metadata.Distribution) -> str:
    return str(package.metadata.json.get("description", ""))


def _licences(package: metadata.Distribution) -> Iterator[tuple[str, str]]:
    for file in sorted(package.files or [], key=str):
        if _LICENCE.search(file.name) and file.suffix.lower() in ("", ".txt", ".md", ".rst"):
            path = Path(str(file.locate()))
            if path.is_file() and any(p.endswith(".dist-info") for p in file.parts):
                yield "/".join(file.parts[1:]), path.read_text("utf-8", errors="replace")
