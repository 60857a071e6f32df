"""Which own modules a stage imports: the `deps` of dvc.yaml, and the code version in fingerprints.

`python -m pipelines.core.deps` writes the deps of every stage, and the sources that params name, into dvc.yaml.
"""

import ast
import hashlib
from collections.abc import Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from scoring.core.imports import ROOT, closure, path_of, tree


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
    return hashlib.blake2b(ast.dump(tree(module)).encode(), digest_size=16).hexdigest()


def stage_deps(stage: str) -> list[str]:
    """Returns the files, relative to the root, that the stage's module imports; sorted."""
    paths = [path_of(m) for m in closure(f"pipelines.{stage}")]
    return sorted(str(p.relative_to(ROOT)) for p in paths if p)


def source_deps(params: Mapping[str, Any]) -> list[str]:
    """Returns the files and folders that `ingest.sources` names, as DVC deps; a glob is its fixed folder."""
    found = set()
    for source in params["ingest"]["sources"]:
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
