"""The report's figures of the quality head: from the metrics of a fitted one, and none where there is none."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import builders

from pipelines import report
from pipelines.core import stage
from pipelines.core.project import Project
from pipelines.reporting.figure import Figure, FigureData
from pipelines.reporting.head_figures import LISTED, groups, ways
from pipelines.reporting.score_figures import models
from scoring.quality import figures as quality_figures
from scoring.quality.head import Fitted

TITLES = ("Is the quality head better than simple baselines?", "Where is the quality head weak?")
WITHOUT = [
    {},
    {"kept": 4},
    {"head": {"kind": "none", "model": "m", "why": "fewer than 20 good"}},
    {"head": {"kind": "model", "model": "m"}},
]


def head(**values: Any) -> dict[str, Any]:
    """Returns the metrics of a head over 80 rows in two languages and a domain, as the stage makes them."""
    rng = np.random.default_rng(3)
    good = np.arange(80) % 2 == 0
    blur = {"length": 9.0, "rules": 1.0, "model": 0.8, "both": 0.5}
    unseen = {way: np.clip(0.5 + 0.3 * (good - 0.5) + 0.2 * b * rng.normal(size=80), 0, 1) for way, b in blur.items()}
    kinds = {"domain": ["web"] * 80, "language": ["en"] * 40 + ["<b>de</b>"] * 40}
    chars = rng.integers(50, 5000, 80).astype(float)
    figures = quality_figures.figures(Fitted(None, unseen), good, chars, kinds)  # type: ignore[arg-type]
    rows = {"good": 40, "bad": 40, "unseen": 80, "folds": 5}
    return {"kind": "weak labels", "model": "m", "rows": rows, **figures, **values}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return builders.empty_project(tmp_path)


def figure_data(project: Project, **metrics: Any) -> FigureData:
    if metrics:
        stage.write_metrics(project, "quality", metrics)
    return FigureData(project, None, frozenset(), None)  # type: ignore[arg-type]


def drawn(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def test_the_four_ways_are_a_row_each(project: Project) -> None:
    own = head()
    found = drawn(ways(figure_data(project, head=own)))
    assert list(found.columns) == ["features", "AUC", "F1", "calibration error", "AUC at equal length"]
    assert [row[0] for row in found.rows] == [
        "length only",
        "text statistics",
        "encoder only",
        "head (both)",
    ]
    names = ("auc", "f1", "calibration_error", "auc_at_like_length")
    assert list(found.rows[3][1:]) == [f"{own['ways']['both'][name]:.3f}" for name in names]
    best = max(own["ways"][way]["auc"] for way in ("length", "rules", "model"))
    assert f"{own['ways']['both']['auc'] - best:+.3f} against the best single baseline" in found.note
    assert "80 rows with weak labels" in found.note
    assert "Krippendorff" not in found.note


@pytest.mark.parametrize(("alpha", "told"), [(0.8312, "0.831"), (None, "not defined")])
def test_labels_tell_how_far_they_agree(project: Project, alpha: float | None, told: str) -> None:
    own = head(kind="labels", agreement={"alpha": alpha, "disputed": 12})
    note = drawn(ways(figure_data(project, head=own))).note
    assert f"alpha of the labels is {told}; 12 rows are disputed" in note


def test_a_head_worse_than_its_parts_says_so(project: Project) -> None:
    own = head()
    own["ways"]["model"]["auc"] = own["ways"]["both"]["auc"] + 0.05
    own["ways"]["both"]["auc_at_like_length"] = None
    found = drawn(ways(figure_data(project, head=own)))
    assert "−0.050 against the best single baseline (encoder only)" in found.note
    assert found.rows[3][-1] == "–"


def test_groups_come_with_the_heads_weakest_first(project: Project) -> None:
    own = head()
    found = drawn(groups(figure_data(project, head=own)))
    assert {tuple(row[:2]) for row in found.rows} == {("web", "domain"), ("en", "language"), ("<b>de</b>", "language")}
    assert [row[-1] for row in found.rows] == sorted(row[-1] for row in found.rows)
    assert ["web", "domain", *(f"{v:.3f}" for v in own["auc_by_domain"]["web"].values())] in map(list, found.rows)


def test_many_groups_are_cut(project: Project) -> None:
    aucs = {"length": 0.5, "rules": 0.6, "model": 0.7}
    many = {f"site{k}": {**aucs, "both": 1 - k / 100} for k in range(LISTED + 5)}
    found = drawn(groups(figure_data(project, head=head(auc_by_domain=many, auc_by_language={}))))
    assert (len(found.rows), found.rows[0][0]) == (LISTED, f"site{LISTED + 4}")
    assert f"The lowest {LISTED} of {LISTED + 5}" in found.note
    assert groups(figure_data(project, head=head(auc_by_domain={}, auc_by_language={}))) is None


@pytest.mark.parametrize("metrics", WITHOUT)
def test_without_a_fitted_head_there_is_nothing(project: Project, metrics: dict[str, Any]) -> None:
    assert ways(figure_data(project, **metrics)) is None
    assert groups(figure_data(project, **metrics)) is None


def test_figures_of_their_own_are_not_told_twice(project: Project) -> None:
    told = [name for _, name, _ in models(figure_data(project, head=head(heldout={"f1": 0.9}))).rows]
    assert "heldout.f1" in told
    assert not any(name.startswith(("ways", "auc by")) for name in told)


def test_the_page_shows_the_head_where_there_is_one(tmp_path: Path) -> None:
    project = builders.complete_project(tmp_path)
    report.run(project)
    before = report.page_path(project).read_text(encoding="utf-8")
    assert not any(title in before for title in TITLES)
    project.metrics("quality").write_text(json.dumps({"head": head()}), encoding="utf-8")
    report.run(project)
    page = report.page_path(project).read_text(encoding="utf-8")
    assert all(title in page for title in TITLES)
    assert "&lt;b&gt;de&lt;/b&gt;" in page
    assert "<b>de" not in page
