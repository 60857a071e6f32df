"""A small whole project that ran through once: its summary, and what its pipelines hand on."""

import json
import shutil
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor
from apache_beam.typehints import Any as AnyType
from support import command, small

SUMMARY, SEEN = "summary.txt", "seen.json"
BEAMS_OWN = ("List", "Spread", "GroupBy")  # labels of Create, Reshuffle and GroupByKey: their insides are Beam's


class Untyped(PipelineVisitor):
    """The labels of steps that do not say what they yield, and how many pipelines were looked at."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.pipelines = 0

    def visit_transform(self, node: AppliedPTransform) -> None:
        inside = any(piece.startswith(BEAMS_OWN) for piece in node.full_label.split("/")[:-1])
        if not inside and any(p.element_type in (AnyType, Any, object) for p in node.outputs.values()):
            self.labels.append(node.full_label)


def make(root: Path, corpus: Path) -> None:
    """Runs everything in `root`, every pipeline looked at; the summary is written last."""
    visitor, run = Untyped(), beam.Pipeline.run

    def visited(self: beam.Pipeline, *arguments: Any, **options: Any) -> Any:
        self.visit(visitor)
        visitor.pipelines += 1
        return run(self, *arguments, **options)

    small.write(root, corpus)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam.Pipeline, "run", visited)
        out = command.within(root, "run")
    assert out.returncode == 0, out.stderr
    (root / SEEN).write_text(json.dumps({"pipelines": visitor.pipelines, "untyped": visitor.labels}))
    (root / SUMMARY).write_text(out.stdout)


def copy(root: Path, to: Path) -> Path:
    """Copies the project, times of files included."""
    return Path(shutil.copytree(root, to, dirs_exist_ok=True))
