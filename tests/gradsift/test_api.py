"""The Python API on a real small run: params, stages, a query as a table, one row's life, errors as exceptions."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from support import prose

import gradsift


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> gradsift.Project:
    root = tmp_path_factory.mktemp("api")
    texts = ["\n\n".join(prose.paragraphs()[3 * k : 3 * k + 3]) for k in range(4)]
    lines = [json.dumps({"id": str(k), "text": text}) for k, text in enumerate([*texts, "short"])]
    (root / "raw.jsonl").write_text("\n".join(lines))
    (root / "params.yaml").write_text("ingest: {sources: [{name: raw, paths: [raw.jsonl]}]}\n")
    made = gradsift.Project(root)
    made.run(["clean", "ingest"])
    return made


def test_params_hold_the_defaults_too(project: gradsift.Project) -> None:
    assert project.params["ingest"]["sources"] == [{"name": "raw", "paths": ["raw.jsonl"]}]
    assert project.params["plan"]["order"] == "mixed"


def test_a_query_is_a_table(project: gradsift.Project) -> None:
    found = project.query("SELECT sample_id, kept FROM samples_all ORDER BY sample_id")
    assert isinstance(found, pa.Table)
    assert found["sample_id"].to_pylist() == [f"raw/{k}" for k in range(5)]
    assert found["kept"].to_pylist()[4] is False
    assert project.query("sources").num_rows == 1


def test_a_row_is_explained(project: gradsift.Project) -> None:
    said = project.explain("raw/4")
    assert "raw/4" in said
    assert "gopher_short_doc" in said


def test_a_params_file_opens_the_same_project(project: gradsift.Project) -> None:
    assert gradsift.Project(project.path).params == gradsift.Project(str(project.path.parent)).params


def test_what_a_command_would_end_with_is_raised(project: gradsift.Project, tmp_path: Path) -> None:
    with pytest.raises(gradsift.ConfigError, match="no params file") as caught:
        gradsift.Project(tmp_path)
    assert caught.value.exit_code == 2
    with pytest.raises(gradsift.GradsiftError, match="clena"):
        project.run(["clena"])
    with pytest.raises(gradsift.ConfigError, match="read-only"):
        project.query("DROP VIEW samples_all")
    with pytest.raises(gradsift.ConfigError, match="nobody"):
        project.explain("nobody")
