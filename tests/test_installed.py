"""From a wheel, in an empty folder: a new project runs, is asked, and is reproduced; no checkout is near."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support import prose
from support.places import ROOT

from scoring.core.imports import PACKAGES

pytestmark = pytest.mark.slow
MINE = """\
ingest:
  sources:
    - {name: rows, paths: [raw/rows.jsonl]}
    - {name: table, paths: [raw/table.csv]}
    - {name: page, paths: [raw/page.txt]}
runtime: {threads: 1}
"""


def sh(folder: Path, *command: str | Path, env: dict[str, str] | None = None) -> str:
    out = subprocess.run(list(map(str, command)), cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a virtual environment with our wheel in it; the other packages are those of this one."""
    root = tmp_path_factory.mktemp("wheel")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / "source" / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, root / "source")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    sh(root, *pip, "wheel", "./source", "--no-deps", "--no-build-isolation", "-q", "-w", "wheels")
    sh(root, sys.executable, "-m", "venv", "--without-pip", "venv")
    python, (wheel,) = root / "venv/bin/python", root.glob("wheels/*.whl")
    sh(root, *pip, "--python", python, "install", "-q", "--no-deps", "--no-index", "--ignore-installed", wheel)
    (site,) = root.glob("venv/lib/python*/site-packages")
    # A folder named in a .pth file is no site of its own: the .pth of an editable install in it is not followed.
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept | {"PATH": f"{python.parent}:{os.environ['PATH']}", "HF_HUB_OFFLINE": "1"}


def test_a_new_project_works_from_a_wheel(installed: dict[str, str], tmp_path: Path) -> None:
    assert "cd demo" in sh(tmp_path, "gradsift", "init", "demo", env=installed)
    root = tmp_path / "demo"
    (root / "raw").mkdir()
    texts = ["\n\n".join(prose.paragraphs()[3 * k : 3 * k + 3]) for k in range(3)]
    (root / "raw/rows.jsonl").write_text(json.dumps({"id": "a", "text": texts[0]}))
    (root / "raw/table.csv").write_text('id,text\nb,"{}"\n'.format(texts[1].replace('"', '""')))
    (root / "raw/page.txt").write_text(texts[2])
    (root / "params.yaml").write_text(MINE)

    where = sh(root, "python", "-c", "import pipelines; print(pipelines.__file__)", env=installed)
    assert not Path(where.strip()).is_relative_to(ROOT)
    assert "raw/page.txt" in sh(root, "gradsift", "deps", env=installed)
    sh(root, "gradsift", "run", "ingest", "clean", env=installed)
    asked = json.loads(sh(root, "gradsift", "query", "sources", "--json", env=installed))
    assert [(row["source"], row["rows"]) for row in asked] == [("page", 1), ("rows", 1), ("table", 1)]
    said = sh(root, "python", "-m", "dvc", "repro", "ingest", env=installed)
    assert [line.split("'")[1] for line in said.splitlines() if "Running" in line] == ["lock", "ingest"]
