"""A small whole project for end-to-end tests: the shipped params, every size turned down."""

import shutil
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock
from support.places import SHIPPED

from pipelines import sample
from pipelines.core.project import open_project


def params(**changes: Any) -> dict[str, Any]:
    """Returns the shipped params, small; `changes` are dotted keys with __ for the dot."""
    tree: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())
    tree["sample"] |= {"texts": 90, "pictures": 6, "videos": 2, "sounds": 2}
    tree["ingest"] |= {"rows_per_part": 32}
    tree["quality"] |= {"train_rows": 40, "window_tokens": 32, "stride_tokens": 32, "max_windows": 2}
    tree["quality"] |= {"min_heldout_f1": 0.5}
    tree["reference"] |= {"vocabulary": 512, "layers": 2, "width": 32, "heads": 2, "context": 64}
    tree["reference"] |= {"train_rows": 60, "steps": 12, "batch_rows": 8, "checkpoints": 3}
    tree["gradients"] |= {"max_tokens": 64, "target_rows": 8}
    tree["gradients"]["sketch"] |= {"rank": 8, "width": 512}
    tree["lqs"] |= {"min_canary_auc": 0.0}  # so small a reference tells nothing apart
    tree["lqs"]["canaries"] |= {"rows": 0, "chars": 400}
    tree["plan"] |= {"shard_rows": 16}
    tree["runtime"] |= {"threads": 1}
    for dotted, value in changes.items():
        *path, last = dotted.split("__")
        spot = tree
        for key in path:
            spot = spot[key]
        spot[last] = value
    return tree


def write(root: Path, corpus: Path | None = None, **changes: Any) -> Path:
    """Writes the params file of a small project at `root`, and its corpus if `corpus` is one; returns its path."""
    root.mkdir(parents=True, exist_ok=True)
    if corpus:
        shutil.copytree(corpus, root / "data/sample")
    path = root / "params.yaml"
    path.write_text(yaml.safe_dump(params(**changes), sort_keys=False))
    return path


def make_corpus(root: Path) -> Path:
    """Returns the embedded corpus of a small project at `root`, made by the stage `sample` unless it is there."""
    project = open_project(write(root))
    with FileLock(root / "lock"):
        sample.run(project)
    return project.folder("sample")


def outputs(root: Path) -> dict[str, bytes]:
    """Returns every file that a run leaves, but locks, spill and the catalog (a database of views)."""
    files = [p for d in ("data", "metrics", "reports", "plots") for p in (root / d).rglob("*") if p.is_file()]
    skipped = (".lock", ".duckdb", ".verified", "catalog.duckdb", "catalog.duckdb.wal")
    return {
        str(p.relative_to(root)): p.read_bytes()
        for p in sorted(files)
        if not any(piece in skipped for piece in p.relative_to(root).parts)
    }
