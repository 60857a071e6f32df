"""Precisions, targets and the proxy sample of the stage `gradients`, each against the exact run."""

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import text_projects
from support.text_projects import TINY, texts
from support.text_projects import gradient_rows as sidecar

from pipelines import gradients, reference
from pipelines.core.project import Project
from scoring.core import hashing
from scoring.core.errors import ConfigError
from scoring.lqs import distill
from transforms.core import parts
from transforms.core.schemas import SKETCHES
from transforms.gradients.notes import NOT_SAMPLED, PROXY

ROWS = texts(40)
C = TINY["checkpoints"]
WIDE = {"keep": "all", "rank": 64, "width": 8192}


@cache
def trained() -> Path:
    """Returns a folder with a reference, which all tests copy."""
    root = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    reference.run(text_projects.project(root, ROWS))
    return root / "data/reference"


def run(root: Path, **options: Any) -> Project:
    """Returns a project whose reference and gradients are done."""
    project = text_projects.project(root, ROWS, gradients=options)
    shutil.copytree(trained(), project.folder("reference"), dirs_exist_ok=True)
    gradients.run(project)
    return project


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return sidecar(run(tmp_path_factory.mktemp("exact"), sketch=WIDE))


def column(rows: dict[str, dict[str, Any]], name: str) -> np.ndarray:
    return np.array([row[name] for row in rows.values()], np.float64)


def test_sketches_alone_are_close_to_the_truth(exact: dict[str, Any], tmp_path: Path) -> None:
    project = run(tmp_path, precision="sketch", sketch=WIDE)
    found = sidecar(project)
    assert {row["gradient_mode"] for row in found.values()} == {"sketch"}
    np.testing.assert_allclose(column(found, "loss"), column(exact, "loss"), rtol=1e-5)
    np.testing.assert_allclose(column(found, "grad_norm"), column(exact, "grad_norm"), rtol=0.25)
    assert distill.spearman(column(found, "target_cosine")[:, -1], column(exact, "target_cosine")[:, -1]) > 0.95
    metrics = json.loads(project.metrics("gradients").read_bytes())
    assert metrics["modes"] == {"sketch": 40}


def test_exact_rows_keep_sketches_that_agree_with_them(tmp_path: Path) -> None:
    project = run(tmp_path, sketch=WIDE)
    assert {row["gradient_mode"] for row in sidecar(project).values()} == {"exact"}
    for name in parts.names(project.folder("gradients")):
        batch = parts.read_part(project.folder("gradients/sketches") / name, SKETCHES.names)
        for row in batch.to_pylist():
            assert [len(s) for s in row["sketch"]] == [8192] * C
            assert len(row["sketch_scale"]) == C
    found = json.loads(project.metrics("gradients").read_bytes())["stability"]
    assert found["sketch_against_exact"] > 0.95
    assert -1 <= found["seed_against_seed"] <= 1
    assert 0 <= found["conflict_rate"] <= 1
    assert [len(v) for v in found["checkpoints"].values()] == [C - 1] * 3


def test_no_sketches_are_kept_where_none_are_wanted(exact: dict[str, Any], tmp_path: Path) -> None:
    project = run(tmp_path, sketch={**WIDE, "keep": "last"})
    assert parts.names(project.folder("gradients/sketches"))
    project = run(tmp_path, sketch={**WIDE, "keep": "none"})
    assert not parts.names(project.folder("gradients/sketches"))
    np.testing.assert_allclose(column(sidecar(project), "grad_norm"), column(exact, "grad_norm"), rtol=1e-6)


def test_a_lost_part_of_sketches_is_made_again(tmp_path: Path) -> None:
    project = run(tmp_path)
    path = sorted(project.folder("gradients/sketches").glob("*.parquet"))[1]
    content = path.read_bytes()
    path.unlink()
    gradients.run(project)
    assert path.read_bytes() == content


def test_last_layers_are_exact_over_the_last_two_blocks(tmp_path: Path) -> None:
    one = sidecar(run(tmp_path / "one", precision="last_layers"))
    other = sidecar(run(tmp_path / "other", layers="last:2"))
    assert {row["gradient_mode"] for row in one.values()} == {"last_layers"}
    np.testing.assert_array_equal(column(one, "grad_norm"), column(other, "grad_norm"))


def test_auto_is_exact_while_nobody_else_works(tmp_path: Path) -> None:
    assert {r["gradient_mode"] for r in sidecar(run(tmp_path, precision="auto", max_load=1.0)).values()} == {"exact"}


def test_embeddings_add_to_the_norm(exact: dict[str, Any], tmp_path: Path) -> None:
    found = sidecar(run(tmp_path, embeddings=True))
    assert (column(found, "grad_norm") > column(exact, "grad_norm")).all()


def test_bfloat16_ranks_alike(exact: dict[str, Any], tmp_path: Path) -> None:
    found = sidecar(run(tmp_path, dtype="bfloat16"))
    for name in ("loss", "grad_norm"):
        assert distill.spearman(column(found, name)[:, -1], column(exact, name)[:, -1]) > 0.95


def test_the_hessian_term_vanishes_with_its_rate(exact: dict[str, Any], tmp_path: Path) -> None:
    still = sidecar(run(tmp_path / "still", costate="full", costate_rate=0.0))
    full = sidecar(run(tmp_path / "full", costate="full", costate_rate=0.5))
    first, of_still, of_full = (column(rows, "costate_dot")[:, 0] for rows in (exact, still, full))
    np.testing.assert_allclose(of_still, first, rtol=1e-4, atol=1e-7)
    assert np.abs(of_full - first).max() > 1e-3 * np.abs(first).max()
    np.testing.assert_array_equal(column(full, "grad_norm"), column(still, "grad_norm"))


def test_the_contrast_turns_the_direction_and_nothing_else(exact: dict[str, Any], tmp_path: Path) -> None:
    found = sidecar(run(tmp_path, contrast=1.0, sketch=WIDE))
    np.testing.assert_array_equal(column(found, "grad_norm"), column(exact, "grad_norm"))
    assert np.abs(column(found, "target_cosine") - column(exact, "target_cosine")).max() > 0.01


def target(root: Path, lines: list[str]) -> dict[str, Any]:
    root.mkdir(exist_ok=True)
    (root / "wanted.jsonl").write_text("\n".join(lines))
    return {"name": "wanted", "paths": ["wanted.jsonl"], "columns": ["question", "answer"]}


def test_a_target_set_is_aimed_at_until_a_byte_of_it_changes(exact: dict[str, Any], tmp_path: Path) -> None:
    wanted = [json.dumps({"question": "Where does the river rise?", "answer": f"At hill {n}."}) for n in range(30)]
    project = run(tmp_path, target=target(tmp_path, wanted))
    first = sidecar(project)
    assert not np.allclose(column(first, "target_cosine"), column(exact, "target_cosine"), atol=1e-3)
    times = [p.stat().st_mtime_ns for p in sorted(project.folder("gradients").glob("*.parquet"))]
    gradients.run(project)
    assert [p.stat().st_mtime_ns for p in sorted(project.folder("gradients").glob("*.parquet"))] == times
    target(tmp_path, wanted[:3])
    gradients.run(project)
    marker = json.loads((project.folder("gradients") / "directions/directions.json").read_bytes())
    assert len(marker["ids"]) == 3
    assert not np.allclose(column(sidecar(project), "target_cosine"), column(first, "target_cosine"), atol=1e-4)


@pytest.mark.parametrize(
    ("lines", "change", "words"),
    [
        ([], {"paths": ["gone.jsonl"]}, "target wanted: 'gone.jsonl' matches no files"),
        (['{"question": " ", "answer": ""}'], {}, r"(?s)target wanted contains no text.*gradients\.target"),
        (['{"other": "x"}'], {}, "column 'question'"),
    ],
)
def test_a_target_set_that_cannot_be_used(tmp_path: Path, lines: list[str], change: dict[str, Any], words: str) -> None:
    source = target(tmp_path, lines)
    with pytest.raises(ConfigError, match=words):
        run(tmp_path, target={**source, **change})


def test_rows_outside_the_proxy_have_a_loss_alone(exact: dict[str, Any], tmp_path: Path) -> None:
    found = sidecar(run(tmp_path, proxy_ratio=0.5))
    inside = hashing.chosen(list(found), 0.5, 7, PROXY)
    assert 5 < inside.sum() < 35
    for (sample_id, row), chosen in zip(found.items(), inside, strict=True):
        assert row["gradient_note"] == (None if chosen else NOT_SAMPLED)
        assert row["loss"][-1] == pytest.approx(exact[sample_id]["loss"][-1], rel=1e-5)
        assert row["order_gain"] == pytest.approx(exact[sample_id]["order_gain"], abs=1e-4)
        if not chosen:
            assert row["loss"][:-1] == [None] * (C - 1)
            assert row["grad_norm"] is row["target_cosine"] is None
