"""Params: one strict tree; every slip is named with its dotted path."""

from pathlib import Path

import pytest
import yaml
from support.places import SHIPPED

from pipelines.core import params
from pipelines.core.project import open_project
from scoring.core.errors import ConfigError


def changed(tmp_path: Path, path: str, value: object) -> Path:
    tree = yaml.safe_load(SHIPPED.read_text())
    spot = tree
    *keys, last = path.split(".")
    for key in keys:
        spot = spot[key]
    if value is None:
        del spot[last]
    else:
        spot[last] = value
    target = tmp_path / "params.yaml"
    target.write_text(yaml.safe_dump(tree))
    return target


def test_the_shipped_defaults_are_valid() -> None:
    params.read(SHIPPED).check()


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("clean.gopher.min_wrods", 3, "clean.gopher.min_wrods: unknown key"),
        ("clean.gopher.min_words", "many", "clean.gopher.min_words"),
        ("clean.gopher.min_words", True, "clean.gopher.min_words"),
        ("plan.order", "backwards", "plan.order"),
        ("plan.order", None, "plan.order: missing key"),
        ("lqs", None, "missing section: lqs"),
        ("lsq", {}, "unknown section: lsq"),
        ("ingest.sources", [{"name": "a", "path": "x"}], "ingest.sources[0].path: unknown key"),
        ("runtime.workers", 0, "at least 1"),
    ],
)
def test_a_slip_is_named_by_its_dotted_path(tmp_path: Path, path: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        params.read(changed(tmp_path, path, value)).check()
    assert said in str(caught.value)
    assert "params.yaml" in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "cannot read"),
        ("- 1", "not a mapping"),
        ("plan: {}\nplan: {}\n", "duplicate key: plan"),
        ("", "not a mapping"),
    ],
)
def test_broken_yaml_is_a_configuration_error(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        params.read(path)


def test_a_missing_file_names_the_flag(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--params"):
        open_project(tmp_path / "nowhere.yaml")


def test_flags_override_the_runtime_section() -> None:
    project = open_project(SHIPPED, engine="processes", workers=3)
    assert (project.runtime.engine, project.runtime.workers, project.runtime.threads) == ("processes", 3, 2)
