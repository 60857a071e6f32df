"""The canary check, on a whole small project: figures for every kind, failure below the bar, nothing shipped."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support import small, whole

from pipelines import lqs
from pipelines.core.project import Project, open_project
from pipelines.passes import canaries
from scoring.core.errors import ConfigError, DataError
from scoring.quality import degrade
from transforms.core import parts
from transforms.lqs.canary_figures import LABELLED_BAD
from transforms.lqs.config import LqsSection

KINDS = {name for name, _ in degrade.CANARIES}


@pytest.fixture(scope="module")
def root(whole_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project on whose data `lqs` has run, with canaries."""
    path = whole.copy(whole_run, tmp_path_factory.mktemp("canaries"))
    lqs.run(reopened(path))
    return path


def reopened(root: Path, **changes: Any) -> Project:
    """Returns the project with other params; its data is that of the run."""
    return open_project(small.write(root, **{"lqs__canaries__rows": 8, **changes}))


def metrics(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "metrics/lqs.json").read_bytes()))


def scored(root: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (root / "data/lqs").glob("*")}


def test_every_kind_has_a_figure_of_every_signal(root: Path) -> None:
    lqs.run(reopened(root))
    found = metrics(root)
    assert found["canaries"] == 8 * (1 + len(KINDS))
    assert set(found["canary_auc"]) == KINDS
    assert found["canary_auc_by_signal"]["score"] == found["canary_auc"]
    assert {"static", "lqs", "formula", "low_norm", "predictability"} <= set(found["canary_auc_by_signal"])
    assert all(0 <= v <= 1 for kinds in found["canary_auc_by_signal"].values() for v in kinds.values())


def test_no_canary_is_a_row_of_the_data(root: Path) -> None:
    ids = {
        i for n in parts.names(root / "data/lqs") for i in pq.read_table(root / "data/lqs" / n)["sample_id"].to_pylist()
    }
    samples = {
        i
        for n in parts.names(root / "data/samples")
        for i in pq.read_table(root / "data/samples" / n)["sample_id"].to_pylist()
    }
    assert ids == samples
    assert not any(i.startswith("canary") for i in ids)


def test_a_second_run_scores_no_canary_again(root: Path) -> None:
    lqs.run(reopened(root))
    path = root / "data/lqs/canaries.parquet"
    before, data = path.stat().st_mtime_ns, scored(root)
    lqs.run(reopened(root))
    assert path.stat().st_mtime_ns == before
    lqs.run(dataclasses.replace(reopened(root), force=True))
    assert path.stat().st_mtime_ns > before
    assert scored(root) == data


def test_a_score_below_the_bar_fails_and_leaves_its_figures(root: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)cannot separate junk from good rows.*min_canary_auc.*remedy"):
        lqs.run(reopened(root, lqs__min_canary_auc=1.0))
    assert set(metrics(root)["canary_auc"]) == KINDS


def test_labelled_rows_are_compared_with_labelled_rows(root: Path) -> None:
    texts = [f"Page {n}: the river rises in the hills and runs to the sea, past mill and market." for n in range(12)]
    bad = [f"page {n} {n} click here buy now >> << {n}" for n in range(10)]
    rows = [{"page": t, "verdict": 1} for t in texts] + [{"page": t, "verdict": 0} for t in bad]
    (root / "pages.jsonl").write_text("\n".join(map(json.dumps, [*rows, {"page": "not judged", "verdict": None}])))
    labelled = {"name": "pages", "paths": ["pages.jsonl"], "columns": ["page"], "label": "verdict"}
    lqs.run(reopened(root, lqs__canaries__labelled=labelled))
    found = metrics(root)
    assert set(found["canary_auc"]) == {*KINDS, LABELLED_BAD}
    assert found["canaries"] == 8 * (1 + len(KINDS)) + 22


@pytest.mark.parametrize(
    ("labelled", "error", "words"),
    [
        ({"paths": ["gone.jsonl"]}, ConfigError, "matches no files"),
        ({"label": "nope"}, ConfigError, "no row of .* has column 'nope'"),
        ({"good_labels": ["9"]}, ConfigError, r"(?s)all 2 rows of pages are bad.*good_labels"),
        ({"good_labels": ["0", "1"]}, ConfigError, "all 2 rows of pages are good"),
    ],
)
def test_labelled_rows_that_cannot_be_used(root: Path, labelled: dict[str, Any], error: type, words: str) -> None:
    (root / "two.jsonl").write_text('{"text": "A page.", "label": 1}\n{"text": "Another.", "label": 0}\n')
    source = {"name": "pages", "paths": ["two.jsonl"], "columns": ["text"], **labelled}
    project = reopened(root, lqs__canaries__labelled=source)
    with pytest.raises(error, match=words):
        canaries.measure(project, project.section("lqs", LqsSection).canaries)


def test_no_canaries_at_all(root: Path) -> None:
    lqs.run(reopened(root, lqs__canaries__rows=0, lqs__min_canary_auc=1.0))
    assert metrics(root)["canary_auc"] == {}
    assert not (root / "data/lqs/canaries.parquet").exists()
