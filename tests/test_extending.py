"""The worked examples of docs/extending.md, run as they are printed, in a copy of the tree."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import duckdb
import pytest
import yaml
from support.places import ROOT, SHIPPED

GUIDE = (ROOT / "docs/extending.md").read_text()
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"^ *```python\n(.*?)^ *```$", GUIDE, re.M | re.S)]
PACKAGES = ("pipelines", "transforms", "scoring")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages, to be extended."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python on the packages of `tree`."""
    env = {**os.environ, "PYTHONPATH": f"{tree}:{ROOT / 'tests'}"}
    return subprocess.run([sys.executable, *arguments], cwd=tree, env=env, capture_output=True, text=True, check=False)


def printed(pattern: str) -> str:
    """Returns what the guide prints for `pattern`: a path or a line to add."""
    found = re.search(pattern, GUIDE)
    assert found, pattern
    return found[1]


def test_the_rule_is_one_file(tree: Path) -> None:
    (tree / printed(r"`(\S+/links\.py)`")).write_text(BLOCKS[0])
    shutil.copy(ROOT / "tests/transforms/text/test_extra.py", tree)
    out = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_extra.py")
    assert out.returncode == 0, out.stdout
    code = "from transforms.text import extra; print(*extra.modules())"
    assert run(tree, "-c", code).stdout.split() == ["links", "shouting"]


def test_the_reader_is_three_files(tree: Path) -> None:
    module = printed(r"`(transforms/readers/pairs\.py)`")
    (tree / module).write_text(BLOCKS[1])
    target = tree / printed(r"2\. `(\S+)`")
    imported = f"from {module.removesuffix('.py').replace('/', '.')} import read_pairs\n\nREADERS"
    _insert(target, r"READERS(?=\b.*\{$)", imported)
    _insert(
        target, r"(?<=\{)\n(?=    \"jsonl\": read_jsonl)", "\n    " + printed(r'add `("pairs": read_pairs,)`') + "\n"
    )
    _insert(
        tree / printed(r"3\. `(\S+)`"), r"(?<=_ROWS = \{)\n", "\n    " + printed(r"`(\"\.pairs\": \"pairs\",)`") + "\n"
    )
    (tree / "a.pairs").write_text("1\tone\n2\ttwo\n\nthree\n")
    params = yaml.safe_load(SHIPPED.read_text())
    params["ingest"]["sources"] = [{"name": "pairs", "paths": ["a.pairs"]}]
    (tree / "params.yaml").write_text(yaml.safe_dump(params))
    out = run(tree, "-m", "pipelines.ingest")
    assert out.returncode == 0, out.stderr
    samples = duckdb.sql(f"SELECT sample_id, text FROM '{tree}/data/samples/*.parquet' ORDER BY 1").fetchall()
    assert samples == [("pairs/1", "one"), ("pairs/2", "two")]
    rejects = duckdb.sql(f"SELECT reason, error FROM '{tree}/data/rejects/*.parquet'").fetchall()
    assert rejects == [("bad_value", "1 cells, expected 2")]


def _insert(path: Path, pattern: str, new: str) -> None:
    """Replaces the one match of `pattern`."""
    text, count = re.subn(pattern, new.replace("\\", r"\\"), path.read_text(), flags=re.M)
    assert count == 1, (path, pattern)
    path.write_text(text)


def test_every_path_that_the_guides_name_exists() -> None:
    made_up = {"transforms/text/extra/links.py", "transforms/readers/pairs.py"}
    for page in ("README.md", "docs/extending.md", "docs/architecture.md"):
        text = (ROOT / page).read_text()
        named = set(re.findall(r"`((?:pipelines|transforms|scoring|tests|docs|benchmarks)/[\w./]+)`", text))
        missing = {n for n in named - made_up if "NAME" not in n and not (ROOT / n).exists()}
        assert missing == set(), page
