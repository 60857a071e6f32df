"""The LQS stage on disk: exact statistics and bands, invariances, and every row accounted for."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from support import scored_corpus

from pipelines import lqs
from pipelines.core.project import Project
from scoring.core.errors import ConfigError
from transforms.core import parts, schemas

MIX = {"alpha": 0.5, "norm_discount": 0.5}
ROWS = [scored_corpus.with_static(scored_corpus.row(n), n) for n in range(48)]


def rows(project: Project) -> dict[str, dict[str, Any]]:
    reads = {"static": ["static_score"], "lqs": [n for n in schemas.LQS.names if n != "sample_id"]}
    batches = parts.iter_columns(project.data, parts.names(project.folder("samples")), reads)
    found = [r for b in batches for r in b.to_pylist()]
    return {r.pop("sample_id"): {k.split(".")[-1]: v for k, v in r.items()} for r in found}


def metrics(project: Project) -> dict[str, Any]:
    return dict(json.loads(project.metrics("lqs").read_text()))


def scored(root: Path, given: list[dict[str, Any]], size: int, **sections: Any) -> Project:
    project = scored_corpus.write(root, given, size, **sections)
    lqs.run(project)
    return project


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return scored(tmp_path_factory.mktemp("lqs"), ROWS, 10, lqs=MIX)


def z(values: np.ndarray) -> np.ndarray:
    return np.clip((values - np.nanmean(values)) / np.nanstd(values), -3, 3)


def test_scores_are_those_of_a_whole_corpus_in_memory(done: Project) -> None:
    found = rows(done)
    norms, dots = np.full((48, 3), np.nan), np.full((48, 2), np.nan)
    for n in (n for n in range(48) if n % 12 not in (3, 4, 6, 9, 10, 11)):
        norms[n], dots[n] = ROWS[n]["gradients"]["grad_norm"], ROWS[n]["gradients"]["costate_dot"][:2]
    score = (dots / norms[:, 1:]).sum(axis=1)
    size = z(np.log(norms[:, 2] * 60**0.5))
    fixed = np.array([np.nan if r["static_score"] is None else r["static_score"] for r in found.values()])
    expected = np.where(np.isnan(score), z(fixed), 0.5 * z(fixed) + 0.5 * (z(score) - 0.5 * size) / 1.25**0.5)
    actual = np.array([np.nan if r["score"] is None else r["score"] for r in found.values()])
    np.testing.assert_allclose(actual, expected, rtol=1e-9)
    relative = norms[:, 2] / np.nanmean(norms[:, 2])
    flags = [None if math.isnan(e) else bool(r > 1.5) for e, r in zip(expected, relative, strict=True)]
    assert [r["high_value"] for r in found.values()] == flags


def test_every_row_is_scored_or_dropped_and_says_what_it_lacks(done: Project) -> None:
    notes = {n: r["score_note"] for n, r in enumerate(rows(done).values())}
    assert {notes[n] for n in notes if n % 12 in (9, 10, 11)} == {"static only: no text"}
    assert {notes[n] for n in notes if n % 12 == 6} == {"static only: infinite gradient"}
    assert {notes[n] for n in notes if n % 12 not in (6, 9, 10, 11)} == {None}


def test_bands_are_exact_shares_in_the_order_of_scores(done: Project) -> None:
    keys = sorted((r["score"], i, r["band"]) for i, r in rows(done).items() if r["score"] is not None)
    assert [band for _, _, band in keys] == ["base"] * 16 + ["reinforcement"] * 16 + ["challenge"] * 8


def test_metrics_count_every_scored_row(done: Project) -> None:
    found, kept = metrics(done), [r for r in rows(done).values() if r["score"] is not None]
    assert found["by_band"] == {"base": 16, "challenge": 8, "reinforcement": 16}
    assert (found["rows_scored"], found["with_gradients"], found["static_only"], found["no_score"]) == (40, 24, 16, 0)
    assert found["high_value"] == sum(r["high_value"] for r in kept)
    assert found["mean"] == pytest.approx(np.mean([r["score"] for r in kept]))
    assert found["sd"] == pytest.approx(np.std([r["score"] for r in kept]))
    both = [(r["static_score"], r["lqs"]) for r in kept if r["lqs"] is not None]
    assert found["spearman_static_lqs"] == pytest.approx(spearmanr(*zip(*both, strict=True)).statistic)
    assert found["formula"] == "delt"


@pytest.mark.parametrize("size", [4, 48])
def test_part_size_and_order_change_no_bit(tmp_path: Path, done: Project, size: int) -> None:
    assert rows(scored(tmp_path, ROWS[::-1], size, lqs=MIX)) == rows(done)


def test_ties_are_cut_by_sample_id(tmp_path: Path) -> None:
    given = [{**ROWS[0], "samples": {**ROWS[0]["samples"], "sample_id": f"s{n}"}} for n in range(10)]
    found = rows(scored(tmp_path, given[::-1], 3))
    assert {r["score"] for r in found.values()} == {0.0}
    assert [found[f"s{n}"]["band"] for n in range(10)] == ["base"] * 4 + ["reinforcement"] * 4 + ["challenge"] * 2


def test_the_weighted_formula(tmp_path: Path) -> None:
    project = scored(tmp_path, ROWS, 20, lqs={"formula": "weighted", "alpha": 1.0})
    found, kept = rows(project), [n for n in range(48) if n % 12 not in (3, 4, 6, 9, 10, 11)]
    norm = np.array([ROWS[n]["gradients"]["grad_norm"][-1] for n in kept])
    cosine = np.array([ROWS[n]["gradients"]["target_cosine"][-1] for n in kept])
    expected = 0.7 * norm / norm.mean() + 0.3 * (cosine + 1) / 2
    values = list(found.values())
    np.testing.assert_allclose([values[n]["lqs"] for n in kept], expected, rtol=1e-12)
    np.testing.assert_allclose([values[n]["score"] for n in kept], z(expected), rtol=1e-9)


def one_checkpoint(row: dict[str, Any]) -> dict[str, Any]:
    lists = {k: v[-1:] for k, v in row["gradients"].items() if isinstance(v, list)}
    return {**row, "gradients": {**row["gradients"], **lists}}


def test_one_checkpoint_is_enough_for_the_weighted_formula_alone(tmp_path: Path) -> None:
    given = [one_checkpoint(ROWS[n]) for n in (0, 1, 2)]
    with pytest.raises(ConfigError, match=r"(?s)lqs.formula.*reference.checkpoints"):
        scored(tmp_path / "delt", given, 2)
    project = scored(tmp_path / "weighted", given, 2, lqs={"formula": "weighted"})
    assert metrics(project)["with_gradients"] == 3


@pytest.mark.parametrize("kinds", [[], [0], [3], [9], [6, 9]])
def test_no_row_one_row_and_no_gradients(tmp_path: Path, kinds: list[int]) -> None:
    project = scored(tmp_path, [ROWS[n] for n in kinds], 5)
    for number, row in zip(kinds, rows(project).values(), strict=True):
        assert row["band"] == (None if number == 3 else row["band"])
        assert (row["score"] is None) == (number == 3)
    assert metrics(project)["spearman_static_lqs"] is None


def test_no_parts_at_all(tmp_path: Path) -> None:
    project = scored_corpus.builders.empty_project(tmp_path)
    lqs.run(project)
    assert metrics(project)["rows_scored"] == 0


def test_a_second_run_computes_nothing_and_a_forced_one_the_same_bytes(tmp_path: Path) -> None:
    project = scored(tmp_path, ROWS[:12], 5)
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in project.folder("lqs").iterdir()}
    lqs.run(project)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in project.folder("lqs").iterdir()} == before
    lqs.run(Project(project.root, project.params, project.runtime, force=True))
    assert {p: p.read_bytes() for p in project.folder("lqs").iterdir()} == {p: d for p, (d, _) in before.items()}
