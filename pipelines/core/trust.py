"""Which files' bytes have been compared with their seals; what has not changed since is not read again for a week.

What was checked stands in `data/.verified`, one file a folder, one line a check. It is a memory, not a truth: without
it everything is checked once more.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.core import progress
from scoring.core import files
from scoring.core.errors import DataError

if TYPE_CHECKING:  # what is remembered needs no pyarrow
    from transforms.core import parts

FOLDER = ".verified"
TRUST_S = 7 * 24 * 3600  # bytes can rot on the disk without a change of the file's times
_THREADS = min(8, os.cpu_count() or 1)

Listed = Mapping[str, str]
NOTHING: Listed = {}
Seen = dict[str, tuple[str, float]]  # name → what the system says of the file, and when it was checked


def damaged(folder: Path, names: Iterable[str], listed: Listed = NOTHING) -> dict[str, DataError]:
    """Returns the error of each of `names` in `folder` whose bytes are not those that were written.

    `listed` are SHA-256 digests by name, which files must have as well. What is found whole is remembered.
    """
    seen, now = _read(folder), time.time()
    stats = {name: f"{_stat(folder / name)} {listed.get(name, '')}" for name in names}
    todo = [n for n, stat in stats.items() if seen.get(n, ("", 0.0))[0] != stat or now - seen[n][1] > TRUST_S]
    if not todo:
        return {}
    with ThreadPoolExecutor(_THREADS) as pool:
        faults = dict(zip(todo, pool.map(lambda n: _fault(folder / n, listed.get(n)), todo), strict=True))
    _remember(folder, seen, {n: (stats[n], now) for n, fault in faults.items() if fault is None})
    return {n: fault for n, fault in faults.items() if fault}


def require(folder: Path, names: Sequence[str]) -> None:
    """Raises the DataError of the first of `names` in `folder` that is damaged."""
    for error in damaged(folder, names).values():
        raise error


def undone(folder: Path, tasks: Sequence[parts.Task], listed: Listed = NOTHING) -> list[parts.Task]:
    """Returns those of `tasks` whose part in `folder` is missing, of another fingerprint, or damaged, as `damaged`."""
    from transforms.core import parts

    done = {t.name for t in tasks if parts.is_done(folder, t)}
    faults = damaged(folder, sorted(done), listed)
    for name in faults:
        progress.say(f"{folder.name}: {name} is damaged and will be rewritten")
    return [t for t in tasks if t.name not in done or t.name in faults]


def is_done(folder: Path, task: parts.Task) -> bool:
    """Returns whether `folder` holds the part of `task`, with the same fingerprint and undamaged."""
    return not undone(folder, [task])


def _fault(path: Path, listed: str | None) -> DataError | None:
    from transforms.core import sealed

    try:
        sealed.check(path)
        if listed and sealed.sha256(path) != listed:
            return sealed.damage(path, "its SHA-256 is not the one in manifest.json")
    except DataError as error:
        return error
    return None


def _stat(path: Path) -> str:
    """Returns what changes when a file is written, replaced or touched; empty if there is none."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def _memory(folder: Path) -> Path | None:
    """Returns the file of what was checked in `folder`; None outside of a project's data."""
    if "data" not in folder.parts:
        return None
    depth = len(folder.parts) - folder.parts[::-1].index("data")
    return Path(*folder.parts[:depth], FOLDER, "+".join(folder.parts[depth:]))


def _read(folder: Path) -> Seen:
    path = _memory(folder)
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path else []
        rows = (line.split("\t") for line in lines)
        return {name: (stat, float(when)) for name, stat, when in rows}
    except (OSError, ValueError):  # none yet, or damaged itself: everything is checked once more
        return {}


def _remember(folder: Path, seen: Seen, found: Seen) -> None:
    path = _memory(folder)
    if not path or not found:
        return
    there = set(os.listdir(folder))
    kept = {name: value for name, value in sorted({**seen, **found}.items()) if name in there}
    text = "".join(f"{name}\t{stat}\t{when:.0f}\n" for name, (stat, when) in kept.items())
    with contextlib.suppress(DataError):  # a project that may only be read is checked each time
        files.write_text(path, text)
