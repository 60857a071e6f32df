"""The code version in fingerprints: which modules and which third-party packages decide what a stage stores.

A stage counts every module that it reaches but for two named lists: `PLUMBING`, which decides when and where
something runs and never what comes out, and `BY_CONTENT`, whose results enter a stage by the digest of what they
wrote. A module of `BY_CONTENT` that keeps a result on disk has a code version of its own in that result's fingerprint.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import unicodedata
from collections.abc import Collection
from functools import cache
from pathlib import Path

from scoring.core import imports, remembered

PLUMBING = (
    "pipelines.cli", "pipelines.runner", "pipelines.nightly", "pipelines.core",
    "pipelines.catalog", "pipelines.commands", "pipelines.reporting",
    "pipelines.passes.ingest_totals",  # figures, taken at every run
    "transforms.core.schemas",  # the schema that a stage writes stands in its fingerprint, so do the columns it reads
    "scoring.core.errors",
)  # fmt: skip
BY_CONTENT = (
    "pipelines.passes.boilerplate", "pipelines.passes.canaries", "pipelines.passes.corpus_lines",
    "pipelines.passes.decontaminate", "pipelines.passes.directions", "pipelines.passes.distilled",
    "pipelines.passes.stability",
    "pipelines.quality_models.also", "pipelines.quality_models.fit",
)  # fmt: skip
CARRIERS = frozenset({"apache_beam", "filelock", "huggingface_hub", "psutil", "pydantic", "rich"}) | frozenset(
    {"threadpoolctl", "typer", "xxhash", "yaml"}
)  # nothing of theirs is stored


def computing(module: str, without: tuple[str, ...] = ()) -> frozenset[str]:
    """Returns the own modules whose code decides what `module` computes, itself included.

    Plumbing and `BY_CONTENT` are left out, and the packages `without`, with all that only they import.
    """
    return imports.closure(module, (*PLUMBING, *BY_CONTENT, *without))


@cache
def code_version(module: str, without: tuple[str, ...] = ()) -> str:
    """Returns the digest of the code that decides what `module` computes, and of the libraries it uses.

    Comments, docstrings and layout do not count.
    """
    own = computing(module, without)
    lines = [f"{m} {_digest(m)}" for m in sorted(own)]
    lines += [f"{name} {library_version(name)}" for name in sorted(libraries(own))]
    lines.append(f"python {platform.python_version_tuple()[:2]} unicode {unicodedata.unidata_version}")
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


@cache
def _digest(module: str) -> str:
    return imports.code_digest(module)


def libraries(modules: Collection[str]) -> frozenset[str]:
    """Returns the third-party packages, by the name they are imported under, whose output `modules` may store.

    Those of the plumbing that they call count too: what DuckDB adds up is stored.
    """
    called = {p for m in modules for p in imports.imports(m) if imports.within(p, PLUMBING)}
    return frozenset().union(*(imports.libraries(m) for m in {*modules, *called})) - CARRIERS


@cache
def library_version(name: str) -> str:
    """Returns the version of the installed package `name`, and the digest of its first file; "absent" without it.

    The digest tells apart a copy that shadows the installed one, such as a patched checkout on PYTHONPATH.
    """
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return "absent"
    first = Path(spec.origin) if spec.origin else None
    content = hashlib.blake2b(first.read_bytes(), digest_size=8).hexdigest() if first and first.is_file() else ""
    return f"{_distribution_version(name)} {content}"


def _distribution_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        distributions = _distributions().get(name, [])
    return " ".join(sorted({f"{d} {importlib.metadata.version(d)}" for d in distributions}))


@cache
def _distributions() -> dict[str, list[str]]:
    """Returns import name → distributions. Reading all their files takes seconds; what is installed names it whole."""
    found = remembered.recall("distributions", installed(), lambda: json.dumps(_all_distributions()))
    return dict(json.loads(found))


def _all_distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())


def installed() -> bytes:
    """Returns the names, versions and times of all that is installed, in the order in which Python looks for it."""
    seen = [sys.version]
    for folder in map(Path, sys.path):
        names = os.listdir(folder) if folder.is_dir() else []
        infos = sorted(n for n in names if n.endswith((".dist-info", ".egg-info")))
        seen += [str(folder), *(f"{n} {(folder / n).stat().st_mtime_ns}" for n in infos)]
    return "\0".join(seen).encode()
