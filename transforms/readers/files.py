"""Which files a source matches. Each file found is either read or rejected; none is skipped silently."""

import fnmatch
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from scoring.core.errors import ConfigError
from transforms.core.schemas import PARTS
from transforms.readers.source import SourceConfig

_OWN = (*PARTS, "plan", "shards", "reference")  # folders below data/ that other stages write


def list_files(root: Path, source: SourceConfig) -> list[str]:
    """Returns the sorted uris of the files that `source` names: POSIX paths relative to the project.

    Folders are walked; names that begin with a dot are hidden, as in a shell.

    Raises:
      ConfigError: a path matches no file, a folder cannot be listed, or it is one that gradsift writes.
    """
    found: set[str] = set()
    for pattern in source.paths:
        try:
            matched = {uri_of(root, path) for path in _match(root, pattern)}
        except PermissionError as error:
            raise _fault(source, f"no permission to list {error.filename}", "fix the folder's permissions") from error
        if root.resolve().is_relative_to((root / pattern).resolve()):
            raise _fault(source, f"{pattern!r} contains the project itself", "use a folder that no stage writes to")
        if not matched:
            words = f"{pattern!r} matches no files"
            raise _fault(source, words, f"fix the path; relative paths start at {root}")
        found |= matched
    own = next((uri for uri in sorted(found) if uri.startswith(tuple(f"data/{f}/" for f in _OWN))), None)
    if own:
        raise _fault(source, f"{own} is written by gradsift itself", "use a folder that no stage writes to")
    return sorted(found)


def _fault(source: SourceConfig, what: str, remedy: str) -> ConfigError:
    return ConfigError(f"source {source.name}: {what}", where="params, ingest.sources", remedy=remedy)


def uri_of(root: Path, path: Path) -> str:
    """Returns the name of a file in all data: its POSIX path relative to the project."""
    return Path(os.path.relpath(path, root)).as_posix()


def _match(root: Path, pattern: str) -> Iterator[Path]:
    start = root / Path(pattern).expanduser()
    if os.path.lexists(start):
        yield from walk(start)
        return
    pieces = Path(pattern).expanduser().parts
    fixed = next((k for k, p in enumerate(pieces) if set(p) & set("*?[")), len(pieces))
    if fixed < len(pieces):
        for path in _expand(root.joinpath(*pieces[:fixed]), pieces[fixed:]):
            yield from walk(path)


def walk(path: Path, above: Sequence[str] = ()) -> Iterator[Path]:
    """Yields `path`, or if it is a folder the files below it; a link to a folder above it is not followed."""
    if not path.is_dir():
        yield path
        return
    real = os.path.realpath(path)
    if real not in above:
        for name in _names(path):
            yield from walk(path / name, (*above, real))


def _names(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def _expand(folder: Path, pieces: Sequence[str]) -> Iterator[Path]:
    """Yields the paths below `folder` that match the glob `pieces`; ** is any number of folders.

    `glob` itself passes over folders that it may not list.
    """
    if not pieces:
        yield folder
        return
    if not folder.is_dir():
        return
    first, rest = pieces[0], pieces[1:]
    if first == "**":
        yield from _expand(folder, rest)
    for name in _names(folder):
        path = folder / name
        if first == "**" and path.is_dir() and not path.is_symlink():
            yield from _expand(path, pieces)
        elif first != "**" and fnmatch.fnmatchcase(name, first):
            yield from _expand(path, rest)
