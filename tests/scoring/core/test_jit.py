"""Compiled functions are kept by what they are, not by where they lie."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.places import ROOT

TOY = "from scoring.core.jit import kernel\n\n\n@kernel\ndef twice(x):\n    return {} * x\n"


def run(root: Path, cache: Path, factor: int) -> str:
    (root / "scoring/toy.py").write_text(TOY.format(factor))
    code = "from scoring.core import jit\nbefore = jit.is_compiled('scoring.toy')\nfrom scoring.toy import twice\n"
    out = subprocess.run(
        [sys.executable, "-c", code + "print(before, twice(4), jit.is_compiled('scoring.toy'))"],
        cwd=root, env={**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(root)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return out.stdout.strip()


def test_a_second_checkout_compiles_nothing_again_and_a_change_does(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(ROOT / "scoring" / "core", tmp_path / name / "scoring" / "core")
        shutil.copy(ROOT / "scoring" / "__init__.py", tmp_path / name / "scoring")
    cache = tmp_path / "cache"
    assert run(tmp_path / "one", cache, 2) == "False 8 True"
    files = {p: p.stat().st_mtime_ns for p in cache.rglob("*.nb?")}
    assert run(tmp_path / "two", cache, 2) == "True 8 True"
    assert {p: p.stat().st_mtime_ns for p in cache.rglob("*.nb?")} == files
    assert run(tmp_path / "two", cache, 3) == "False 12 True"
