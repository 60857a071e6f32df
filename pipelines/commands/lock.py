"""Stage `lock` of a project outside the checkout: writes `params.lock.yaml`, which the other stages depend on.

It holds every param, defaults included, and the versions of what is installed. Such a project has no code of ours to
depend on, and its params.yaml holds only what differs: this file tells DVC what an upgrade changed.
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from pipelines.core import dvc_file, params
from scoring.core import files, imports
from scoring.core.errors import ConfigError, ToolError

NAME = "params.lock.yaml"
HEADER = "# Written by stage `lock` of dvc.yaml: every param, and what is installed. Commit it with dvc.lock.\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    from pipelines.core.exits import guard

    parser = argparse.ArgumentParser(
        prog="python -m pipelines.commands.lock", epilog="example: python -m pipelines.commands.lock"
    )
    parser.add_argument("--params", type=Path, default=Path("params.yaml"), help="the project's params file")
    flags = parser.parse_args(argv)
    return guard("lock", lambda: run(flags.params))


def run(path: Path) -> None:
    """Writes the lock file of the project of params file `path`.

    Raises:
      ConfigError: params are wrong, or name sources that stage `ingest` of dvc.yaml does not watch.
    """
    import yaml

    found, root = params.read(path), path.resolve().parent
    found.check()
    unwatched = dvc_file.unwatched_sources(root, found.tree)
    if unwatched:
        raise ConfigError(
            f"dvc.yaml does not watch these sources: {', '.join(unwatched)}",
            where=str(path),
            remedy="run `gradsift deps`, then `dvc repro`",
        )
    tree = {"installed": installed(), **found.tree}
    files.write_text(root / NAME, HEADER + yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=120))


def installed() -> Mapping[str, Any]:
    """Returns the versions of our code, of Python, of ffmpeg and of the packages that ours requires.

    Stages depend on `digest` alone: DVC writes what a stage depends on into dvc.lock, once for each stage.
    """
    found = {"code": _code(), "python": sys.version.split()[0], "ffmpeg": _ffmpeg(), **_packages()}
    return {"digest": hashlib.blake2b(json.dumps(found).encode(), digest_size=16).hexdigest(), **found}


def _code() -> str:
    digest = hashlib.blake2b(digest_size=16)
    found = (p for package in imports.PACKAGES for p in (imports.ROOT / package).rglob("*"))
    for path in sorted(p for p in found if p.is_file() and "__pycache__" not in p.parts):
        digest.update(f"{path.relative_to(imports.ROOT)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _ffmpeg() -> str | None:
    from transforms.decode import tool

    try:
        return tool.versions()
    except ToolError:  # texts need none
        return None


def _packages() -> dict[str, str]:
    """Returns the versions of what our own package requires, extras included where they are installed."""
    try:
        required = metadata.requires("gradsift") or []
    except metadata.PackageNotFoundError:  # a checkout on PYTHONPATH
        return {}
    ours = [r for r in required if not r.endswith(('extra == "dev"', 'extra == "peers"'))]
    names = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in ours} - {"dvc"}
    return {name: version for name in sorted(names) if (version := _version(name))}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
