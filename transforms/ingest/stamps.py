"""Did a source change between its digest and the end of its reading? Then its rows would stand under another digest."""

import errno
import time
from pathlib import Path

from scoring.core.files import file_digest
from transforms.decode.errors import MediaError
from transforms.ingest.rows import locate

_FRESH_S = 2.0  # a file system may give two changes within a tick the same time

GONE = "gone"


def stamp(path: Path, *, patient: bool = False) -> str:
    """Returns what the system changes when a file is written, replaced or touched; `gone` if it cannot be seen.

    Empty for a file that was changed just now: whether that goes on only its bytes tell. For a large one, of which
    every piece would be compared with the bytes of all, be `patient`: wait once until that is over.
    """
    try:
        found = path.stat()
    except OSError:
        return GONE
    if time.time() - max(found.st_mtime, found.st_ctime) < _FRESH_S:
        if not patient:
            return ""
        time.sleep(_FRESH_S)
        return stamp(path)
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def media_stamp(root: Path, media_root: str | None, uri: str, name: str) -> str:
    """Returns the stamp of the medium that a row of file `uri` calls `name`."""
    try:
        return stamp(locate(root, media_root, uri, name))
    except (MediaError, OSError):
        return GONE


def change(path: Path, size: int, before: str, digest: str) -> str:
    """Returns in words how `path` differs from the file of this size, stamp and digest; empty if it does not."""
    if before and stamp(path) == before:
        return ""
    try:
        found = path.stat().st_size
        if found != size:
            return f"its size went from {size:,} to {found:,} bytes"
        return "" if file_digest(path) == digest else f"its bytes are others, though still {size:,}"
    except OSError as error:
        return "it was deleted" if error.errno == errno.ENOENT else f"it can no longer be read: {error.strerror}"
