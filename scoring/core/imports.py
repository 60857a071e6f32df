"""Which of our modules a module imports: the import closure for fingerprints, dvc.yaml and compiled kernels."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pipelines", "transforms", "scoring", "gradsift")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def closure(module: str) -> frozenset[str]:
    """Returns the own modules that `module` imports, directly or not, itself included."""
    found: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += imports(name)
    return frozenset(found)


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


@cache
def imports(module: str) -> tuple[str, ...]:
    """Returns the own modules named by any import statement of `module`, also inside functions."""
    names: list[str] = []
    for node in ast.walk(tree(module)):
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
