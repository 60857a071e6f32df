"""A new project: its files are valid, nothing of the user's is replaced, its dvc.yaml has the stages of ours."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import command
from support.places import ROOT

from pipelines.commands import init, lock, params_schema
from pipelines.core import dvc_file, params, stage
from scoring.core.errors import ConfigError
from scoring.core.imports import PACKAGES

TEMPLATE = (init.TEMPLATES / "dvc.yaml").read_text()


def uncommented(text: str) -> dict[str, Any]:
    """The example params, as they are once the comment signs before the keys are gone."""
    keys = [line.removeprefix("# ") for line in text.split("\n\n", 1)[1].splitlines()]
    return dict(yaml.safe_load("\n".join(keys)))


def test_a_new_project_holds_nothing_but_what_differs(tmp_path: Path) -> None:
    out = command.within(tmp_path, "init", "demo")
    assert out.returncode == 0, out.stderr
    assert "cd demo" in out.stdout
    root = tmp_path / "demo"
    assert params.read(root / "params.yaml").tree == params.defaults()
    assert dvc_file.unwatched_sources(root, params.defaults()) == []
    assert (root / "logs").is_dir()
    assert (root / ".git").is_dir()
    assert "no_scm" not in (root / ".dvc/config").read_text()
    assert json.loads((root / "params.schema.json").read_text()) == params_schema.schema()
    assert "# yaml-language-server: $schema=params.schema.json\n" in (root / "params.yaml").read_text()


def test_its_examples_are_valid_params(tmp_path: Path) -> None:
    tree = uncommented((init.TEMPLATES / "params.yaml").read_text())
    assert set(tree) == {"ingest", "runtime", "clean", "plan"}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(tree))
    params.read(tmp_path / "params.yaml").check()


def test_its_stages_are_ours_without_our_code() -> None:
    ours, made = (yaml.safe_load(t)["stages"] for t in ((ROOT / "dvc.yaml").read_text(), TEMPLATE))
    locked = made.pop("lock")
    assert locked == {
        "cmd": "python -m pipelines.commands.lock",
        "always_changed": True,
        "outs": [{lock.NAME: {"cache": False, "persist": True}}],
    }
    assert tuple(made) == stage.ORDER
    for name, found in made.items():
        wanted = ours[name] | {"params": [{lock.NAME: [name, "installed.digest"]}]}
        data = [d for d in wanted.pop("deps") if Path(d).parts[0] not in PACKAGES]
        assert found == (wanted | {"deps": data} if data else wanted)
    assert yaml.safe_load(TEMPLATE)["plots"] == yaml.safe_load((ROOT / "dvc.yaml").read_text())["plots"]


def test_files_of_the_user_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("# mine\n")
    (tmp_path / ".gitignore").write_text("mine")
    out = command.within(tmp_path, "init", ".")
    assert out.returncode == 2
    assert "params.yaml" in out.stderr
    assert "--force" in out.stderr
    assert (tmp_path / "params.yaml").read_text() == "# mine\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == [".gitignore", "params.yaml"]
    assert command.within(tmp_path, "init", ".", "--force").returncode == 0
    assert "# mine" not in (tmp_path / "params.yaml").read_text()
    assert (tmp_path / ".gitignore").read_text().splitlines() == ["mine", *init.IGNORED[".gitignore"]]


def test_a_folder_in_a_repository_stays_part_of_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert command.within(tmp_path, "init", "a/b").returncode == 0
    assert not (tmp_path / "a/b/.git").exists()
    assert "no_scm" not in (tmp_path / "a/b/.dvc/config").read_text()


def test_without_git_dvc_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    out = command.within(tmp_path, "init", "demo")
    assert out.returncode == 0
    assert "git is not installed" in out.stdout
    assert "no_scm = true" in (tmp_path / "demo/.dvc/config").read_text()


def test_the_sample_stage_stands_only_where_a_source_reads_it(tmp_path: Path) -> None:
    shutil.copy(init.TEMPLATES / "dvc.yaml", tmp_path)
    path = tmp_path / "dvc.yaml"
    mine = {"ingest": {"sources": [{"name": "a", "paths": ["raw/*.jsonl"]}]}}
    dvc_file.watch_sources(tmp_path, mine)
    stages = yaml.safe_load(path.read_text())["stages"]
    assert tuple(stages) == ("lock", *stage.ORDER[1:])
    assert stages["ingest"]["deps"] == ["raw"]
    dvc_file.watch_sources(tmp_path, params.defaults())
    assert path.read_text() == TEMPLATE


def test_the_lock_file_holds_params_and_what_is_installed(tmp_path: Path) -> None:
    shutil.copy(init.TEMPLATES / "dvc.yaml", tmp_path)
    path = tmp_path / "params.yaml"
    path.write_text("plan: {order: folding}\n")
    lock.run(path)
    locked = yaml.safe_load((tmp_path / lock.NAME).read_text())
    found = locked.pop("installed")
    assert locked == params.merge(params.defaults(), {"plan": {"order": "folding"}})
    assert found["ftfy"].startswith("6.3")
    assert not {"dvc", "pytest", "datatrove"} & set(found)
    assert lock.main(["--params", str(path)]) == 0
    assert yaml.safe_load((tmp_path / lock.NAME).read_text())["installed"] == found


def test_another_installation_has_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lock.installed()["digest"]
    monkeypatch.setattr(lock.metadata, "version", lambda name: "0")
    assert lock.installed()["digest"] != before


def test_a_source_that_dvc_does_not_watch_stops_it(tmp_path: Path) -> None:
    shutil.copy(init.TEMPLATES / "dvc.yaml", tmp_path)
    (tmp_path / "params.yaml").write_text("ingest: {sources: [{name: a, paths: [raw.jsonl]}]}\n")
    with pytest.raises(ConfigError, match=r"raw\.jsonl") as caught:
        lock.run(tmp_path / "params.yaml")
    assert "gradsift deps" in str(caught.value)


def test_deps_act_on_the_project_at_hand(tmp_path: Path) -> None:
    assert command.within(tmp_path, "init", "demo").returncode == 0
    path = tmp_path / "demo/params.yaml"
    path.write_text("ingest: {sources: [{name: a, paths: [raw.jsonl]}]}\n")
    before = (ROOT / "dvc.yaml").read_bytes()
    out = command.within(tmp_path, "deps", "--params", str(path))
    assert (out.returncode, out.stdout) == (0, "dvc.yaml: stage ingest watches raw.jsonl\n")
    assert yaml.safe_load((tmp_path / "demo/dvc.yaml").read_text())["stages"]["ingest"]["deps"] == ["raw.jsonl"]
    assert (ROOT / "dvc.yaml").read_bytes() == before


def test_a_section_that_dvc_watches_and_params_do_not_name_is_found(tmp_path: Path) -> None:
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    assert dvc_file.unnamed_sections(tmp_path, dict.fromkeys(set(stage.ORDER) - {"plan", "lqs"})) == ["lqs", "plan"]
    shutil.copy(init.TEMPLATES / "dvc.yaml", tmp_path)
    assert dvc_file.unnamed_sections(tmp_path, {}) == []
