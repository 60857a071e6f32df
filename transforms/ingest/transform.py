"""Ingest on Beam: apart from what reads a unit, so that a run without new files starts without Beam."""

from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam

from transforms.core import parts
from transforms.ingest.config import IngestConfig
from transforms.ingest.reading import UnitTask, ingest_unit


@dataclass
class IngestUnits(beam.PTransform):
    """Writes the parts of each unit: `PCollection[UnitTask]` → `PCollection[Receipt]` of its part of rejects."""

    root: Path
    data: Path
    config: IngestConfig

    def expand(self, tasks: beam.PCollection) -> beam.PCollection:
        return tasks | "IngestUnit" >> beam.Map(self._ingest)

    def _ingest(self, task: UnitTask) -> parts.Receipt:
        return ingest_unit(task, self.root, self.data, self.config)
