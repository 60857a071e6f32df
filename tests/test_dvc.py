"""`dvc repro`: everything once, nothing twice, and only what a change reaches."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import prose, small
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
def clone(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    root = tmp_path_factory.mktemp("clone")
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
    texts = [" ".join(prose.paragraphs()[3 * k : 3 * k + 3]) for k in range(16)]
    (root / "raw.jsonl").write_text("\n".join(json.dumps({"id": str(k), "text": t}) for k, t in enumerate(texts)))
    few = {"ingest__sources": [{"name": "raw", "paths": ["raw.jsonl"]}]}
    small.write(root, corpus, **few, clean__gopher__drop=False, clean__repetition__drop=False)
    sh(root, "git", "init", "-q")
    sh(root, "dvc", "repro")
    sh(root, "git", "add", "-A")
    sh(root, "git", "commit", "-qm", "one")
    return root


def ran(said: str) -> list[str]:
    return [line.split("'")[1] for line in said.splitlines() if line.startswith("Running stage")]


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
