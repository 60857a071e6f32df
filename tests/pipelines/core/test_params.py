"""Params: one strict tree; every slip is named with its dotted path."""

from pathlib import Path
from typing import Any

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
        ("clean.gopher.min_wrods", 3, "clean.gopher.min_wrods: unknown key (value 3); did you mean min_words?"),
        ("runtime.engin", "local", "runtime.engin: unknown key (value 'local'); did you mean engine?"),
        ("clean.gopher.min_words", "many", "clean.gopher.min_words"),
        ("clean.gopher.min_words", True, "clean.gopher.min_words"),
        ("plan.order", "backwards", "plan.order"),
        ("plan.mixed", "spread", "plan.mixed"),
        ("lsq", {}, "unknown section: lsq; did you mean lqs?"),
        ("ingest.sources", [{"paths": ["x"]}], "ingest.sources[0].name: missing key"),
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


def test_what_a_file_leaves_out_is_the_default(tmp_path: Path) -> None:
    left_out = [("plan.order", "mixed"), ("lqs", params.defaults()["lqs"])]
    for path, value in left_out:
        found = params.read(changed(tmp_path, path, None))
        found.check()
        *section, last = path.split(".")
        assert (found.tree[section[0]] if section else found.tree)[last] == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# nothing differs\n", {}),
        ("plan:\nlqs: {}\n", {}),
        ("lqs: {distill: {min_rows: 300}, clip: 2.0}\n", {"lqs.distill.min_rows": 300, "lqs.clip": 2.0}),
        ("ingest: {sources: [{name: a, paths: [b]}]}\n", {"ingest.sources": [{"name": "a", "paths": ["b"]}]}),
        ("quality: {good_labels: [fine]}\n", {"quality.good_labels": ["fine"]}),
        ("static: {ahp: {originality: [3]}}\n", {"static.ahp.originality": [3]}),
        ("gradients: {target: {name: a, paths: [b]}}\n", {"gradients.target": {"name": "a", "paths": ["b"]}}),
        ("gradients: {target: null}\n", {}),
        ("clean: {extra: {shouting: 0.5}}\n", {"clean.extra": {"shouting": 0.5}}),
    ],
)
def test_a_file_holds_only_what_differs(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    found = params.read(path)
    found.check()
    wanted = yaml.safe_load(SHIPPED.read_text())
    for dotted, value in expected.items():
        *keys, last = dotted.split(".")
        spot = wanted
        for key in keys:
            spot = spot[key]
        spot[last] = value
    assert found.tree == wanted
    assert params.defaults() == yaml.safe_load(SHIPPED.read_text())


def test_the_whole_default_file_is_a_params_file_too() -> None:
    assert params.read(SHIPPED).tree == params.defaults() == yaml.safe_load(SHIPPED.read_text())


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
