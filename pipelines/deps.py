"""Which own modules a stage imports: the `deps` of dvc.yaml, and the code version in fingerprints.

`python -m pipelines.deps` writes the deps of every stage into dvc.yaml.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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
    path = path_of(module)
    assert path is not None, module
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(module: str) -> Iterator[str]:
    """Yields own modules named by any import statement of `module`, also inside functions."""
    for node in ast.walk(_tree(module)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
        yield from (n for n in names if n.split(".")[0] in PACKAGES and path_of(n))


@cache
def code_version(module: str) -> str:
    """Returns the digest of the code that decides what stage `module` writes.

    Comments, docstrings and layout do not count; neither do the other modules of `pipelines`, which
    decide when and where a stage runs, not what it computes.
    """
    own = sorted(m for m in closure(module) if m == module or not m.startswith("pipelines"))
    code = "\n".join(f"{m}\n{ast.dump(_without_docstrings(_tree(m)))}" for m in own)
    return hashlib.blake2b(code.encode(), digest_size=16).hexdigest()


def _without_docstrings(tree: ast.Module) -> ast.Module:
    bare = ast.parse(ast.unparse(tree))
    for node in ast.walk(bare):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return bare


def stage_deps(stage: str) -> list[str]:
    """Returns the files, relative to the root, that the stage's module imports; sorted."""
    paths = [path_of(m) for m in closure(f"pipelines.{stage}")]
    return sorted(str(p.relative_to(ROOT)) for p in paths if p)


def write_dvc(path: Path = ROOT / "dvc.yaml") -> None:
    """Rewrites the module deps of every stage in dvc.yaml; data deps and all else stay."""
    import yaml

    lines = path.read_text(encoding="utf-8")
    pipeline = yaml.safe_load(lines)
    for name, stage in pipeline["stages"].items():
        data = [d for d in stage["deps"] if not d.endswith(".py")]
        stage["deps"] = [*data, *stage_deps(name)]
    header = "".join(line for line in lines.splitlines(keepends=True) if line.startswith("#"))
    path.write_text(header + yaml.safe_dump(pipeline, sort_keys=False, width=110), encoding="utf-8")


if __name__ == "__main__":
    write_dvc()
