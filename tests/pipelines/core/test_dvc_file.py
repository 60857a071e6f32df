"""dvc.yaml: its deps hold the import closure of each stage, and it watches the sources of params."""

from pathlib import Path

import pytest
import yaml
from support.places import ROOT

from pipelines.core import dvc_file, params, stage
from scoring.core import imports
from scoring.core.errors import ConfigError

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


def code(name: str) -> list[Path]:
    """The folders and modules of ours that stage `name` depends on."""
    return [Path(d) for d in STAGES[name]["deps"] if Path(d).parts[0] in imports.PACKAGES]


def reached(name: str) -> set[Path]:
    """The modules that stage `name` imports; the packages' own words (`pipelines/__init__.py`) do not count."""
    paths = [path.relative_to(ROOT) for m in imports.closure(f"pipelines.{name}") if (path := imports.path_of(m))]
    return {p for p in paths if len(p.parts) > 2 or p.name != "__init__.py"}


def lies_in(path: Path, dep: Path) -> bool:
    return path == dep or dep in path.parents


@pytest.mark.parametrize("name", stage.ORDER)
def test_the_import_closure_lies_inside_the_deps(name: str) -> None:
    outside = sorted(str(p) for p in reached(name) if not any(lies_in(p, dep) for dep in code(name)))
    assert outside == [], f"add their folders to the deps of stage {name} in dvc.yaml"


@pytest.mark.parametrize("name", stage.ORDER)
def test_no_dep_is_useless(name: str) -> None:
    useless = [str(dep) for dep in code(name) if not any(lies_in(p, dep) for p in reached(name))]
    assert useless == [], f"remove them from the deps of stage {name} in dvc.yaml"
    assert 3 <= len(code(name)) <= 18
    assert len(set(STAGES[name]["deps"])) == len(STAGES[name]["deps"])


def test_the_file_stays_short_and_its_deps_exist() -> None:
    assert len((ROOT / "dvc.yaml").read_text().splitlines()) < 250
    assert [str(dep) for name in STAGES for dep in code(name) if not (ROOT / dep).exists()] == []


def test_what_the_report_is_made_of_is_a_dep_and_what_it_writes_an_out() -> None:
    template = Path("pipelines/reporting/report.html.j2")
    assert (ROOT / template).is_file()
    assert any(lies_in(template, dep) for dep in code("report"))
    assert {next(iter(out)) for out in STAGES["report"]["outs"]} == {"reports", "plots"}


def test_bytecode_is_no_dep() -> None:
    assert {"__pycache__/", "*.pyc"} <= set((ROOT / ".dvcignore").read_text().splitlines())


def test_every_stage_has_one_module_section_and_entry() -> None:
    assert tuple(STAGES) == stage.ORDER
    assert set(params.SECTIONS) == {"runtime", *stage.ORDER}
    for name in stage.ORDER:
        assert STAGES[name]["params"] == [name]
        assert STAGES[name]["cmd"] == f"python -m pipelines.{name}"


def test_a_stage_depends_on_every_folder_of_an_earlier_stage_that_it_reads() -> None:
    for name in stage.ORDER[2:]:
        text = (ROOT / f"pipelines/{name}.py").read_text()
        folders = {f"data/{f}" for f in ("samples", *stage.ORDER[2:]) if f'"{f}": [' in text and f != name}
        assert folders <= set(STAGES[name]["deps"]), name


def test_params_name_every_section_that_dvc_watches() -> None:
    named = set(yaml.safe_load((ROOT / "params.yaml").read_text()))
    assert {p for s in STAGES.values() for p in s["params"]} <= named <= set(params.SECTIONS)
    params.read(ROOT / "params.yaml").check()


def test_the_shipped_sources_are_watched() -> None:
    assert dvc_file.unwatched_sources(ROOT, params.read(ROOT / "params.yaml").tree) == []


def test_a_glob_is_watched_by_its_fixed_folder(tmp_path: Path) -> None:
    tree = {"ingest": {"sources": [{"paths": ["raw/*/x.jsonl", "raw/one.jsonl", "*.txt"]}]}}
    assert dvc_file.source_deps(tmp_path, tree) == [".", "raw", "raw/one.jsonl"]


def test_the_name_of_a_datasets_builder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "pets").mkdir()
    sources = [{"paths": [name], "format": "huggingface"} for name in ("json", "pets")]
    assert dvc_file.source_deps(tmp_path, {"ingest": {"sources": sources}}) == ["pets"]


MINE = {"ingest": {"sources": [{"paths": ["/corpus/web/*.jsonl", "raw, 1"]}]}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    - data/sample\n    - pipelines/core\n", "    - /corpus/web\n    - 'raw, 1'\n    - pipelines/core\n"),
        ("      [data/sample, pipelines/core]\n", "      [/corpus/web, 'raw, 1', pipelines/core]\n"),
    ],
)
def test_sources_are_written_and_all_else_stays(tmp_path: Path, before: str, after: str) -> None:
    text = f"# mine\nstages:\n  ingest:\n    deps:\n{before}    # why\n    cmd:  x\n  own: {{cmd: y}}\n"
    (tmp_path / "dvc.yaml").write_text(text)
    assert dvc_file.unwatched_sources(tmp_path, MINE) == ["/corpus/web", "raw, 1"]
    assert dvc_file.watch_sources(tmp_path, MINE) == ["/corpus/web", "raw, 1"]
    assert (tmp_path / "dvc.yaml").read_text() == text.replace(before, after)
    assert dvc_file.unwatched_sources(tmp_path, MINE) == []


@pytest.mark.parametrize("text", [None, "stages: {}\n", "stages: {ingest: {cmd: x}}\n", "[]\n", "", "a: ["])
def test_a_project_without_dvc_is_told_so(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "dvc.yaml").write_text(text)
    with pytest.raises(ConfigError, match="gradsift init"):
        dvc_file.watch_sources(tmp_path, MINE)
