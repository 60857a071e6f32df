"""Files that are there whole or not at all: temporary name in the same folder, fsync, rename."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from scoring.core.errors import DataError

TEMPORARY = ".tmp-"  # how unfinished files and folders begin


def write_atomic(path: Path, write: Callable[[str], object]) -> None:
    """Calls `write(temporary path)`, flushes it to disk and renames it to `path`.

    Readers see the old file or the whole new one. A failed write leaves nothing behind.

    Raises:
      DataError: the disk is full or the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=TEMPORARY, suffix=path.suffix, dir=path.parent)
        os.close(handle)
        try:
            write(temporary)
            sync(temporary)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
            sync(path.parent)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: Exception) -> DataError:
    """Returns the error of a write that the system refused."""
    return DataError(
        f"cannot write: {error}",
        where=str(path),
        remedy="free disk space or fix the folder's permissions, then rerun: finished parts are kept",
    )


def sync(path: str | Path) -> None:
    """Flushes the file or folder `path` to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_digest(path: Path) -> str:
    """Returns the 128-bit digest of a file's bytes.

    Raises:
      OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def write_text(path: Path, text: str) -> None:
    """Writes `text` atomically as UTF-8."""
    write_atomic(path, lambda temporary: Path(temporary).write_bytes(text.encode()))


def write_json(path: Path, value: object) -> None:
    """Writes `value` atomically as sorted, indented JSON: the same value is the same bytes.

    A file that holds them already is left as it is, so that its times tell of a change.
    """
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    if not _holds(path, text):
        write_text(path, text)


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False
