"""The report's figures of trust: from the metrics of a run, and what they say when there are none."""

from pathlib import Path
from typing import Any

import pytest
from support import builders

from pipelines.core import stage
from pipelines.core.project import Project
from pipelines.reporting.figure import FigureData
from pipelines.reporting.trust_figures import canaries, stability

AUC = {"shuffled": 0.91, "wrong_language": 0.62}
LQS = {
    "canaries": 24,
    "canary_auc": AUC,
    "canary_auc_by_signal": {"score": AUC, "lqs": {"shuffled": 0.7, "wrong_language": 0.5}},
}
STABLE = {
    "rows": 40, "checkpoints": {"loss": [0.9, None], "grad_norm": [0.8, 0.7]}, "sketch_against_exact": 0.981,
    "seed_against_seed": 0.77, "conflict_rate": 0.25,
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return builders.empty_project(tmp_path)


def figure_data(project: Project, *columns: str) -> FigureData:
    return FigureData(project, None, frozenset(columns), None)  # type: ignore[arg-type]


def test_canaries_are_a_row_a_kind_and_a_column_a_signal(project: Project) -> None:
    stage.write_metrics(project, "lqs", LQS)
    found = canaries(figure_data(project))
    assert list(found.columns) == ["junk", "final score", "LQS"]
    assert [list(r) for r in found.rows] == [["shuffled", "0.91", "0.70"], ["wrong language", "0.62", "0.50"]]
    assert "weakest on wrong language: 0.62" in found.svg
    assert "24 canary rows" in found.note


def test_stability_says_what_changed_and_how_alike_rows_rank(project: Project) -> None:
    stage.write_metrics(project, "gradients", {"stability": STABLE})
    found = dict(map(tuple, stability(figure_data(project)).rows))
    assert found["loss at checkpoints 2 and 3"] == "constant"
    assert found["grad norm at checkpoints 1 and 2"] == "0.800"
    assert found["cosine with the target: int8 sketch vs. exact"] == "0.981"
    assert len(found) == 7


@pytest.mark.parametrize(
    ("name", "figure", "metrics", "words"),
    [
        ("lqs", canaries, None, "lqs has not run"), ("lqs", canaries, {"canary_auc_by_signal": {}}, "did not run"),
        ("gradients", stability, None, "gradients has not run"), ("gradients", stability, {"rows": 0}, "Too few rows"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(project: Project, name: str, figure: Any, metrics: Any, words: str) -> None:
    columns = ["lqs_z", "grad_norm"] if metrics is not None else []
    if metrics is not None:
        stage.write_metrics(project, name, metrics)
    assert words in figure(figure_data(project, *columns)).missing
