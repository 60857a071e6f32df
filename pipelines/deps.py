"""Which own modules a stage imports: the `deps` of dvc.yaml, and the code version in fingerprints.

`python -m pipelines.deps` writes the deps of every stage, and the sources that params name, into dvc.yaml.
"""

import ast
import hashlib
from collections.abc import Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PACKAGES = ("pipelines", "transforms", "scoring", "loader")


@cache
def closure(module: str) -> frozenset[str]:
    """Returns the own modules that `module` imports, directly or not, itself included."""
    found: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        todo += [m for m in _imports(name) if m not in found]
    return frozenset(found)


def path_of(module: str) -> Path | None:
    """Returns the file of own module `module`, or None when there is no such module."""
    stem = ROOT / module.replace(".", "/")
    return next((p for p in (stem.with_suffix(".py"), stem / "__init__.py") if p.is_file()), None)


@cache
def _tree(module: str) -> ast.Module:
    """Returns the code of `module` without its docstrings."""
    path = path_of(module)
    assert path is not None, module
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Returns the own modules named by any import statement of `module`, also inside functions."""
    names: list[str] = []
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
            if node.module == "pkgutil":  # a package that takes whatever lies in its folder
                names += _beside(module)
    return tuple(n for n in dict.fromkeys(names) if n.split(".")[0] in PACKAGES and path_of(n))


def _beside(package: str) -> list[str]:
    """Returns the modules in the folder of `package`."""
    path = path_of(package)
    assert path is not None, package
    return [f"{package}.{p.stem}" for p in sorted(path.parent.glob("*.py")) if p != path]


@cache
def code_version(module: str) -> str:
    """Returns the digest of the code that decides what stage `module` writes.

    Comments, docstrings and layout do not count; neither do the other modules of `pipelines`, which
    decide when and where a stage runs, not what it computes.
    """
    own = sorted(m for m in closure(module) if m == module or not m.startswith("pipelines"))
    return hashlib.blake2b("\n".join(f"{m} {_digest(m)}" for m in own).encode(), digest_size=16).hexdigest()


@cache
def _digest(module: str) -> str:
    return hashlib.blake2b(ast.dump(_tree(module)).encode(), digest_size=16).hexdigest()


def stage_deps(stage: str) -> list[str]:
    """Returns the files, relative to the root, that the stage's module imports; sorted."""
    paths = [path_of(m) for m in closure(f"pipelines.{stage}")]
    return sorted(str(p.relative_to(ROOT)) for p in paths if p)


def source_deps(tree: Mapping[str, Any]) -> list[str]:
    """Returns the files and folders that `ingest.sources` names, as DVC deps; a glob is its fixed folder."""
    found = set()
    for source in tree["ingest"]["sources"]:
        for pattern in source.get("paths", []):
            fixed = list(takewhile(lambda piece: not set(piece) & set("*?["), Path(pattern).parts))
            found.add(str(Path(*fixed)) if fixed else ".")
    return sorted("data/sample" if f.startswith("data/sample") else f for f in found)


def unwatched_sources(root: Path, tree: Mapping[str, Any]) -> list[str]:
    """Returns the sources that stage `ingest` of dvc.yaml has no dep for."""
    import yaml

    pipeline = yaml.safe_load((root / "dvc.yaml").read_text(encoding="utf-8"))
    deps = set(pipeline["stages"]["ingest"]["deps"])
    return sorted(set(source_deps(tree)) - deps)


def write_dvc(root: Path = ROOT) -> None:
    """Rewrites the deps in dvc.yaml: every stage's modules, and the sources that ingest reads."""
    import yaml

    path = root / "dvc.yaml"
    text = path.read_text(encoding="utf-8")
    pipeline = yaml.safe_load(text)
    tree = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    for name, stage in pipeline["stages"].items():
        data = [d for d in stage["deps"] if not d.endswith(".py")]
        if name == "ingest":
            data = sorted(set(source_deps(tree)))
        stage["deps"] = [*data, *stage_deps(name)]
    header = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    path.write_text(header + yaml.safe_dump(pipeline, sort_keys=False, width=110), encoding="utf-8")


if __name__ == "__main__":
    write_dvc()
