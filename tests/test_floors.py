"""The layers of the tree: who may import whom, and what stays unloaded."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.places import ROOT

import gradsift
import pipelines
import scoring
import transforms
from scoring.core import imports

FORBIDDEN = {
    "scoring": {"transforms", "pipelines", "gradsift", "apache_beam", "yaml", "duckdb"},
    "transforms": {"pipelines", "gradsift", "duckdb", "yaml"},
    "pipelines": {"gradsift"},
    "gradsift": {"apache_beam", "duckdb", "torch", "yaml"},
}
MODULES = [
    ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for p in (ROOT / "scoring").rglob("*.py")
]


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("package", FORBIDDEN)
def test_a_layer_imports_nothing_above_it(package: str) -> None:
    faults = {str(p): imported(p) & FORBIDDEN[package] for p in (ROOT / package).rglob("*.py")}
    assert {p: f for p, f in faults.items() if f} == {}


@pytest.mark.parametrize("package", [gradsift, pipelines, transforms, scoring])
def test_packages_come_from_this_checkout(package: object) -> None:
    assert Path(package.__file__).resolve().is_relative_to(ROOT)


def test_only_models_loads_pretrained_weights() -> None:
    code = [p for package in imports.PACKAGES for p in (ROOT / package).rglob("*.py")]
    users = [
        p.name
        for p in code
        if any(getattr(n, "attr", "") == "from_pretrained" for n in ast.walk(ast.parse(p.read_text())))
    ]
    assert users == ["load.py"]


def test_nothing_loads_pickles_or_runs_a_shell() -> None:
    words = ("import pickle", "torch.load(", "shell=True", "trust_remote_code=True", "yaml.load(text)", "os.system")
    code = {p: p.read_text() for d in imports.PACKAGES for p in (ROOT / d).rglob("*.py")}
    assert {str(p): w for p, text in code.items() for w in words if w in text} == {}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_scoring_leaves_beam_and_torch_unloaded(module: str) -> None:
    code = (
        f"import sys, {module}\n"
        "free = {'yaml'} if 'numba' in sys.modules else set()\n"  # the compiler reads its settings
        "print([m for m in ('apache_beam', 'torch', 'duckdb', 'yaml') if m in sys.modules and m not in free])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from pipelines.cli import app\n"
        "out = CliRunner().invoke(app, ['--help']); assert out.exit_code == 0, out\n"
        "heavy = ('apache_beam', 'torch', 'duckdb', 'pyarrow', 'numba', 'numpy', 'pydantic', 'yaml')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    started = time.monotonic()
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"
    assert time.monotonic() - started < 30  # loaded machines; the real bound is that nothing heavy loads


SLOW = ("apache_beam", "numba", "torch", "transformers", "datasets", "sklearn")
STARTS = {
    "a project is opened": "from pipelines.core.project import open_project; open_project(Path('params.yaml'))",
    "a query is asked": "import pipelines.catalog.query",
    "a row is explained": "import pipelines.catalog.explain",
    "a stage looks for work": "import pipelines.core.stage",
}


def test_the_api_loads_nothing_heavy() -> None:
    heavy = (*SLOW, "duckdb", "pyarrow", "numpy", "pydantic", "yaml", "pipelines", "transforms")
    code = f"import sys, gradsift; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_what_only_looks_leaves_engines_and_models_unloaded(start: str) -> None:
    code = f"import sys; from pathlib import Path; {start}\nprint([m for m in {SLOW} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"
