"""Parts in Beam: their coder, and the transforms that read and write them.

Apart from `parts`, so that what only looks at files starts without Beam.
"""

from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
import pyarrow as pa

from transforms.core.parts import Part, Reads, Receipt, Task, read_columns, write_part


class PartCoder(beam.coders.Coder):
    """Arrow IPC stream: self-describing, truncates slices, cheap size estimate (pickle does neither)."""

    def encode(self, value: Part) -> bytes:
        names = {b"name": value.name.encode(), b"fingerprint": value.fingerprint.encode()}
        schema = value.batch.schema
        batch = value.batch.replace_schema_metadata({**(schema.metadata or {}), **names})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue().to_pybytes())

    def decode(self, encoded: bytes) -> Part:
        with pa.ipc.open_stream(pa.py_buffer(encoded)) as reader:
            batch = reader.read_next_batch()
        metadata = dict(batch.schema.metadata)
        name, fingerprint = metadata.pop(b"name").decode(), metadata.pop(b"fingerprint").decode()
        return Part(name, fingerprint, batch.replace_schema_metadata(metadata or None))

    def estimate_size(self, value: Part) -> int:
        return int(value.batch.nbytes)

    def is_deterministic(self) -> bool:
        return False

    def to_type_hint(self) -> type:
        return Part

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


beam.coders.registry.register_coder(Part, PartCoder)


@dataclass
class ReadParts(beam.PTransform):
    """Reads the columns of each task's part: `PCollection[Task]` → `PCollection[Part]`."""

    root: Path
    reads: Reads

    def expand(self, tasks: beam.PCollection) -> beam.PCollection:
        return tasks | "ReadColumns" >> beam.Map(self._read)

    def _read(self, task: Task) -> Part:
        return Part(task.name, task.fingerprint, read_columns(self.root, task.name, self.reads))


@dataclass
class WriteParts(beam.PTransform):
    """Writes each part into `folder`: `PCollection[Part]` → `PCollection[Receipt]`. Idempotent."""

    folder: Path
    schema: pa.Schema

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "WritePart" >> beam.Map(self._write)

    def _write(self, part: Part) -> Receipt:
        return write_part(self.folder, part, self.schema)
