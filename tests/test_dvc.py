"""`dvc repro`: everything once, nothing twice, and only what a change reaches."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import small, whole
from support.places import ROOT

pytestmark = pytest.mark.slow
ENV = os.environ | {
    "HF_HUB_OFFLINE": "1",
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.org",
}


def sh(root: Path, *command: str) -> str:
    out = subprocess.run(
        command, cwd=root, env=ENV | {"PYTHONPATH": str(root)}, capture_output=True, text=True, check=False
    )
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout + out.stderr


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, whole_run: Path) -> Path:
    """A checkout whose project ran through, but for some stages, under `dvc repro`."""
    root = whole.copy(whole_run, tmp_path_factory.mktemp("clone"))
    for folder in ("data/tokens", "data/plan", "data/shards", "reports", "plots"):
        shutil.rmtree(root / folder)
    tracked = sh(
        ROOT,
        "git",
        "ls-files",
        "-z",
        "pipelines",
        "transforms",
        "scoring",
        "dvc.yaml",
        ".dvc",
        ".dvcignore",
        ".gitignore",
    )
    for name in tracked.split("\0"):
        if name and (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes((ROOT / name).read_bytes())
    sh(root, "git", "init", "-q")
    sh(root, "dvc", "repro")
    sh(root, "git", "add", "-A")
    sh(root, "git", "commit", "-qm", "one")
    return root


def ran(said: str) -> list[str]:
    return [line.split("'")[1] for line in said.splitlines() if line.startswith("Running stage")]


def test_what_was_missing_is_made_as_gradsift_run_makes_it(clone: Path, whole_run: Path) -> None:
    ours, theirs = small.outputs(clone), small.outputs(whole_run)
    assert {name for name in theirs if ours.get(name) != theirs[name]} == set()


def test_a_second_repro_does_nothing(clone: Path) -> None:
    assert ran(sh(clone, "dvc", "repro")) == []


def test_the_order_reaches_only_plan_shard_and_report(clone: Path) -> None:
    tree = yaml.safe_load((clone / "params.yaml").read_text())
    tree["plan"]["order"] = "sorting"
    (clone / "params.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    assert ran(sh(clone, "dvc", "repro")) == ["plan", "shard", "report"]
    assert "plan.order" in sh(clone, "dvc", "params", "diff")
    assert "plan.json" in sh(clone, "dvc", "metrics", "diff", "HEAD")
    sh(clone, "git", "add", "-A")
    sh(clone, "git", "commit", "-qm", "two")
    assert "plan.json" in sh(clone, "dvc", "metrics", "diff", "HEAD~1", "HEAD")
    assert "sorting" in sh(clone, "dvc", "params", "diff", "HEAD~1", "HEAD")


def test_plots_are_drawn(clone: Path) -> None:
    assert "index.html" in sh(clone, "dvc", "plots", "show")
