"""dvc.yaml: its deps are the import closure of each stage, its stages are the stages."""

from pathlib import Path

import pytest
import yaml
from support.places import ROOT

from pipelines.core import deps, params, stage
from scoring.core import imports

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


@pytest.mark.parametrize("name", stage.ORDER)
def test_deps_are_the_import_closure(name: str) -> None:
    listed = [d for d in STAGES[name]["deps"] if d.endswith(".py")]
    assert listed == deps.stage_deps(name), "run: python -m pipelines.core.deps"


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


def test_the_shipped_sources_are_watched() -> None:
    assert deps.unwatched_sources(ROOT, params.read(ROOT / "params.yaml").tree) == []


def test_a_glob_is_watched_by_its_fixed_folder() -> None:
    tree = {"ingest": {"sources": [{"paths": ["raw/*/x.jsonl", "raw/one.jsonl", "*.txt"]}]}}
    assert deps.source_deps(tree) == [".", "raw", "raw/one.jsonl"]


def forget() -> None:
    for cached in (imports.closure, imports.tree, imports.imports, deps._digest, deps.code_version):
        cached.cache_clear()


def test_comments_do_not_change_the_code_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scoring").mkdir()
    module = tmp_path / "scoring" / "one.py"
    versions = []
    for text in ('"""Doc."""\nX = 1\n', '"""Other."""\n# why\nX   = 1\n', "X = 2\n"):
        module.write_text(text)
        monkeypatch.setattr(imports, "ROOT", tmp_path)
        forget()
        versions.append(deps.code_version("scoring.one"))
    forget()
    assert versions[0] == versions[1] != versions[2]
