"""`gradsift params` prints the merged tree with comments, and a schema that says what a params file may hold."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import command
from support.places import SHIPPED

from pipelines.commands import params_schema
from pipelines.core import params

MINE = """\
ingest: {sources: [{name: web, paths: [a, "b, c"], columns: {text: content}}]}
clean: {extra: {shouting: 0.5}, pii: {key_env: KEY}}
gradients: {target: {name: lima, paths: [x.jsonl], columns: [text]}}
static: {ahp: {originality: [3]}}
plan: {order: folding, mixed: {draw: [2, 2, 1]}}
"""


def printed(root: Path, text: str, *flags: str) -> str:
    (root / "params.yaml").write_text(text)
    out = command.within(root, "params", *flags)
    assert out.returncode == 0, out.stderr
    return out.stdout


def test_without_changes_it_is_the_file_of_defaults(tmp_path: Path) -> None:
    assert printed(tmp_path, "# nothing\n") == SHIPPED.read_text()


def test_changed_values_stand_among_the_comments(tmp_path: Path) -> None:
    said = printed(tmp_path, MINE)
    assert yaml.safe_load(said) == params.merge(params.defaults(), yaml.safe_load(MINE))
    comments = [line.split("#", 1)[1] for line in SHIPPED.read_text().splitlines() if "#" in line]
    assert [line.split("#", 1)[1] for line in said.splitlines() if "#" in line] == comments


def test_json_holds_the_same(tmp_path: Path) -> None:
    found = json.loads(printed(tmp_path, MINE, "--json"))
    assert found == params.merge(params.defaults(), yaml.safe_load(MINE))


def test_wrong_params_are_told(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("plan: {ordr: folding}\n")
    out = command.within(tmp_path, "params")
    assert out.returncode == 2
    assert "did you mean order?" in out.stderr


def test_the_schema_needs_no_project(tmp_path: Path) -> None:
    out = command.within(tmp_path, "params", "--schema")
    assert (out.returncode, json.loads(out.stdout)) == (0, params_schema.schema())


SCHEMA = params_schema.schema()


def at(*keys: str) -> dict[str, Any]:
    """The schema of a key."""
    found: dict[str, Any] = SCHEMA
    for key in keys:
        found = found["properties"][key]
        found = next((f for f in found.get("anyOf", []) if "$ref" in f), found)
        while "$ref" in found:
            found = SCHEMA["$defs"][found["$ref"].rsplit("/", 1)[1]]
    return found


def test_the_schema_knows_every_default_and_what_it_means() -> None:
    assert at("plan", "order")["default"] == "mixed"
    assert "folding" in at("plan", "order")["enum"]
    assert at("clean", "gopher", "min_words") == {"default": 50, "title": "Min Words", "type": "integer"}
    assert SCHEMA["$defs"]["PlanConfig"]["properties"]["top_ratio"]["description"].startswith("share of rows")


@pytest.mark.parametrize("keys", [(), ("plan",), ("clean",), ("clean", "gopher"), ("gradients", "sketch")])
def test_a_slip_is_marked_and_nothing_is_required(keys: tuple[str, ...]) -> None:
    found = at(*keys)
    assert found["additionalProperties"] is False
    assert "required" not in found


def test_a_source_needs_its_name_and_paths() -> None:
    assert at("ingest")["properties"]["sources"]["items"]["$ref"].endswith("SourceConfig")
    assert SCHEMA["$defs"]["SourceConfig"]["required"] == ["name", "paths"]
