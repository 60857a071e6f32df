"""Arrow files of one batch, mapped into memory: what a stage keeps to itself, read by reference.

Opening one copies nothing, so a worker may take a few rows, or one column, of many files. What is kept for later runs
ends in a digest of its bytes, which `recorded` compares.
"""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import xxhash

from scoring.core import files
from scoring.core.types import JsonObject

SUFFIX = ".arrow"
_RECORD = b"gradsift"
_MAGIC = b"gradseal"
_SEAL_BYTES = 16 + len(_MAGIC)


def write(path: Path, batch: pa.RecordBatch, **record: object) -> None:
    """Writes `batch` to `path`, whole or not at all, with a `record` that `recorded` gives back."""

    def put(temporary: str) -> None:
        _put(Path(temporary), batch, record)
        with pa.memory_map(temporary) as source:
            digest = xxhash.xxh3_128(memoryview(source.read_buffer())).digest()
        with open(temporary, "ab") as file:
            file.write(digest + _MAGIC)

    files.write_atomic(path, put)


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
    """Returns the batch of `path`; its columns are mapped from the file."""
    return _open(path).get_batch(0)


def _open(path: Path) -> pa.ipc.RecordBatchFileReader:
    content = pa.memory_map(str(path)).read_buffer()
    return pa.ipc.open_file(content.slice(0, len(content) - _SEAL_BYTES) if _is_sealed(content) else content)


def _is_sealed(content: pa.Buffer) -> bool:
    return len(content) >= _SEAL_BYTES and content.slice(len(content) - len(_MAGIC)).to_pybytes() == _MAGIC


def check(path: Path) -> bool | None:
    """Returns whether the bytes of `path` are those that `write` left; None where no digest ends them.

    Raises:
      OSError: it cannot be read.
    """
    content = pa.memory_map(str(path)).read_buffer()
    if not _is_sealed(content):
        return None
    end = len(content) - _SEAL_BYTES
    return bool(content.slice(end, 16).to_pybytes() == xxhash.xxh3_128(memoryview(content)[:end]).digest())


def recorded(path: Path) -> JsonObject:
    """Returns the record of `path`; an empty one if there is no whole file, with the bytes that were written."""
    try:
        if check(path) is False:
            return {}
        found = _open(path).schema.metadata or {}
    except (OSError, pa.ArrowInvalid):
        return {}
    return dict(json.loads(found.get(_RECORD, b"{}")))
