"""A small real stage for tests of the runner: token counts equal to the row's position."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
import pyarrow as pa

from pipelines.core import stage
from pipelines.core.options import RuntimeConfig
from pipelines.core.params import Params
from pipelines.core.project import Project
from scoring.core.errors import DataError
from transforms.core import parts, schemas

READS = {"samples": ["position", "text"]}
COUNTS = ("text_tokens", "image_tokens", "video_tokens", "audio_tokens", "tokens", "flops", "bytes")


def project(root: Path, engine: str = "local") -> Project:
    """Returns a project at `root` that reads no params file."""
    return Project(
        root, Params(root / "params.yaml", {}), RuntimeConfig(engine=engine, workers=2, threads=1, beam_args=())
    )


def samples(root: Path, count: int, rows: int = 4) -> None:
    """Writes `count` parts of `rows` samples each."""
    for k in range(count):
        columns = {f.name: pa.nulls(rows, f.type) for f in schemas.SAMPLES}
        columns["sample_id"] = pa.array([f"{k}-{i}" for i in range(rows)], pa.string())
        columns["position"] = pa.array(range(rows), pa.int64())
        part = parts.Part(f"part-{k:016x}-0000.parquet", f"f{k}", pa.record_batch(columns))
        parts.write_part(root / "data/samples", part, schemas.SAMPLES)


@dataclass
class CountPositions(beam.PTransform):
    """Copies `position` into every count; `die_at` kills the process at that part, `fail_at` raises."""

    die_at: str = ""
    fail_at: str = ""

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "CountPositions" >> beam.Map(self._count)

    def _count(self, part: parts.Part) -> parts.Part:
        if part.name == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if part.name == self.fail_at:
            raise DataError("bad value 7", where=part.name, remedy="fix it")
        position = part.batch["samples.position"]
        return part.with_batch(
            pa.record_batch({"sample_id": part.batch["sample_id"], **dict.fromkeys(COUNTS, position)})
        )


def count(target: Project, transform: CountPositions | None = None, config: object = None, **more: object) -> None:
    """Runs the stage."""
    sink = more.pop("sink", None)
    stage.map_parts(target, sidecar(config or {"a": 1}, **more), transform or CountPositions(), sink)


def sidecar(config: object, **more: object) -> stage.Sidecar:
    """Returns what `count` writes."""
    own = {"folder": "tokens/raw", "schema": schemas.TOKENS_RAW, "reads": READS, "code": "transforms.core.schemas"}
    return stage.Sidecar(config=config, **own | more)
