"""`gradsift ahp`: the shipped matrix, one that contradicts itself, and fixes that are accepted when pasted back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support import command
from support.places import SHIPPED

from pipelines.commands import ahp
from pipelines.core import params
from scoring.core.errors import ConfigError
from scoring.static.ahp import priorities, reciprocal, repair, snapped, with_entries
from scoring.static.dimensions import DIMENSIONS
from transforms.static.config import StaticConfig

CLASHING = {"length": [9, 0.2] * 5 + [9], "coherence": [9, 0.2, 9]}


def project(root: Path, rows: dict[str, list[float]], **static: Any) -> Path:
    tree = yaml.safe_load(SHIPPED.read_text())
    tree["static"]["ahp"] |= rows
    tree["static"] |= static
    (root / "params.yaml").write_text(yaml.safe_dump(tree))
    return root / "params.yaml"


def pasted(root: Path, said: str) -> StaticConfig:
    """Returns the section with the printed rows in place of its own."""
    block = said[said.index("  ahp:") :]
    rows = yaml.safe_load("static:\n" + block)["static"]["ahp"]
    return params.read(project(root, rows)).section("static", StaticConfig)


def test_the_shipped_matrix_is_consistent(tmp_path: Path) -> None:
    found = command.within(tmp_path, "ahp", "--params", str(SHIPPED))
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0].startswith("predictability")
    weights = [float(line.split()[1]) for line in lines[:12]]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1, abs=1e-3)
    assert "λmax 12.0" in found.stdout
    assert lines[-1] == "consistent"
    assert "ahp:" not in found.stdout


def test_a_contradiction_is_named_and_its_fix_is_accepted(tmp_path: Path) -> None:
    path = project(tmp_path, CLASHING)
    with pytest.raises(ConfigError):
        params.read(path).section("static", StaticConfig)
    found = command.within(tmp_path, "ahp")
    assert found.returncode == 2
    assert "the pairwise judgements are inconsistent" in found.stderr
    assert "remedy: replace static.ahp with the proposal" in found.stderr
    assert "a consistent value is" in found.stdout
    assert "# " in found.stdout
    config = pasted(tmp_path, found.stdout)
    assert config.priorities.consistency_ratio <= 0.1
    assert command.within(tmp_path, "ahp").returncode == 0
    before = params.read(project(tmp_path, CLASHING)).tree["static"]["ahp"]
    kept = [np.isclose(config.ahp[d], before[d], rtol=1e-3) for d in before]
    assert 0 < sum((~k).sum() for k in kept) < 14  # of 66; 14 were thrown in


def test_one_turned_judgement_is_turned_back() -> None:
    weights = np.arange(12, 0, -1.0)
    matrix = weights[:, None] / weights
    wrong = with_entries(matrix, {(0, 8): 1 / 9, (2, 3): 1.5})
    changes = repair(wrong, max_ratio=0.01)
    assert changes is not None
    assert list(changes) == [(0, 8)]
    assert changes[0, 8] == pytest.approx(3.0, abs=0.5)
    assert repair(matrix, max_ratio=0.1) == {}


JUDGEMENTS = st.sampled_from([1 / 9, 1 / 7, 1 / 3, 1, 2, 5, 9])


@given(st.lists(JUDGEMENTS, min_size=66, max_size=66))
@settings(max_examples=25, deadline=None)
def test_a_fix_holds_whatever_the_judgements(values: list[float]) -> None:
    left = iter(values)
    matrix = reciprocal([[next(left) for _ in range(k)] for k in range(11, 0, -1)])
    changes = repair(matrix, max_ratio=0.1)
    assert changes is not None
    assert priorities(with_entries(matrix, changes)).consistency_ratio <= 0.1
    for entry in changes:  # none is spare
        fewer = {k: v for k, v in changes.items() if k != entry}
        assert priorities(with_entries(matrix, fewer)).consistency_ratio > 0.1


@pytest.mark.parametrize(
    ("value", "near"), [(1.0, 1), (1.2, 1), (1.3, 1.5), (40, 9), (0.01, 0.111), (0.34, 0.333), (0.7, 0.667)]
)
def test_judgements_snap_to_the_scale(value: float, near: float) -> None:
    assert snapped(value) == near


def test_importances_become_a_consistent_matrix(tmp_path: Path) -> None:
    found = command.within(tmp_path, "ahp", "--weights", "length=3", "cleanliness=0.5")
    assert found.returncode == 0, found.stderr
    config = pasted(tmp_path, found.stdout)
    assert config.priorities.consistency_ratio < 1e-4
    assert config.weights["length"] == pytest.approx(3 / 13.5, rel=1e-3)
    assert config.weights["cleanliness"] == pytest.approx(0.5 / 13.5, rel=1e-3)
    assert config.weights["coherence"] == pytest.approx(1 / 13.5, rel=1e-3)


@pytest.mark.parametrize(
    ("given", "said", "remedy"),
    [
        ("lenght=3", "unknown dimension 'lenght'", "use length, lexical_diversity"),
        ("length", "importance '' is not a positive number", "such as length=3"),
        ("length=much", "importance 'much' is not a positive number", "such as length=3"),
        ("length=nan", "importance 'nan' is not a positive number", "such as length=3"),
        ("length=-1", "importance '-1' is not a positive number", "such as length=3"),
        ("length=20", "more than 9 times apart", "within a factor of 9"),
    ],
)
def test_importances_that_make_no_matrix(tmp_path: Path, given: str, said: str, remedy: str) -> None:
    found = command.within(tmp_path, "ahp", "--weights", given)
    assert found.returncode == 2
    assert said in found.stderr
    assert remedy in found.stderr


@pytest.mark.parametrize(
    ("rows", "static", "said"),
    [
        ({"lenght": [1] * 11}, {}, "unknown ['lenght']"),
        ({"length": [1]}, {}, "must have 11"),
        ({"length": [20] * 11}, {}, "Saaty's scale"),
        ({}, {"max_consistency_ratio": "low"}, "static.max_consistency_ratio"),
        ({}, {"colour": 1}, "static.colour: unknown key"),
    ],
)
def test_other_faults_of_the_section_are_named_as_ever(
    tmp_path: Path, rows: dict[str, list[float]], static: dict[str, Any], said: str
) -> None:
    project(tmp_path, rows, **static)
    found = command.within(tmp_path, "ahp")
    assert found.returncode == 2
    assert said in found.stderr


def test_a_bound_that_no_judgement_keeps_has_no_fix(tmp_path: Path) -> None:
    project(tmp_path, CLASHING, max_consistency_ratio=1e-9)
    found = command.within(tmp_path, "ahp")
    assert found.returncode == 2
    assert "changing a few entries is not enough" in found.stderr
    assert "ahp:" not in found.stdout


def test_the_last_dimension_has_no_row() -> None:
    lines = list(ahp.as_yaml(np.ones((12, 12))))
    assert [line.split(":")[0].strip() for line in lines[1:]] == list(DIMENSIONS[:-1])
