"""Arrow files of one batch, mapped into memory: what a stage keeps to itself, read by reference.

Opening one copies nothing, so a worker may take a few rows, or one column, of many files.
"""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from scoring.core import files

SUFFIX = ".arrow"
_RECORD = b"gradsift"


def write(path: Path, batch: pa.RecordBatch, **record: object) -> None:
    """Writes `batch` to `path`, whole or not at all, with a `record` that `recorded` gives back."""
    files.write_atomic(path, lambda temporary: _put(Path(temporary), batch, record))


def write_scratch(path: Path, batch: pa.RecordBatch, **record: object) -> None:
    """Writes `batch` as `write` does, but leaves it to the system when it reaches the disk: for this run alone.

    Raises:
      DataError: the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(f"{files.TEMPORARY}{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _put(temporary, batch, record)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise files.cannot_write(path, error) from error


def _put(path: Path, batch: pa.RecordBatch, record: Mapping[str, object]) -> None:
    schema = batch.schema.with_metadata({_RECORD: json.dumps(record, sort_keys=True).encode()})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(batch)


def read(path: Path) -> pa.RecordBatch:
    """Returns the batch of `path`; its columns lie in the file."""
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)


def recorded(path: Path) -> Mapping[str, Any]:
    """Returns the record of `path`; an empty one if there is no whole file."""
    try:
        with pa.memory_map(str(path)) as source:
            found = pa.ipc.open_file(source).schema.metadata or {}
    except (OSError, pa.ArrowInvalid):
        return {}
    return dict(json.loads(found.get(_RECORD, b"{}")))
