"""The project's `dvc.yaml`: the deps of its stage `ingest` are the files and folders that `ingest.sources` names.

All else in the file is written by hand.
"""

from collections.abc import Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from scoring.core import files
from scoring.core.errors import ConfigError
from scoring.core.imports import PACKAGES

NAME = "dvc.yaml"
EMBEDDED = "data/sample"


def source_deps(root: Path, tree: Mapping[str, Any]) -> list[str]:
    """Returns the files and folders that `ingest.sources` names, as DVC deps; a glob is its fixed folder."""
    named = [(source, str(p)) for source in tree["ingest"]["sources"] for p in source.get("paths", [])]
    found = {_fixed(path) for source, path in named if not _is_builder(root, source, path)}
    return sorted({EMBEDDED if path.startswith(EMBEDDED) else path for path in found})


def _is_builder(root: Path, source: Mapping[str, Any], path: str) -> bool:
    """Returns whether `path` is the name of a `datasets` builder, which is no file that DVC could watch."""
    return source.get("format") == "huggingface" and not (root / path).exists()


def _fixed(pattern: str) -> str:
    fixed = list(takewhile(lambda piece: not set(piece) & set("*?["), Path(pattern).parts))
    return str(Path(*fixed)) if fixed else "."


def unwatched_sources(root: Path, tree: Mapping[str, Any]) -> list[str]:
    """Returns the sources that stage `ingest` of dvc.yaml has no dep for."""
    text = _read(root)
    return sorted(set(source_deps(root, tree)) - {item.value for item in _ingest_deps(root, text).value})


def watch_sources(root: Path, tree: Mapping[str, Any]) -> list[str]:
    """Writes the sources of the params `tree` into the deps of stage `ingest`, and returns them.

    Deps on code stay, and so does every other character of the file.

    Raises:
      ConfigError: there is no dvc.yaml, or it has no stage `ingest` with deps.
    """
    text, sources = _read(root), source_deps(root, tree)
    node = _ingest_deps(root, text)
    code = [item.value for item in node.value if Path(item.value).parts[0] in PACKAGES]
    start, end = node.start_mark.index, node.end_mark.index if node.flow_style else node.value[-1].end_mark.index
    written = _sequence([*sources, *code], None if node.flow_style else node.start_mark.column)
    files.write_text(root / NAME, text[:start] + written + text[end:])
    return sources


def _read(root: Path) -> str:
    try:
        return (root / NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError("no dvc.yaml", where=str(root), remedy="`gradsift init` writes one") from None


def _ingest_deps(root: Path, text: str) -> Any:
    """Returns the YAML node of the deps of stage `ingest`; its marks say where in `text` it stands."""
    import yaml

    try:
        node: Any = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        remedy = "fix the file, or let `gradsift init` write one"
        raise ConfigError(f"not YAML: {error}", where=str(root / NAME), remedy=remedy) from error
    for key in ("stages", "ingest", "deps"):
        node = next((v for k, v in getattr(node, "value", ()) if k.value == key), None)
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        raise ConfigError("no stage `ingest` with deps", where=str(root / NAME), remedy="`gradsift init` writes one")
    return node


def _sequence(items: Iterable[str], column: int | None) -> str:
    """Returns `items` as a YAML sequence: in brackets, or as lines that begin at `column`."""
    import yaml

    quoted = [yaml.safe_dump([i], default_flow_style=True, width=float("inf")).strip()[1:-1] for i in items]
    return f"[{', '.join(quoted)}]" if column is None else ("\n" + " " * column).join(f"- {q}" for q in quoted)
