"""Short texts that cost much to find out, kept in the user's cache folder by the digest of all that they follow from.

A memory, not a truth: what is missing, damaged or cannot be written is found out again.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def folder() -> Path:
    """Returns the folder of this machine's user for everything of ours that may be deleted at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradsift"


def recall(kind: str, key: bytes, find: Callable[[], str]) -> str:
    """Returns what `find` gives for `key`, which holds all that it depends on; from the cache if it is there."""
    path = folder() / kind / hashlib.blake2b(key, digest_size=16).hexdigest()
    found = _read(path)
    if found is None:
        found = find()
        _write(path, found)
    return found


def _read(path: Path) -> str | None:
    try:
        checksum, _, text = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return text if checksum == _checksum(text) else None


def _write(path: Path, text: str) -> None:
    """Writes without waiting for the disk: a checksum tells a file that a crash left half-written."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{_checksum(text)}\n{text}")
        os.replace(temporary, path)


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
