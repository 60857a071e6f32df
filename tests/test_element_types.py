"""No step of ours hands on elements of unknown type: Beam would pickle them."""

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import small
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor
from apache_beam.typehints import Any as AnyType

from pipelines import runner, stage

pytestmark = pytest.mark.slow
BEAMS_OWN = ("List", "Spread", "GroupBy")  # labels of Create, Reshuffle and GroupByKey: their insides are Beam's


class Untyped(PipelineVisitor):
    def __init__(self) -> None:
        self.labels: list[str] = []

    def visit_transform(self, node: AppliedPTransform) -> None:
        inside = any(piece.startswith(BEAMS_OWN) for piece in node.full_label.split("/")[:-1])
        if not inside and any(p.element_type in (AnyType, Any, object) for p in node.outputs.values()):
            self.labels.append(node.full_label)


def test_every_step_declares_what_it_yields(tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor, pipelines = Untyped(), []
    run = beam.Pipeline.run

    def visited(self: beam.Pipeline, *arguments: Any, **options: Any) -> Any:
        self.visit(visitor)
        pipelines.append(self)
        return run(self, *arguments, **options)

    monkeypatch.setattr(beam.Pipeline, "run", visited)
    project = small.write(tmp_path, corpus)
    runner.run(project, [s for s in stage.ORDER if s != "report"], engine=None, workers=None, force=False)
    assert len(pipelines) >= 10
    assert visitor.labels == []


def test_the_visitor_sees_an_untyped_step() -> None:
    from pipelines.options import RuntimeConfig, make_pipeline

    visitor = Untyped()
    pipeline = make_pipeline(RuntimeConfig(engine="local", workers=1, threads=1, beam_args=()))
    _ = pipeline | "ListNumbers" >> beam.Create(["1"]) | "Forget" >> beam.Map(json.loads)
    pipeline.visit(visitor)
    assert [label for label in visitor.labels if "Forget" in label]
