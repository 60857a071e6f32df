"""The code version: what changes it, what does not, and which stages a change of each package runs again."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.places import ROOT

from pipelines.core import deps, stage
from pipelines.ingest import _READER_CODE
from scoring.core import imports

ALL = {"ingest", "clean", "dedup", "quality", "tokens", "reference", "gradients", "static", "lqs", "plan", "shard"}
MODELS = {"quality", "tokens", "reference", "gradients", "static"}
RUN_AGAIN = {  # by a change of any module of the package, or of the module; the longest name counts
    "pipelines.passes.claims": {"ingest"},
    "pipelines.passes.kept_texts": {"reference"},
    "pipelines.passes.reference_marker": {"reference", "gradients"},
    "pipelines.sample_corpus": {"sample"},
    "transforms.readers": {"ingest"},
    "transforms.decode": {"ingest"},
    "transforms.ingest": {"ingest"},
    "transforms.clean": {"clean"},
    "transforms.dedup": {"dedup"},
    "transforms.quality": {"quality"},
    "transforms.tokens": {"tokens"},
    "transforms.gradients": {"gradients"},
    "transforms.gradients.notes": {"gradients", "lqs"},
    "transforms.static": {"static"},
    "transforms.lqs": {"lqs"},
    "transforms.shard": {"shard"},
    "transforms.text": {"clean"},
    "transforms.text.keys": {"clean", "dedup"},
    "transforms.text.normal": {"clean", "dedup"},
    "scoring.gradients": {"gradients"},
    "scoring.gradients.losses": {"reference", "gradients"},
    "scoring.lqs": {"lqs"},
    "scoring.models": MODELS,
    "scoring.models.onnx": {"quality"},
    "scoring.models.encoders": {"quality"},
    "scoring.order": {"tokens", "plan"},
    "scoring.quality": {"quality"},
    "scoring.reference": {"reference", "gradients"},
    "scoring.static": {"static"},
}
SHARED = (
    "transforms.decode",
    "transforms.text",
    "scoring.static",
    "scoring.models",
)  # some of their modules serve more


@pytest.fixture
def fresh() -> Iterator[None]:
    """Forgets what was read of the code, before and after."""
    forget()
    yield
    forget()


def forget() -> None:
    for module in (imports, deps):
        for found in vars(module).values():
            if hasattr(found, "cache_clear"):
                found.cache_clear()


def modules() -> list[str]:
    files = [p.relative_to(ROOT) for top in ("pipelines", "transforms", "scoring") for p in (ROOT / top).rglob("*.py")]
    return [".".join(p.with_suffix("").parts).removesuffix(".__init__") for p in sorted(files)]


def stages_of(module: str) -> set[str]:
    """Returns the stages that a change of `module` runs again."""
    return {s for s in stage.ORDER if s != "report" and module in deps.computing(f"pipelines.{s}")}


def test_comments_do_not_change_the_code_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    (tmp_path / "scoring").mkdir()
    module = tmp_path / "scoring" / "one.py"
    versions = []
    for text in ('"""Doc."""\nX = 1\n', '"""Other."""\n# why\nX   = 1\n', "X = 2\n"):
        module.write_text(text)
        monkeypatch.setattr(imports, "ROOT", tmp_path)
        forget()
        versions.append(deps.code_version("scoring.one"))
    assert versions[0] == versions[1] != versions[2]


@pytest.mark.parametrize("package", RUN_AGAIN)
def test_a_change_of_a_package_runs_these_stages_again(package: str) -> None:
    nearest = {m: max((p for p in RUN_AGAIN if imports.within(m, [p])), key=len, default="") for m in modules()}
    found = [stages_of(m) for m, owner in nearest.items() if owner == package]
    assert found, f"no module in {package}"
    assert set().union(*found) - ({"sample"} if package == "transforms.decode" else set()) <= set().union(
        RUN_AGAIN[package], *([ALL] if package in SHARED else [])
    )
    assert RUN_AGAIN[package] <= set().union(*found)


@pytest.mark.parametrize("reader", sorted(set(_READER_CODE.values())))
def test_a_reader_stands_in_no_stage_but_ingest(reader: str) -> None:
    assert stages_of(reader) == {"ingest"}


def test_what_does_not_compute_is_this_list_and_uses_no_kernel_or_model() -> None:
    assert deps.PLUMBING == (
        "pipelines.cli", "pipelines.runner", "pipelines.nightly", "pipelines.core", "pipelines.catalog",
        "pipelines.commands", "pipelines.reporting", "pipelines.passes.ingest_totals",
        "transforms.core.schemas", "scoring.core.errors",
    )  # fmt: skip
    reached = {m for s in stage.ORDER if s != "report" for m in imports.closure(f"pipelines.{s}")}
    core = [m for m in reached if imports.within(m, ["pipelines.core"])]
    used = set().union(*(imports.libraries(m) for m in core))
    assert not used & {"numpy", "numba", "torch", "sklearn", "transformers"}


@pytest.mark.parametrize("module", deps.BY_CONTENT)
def test_what_enters_by_content_is_keyed_by_its_own_code(module: str) -> None:
    """A pass that is cut out of the stage's code must name itself in the fingerprint of what it keeps."""
    strings = [n.value for n in ast.walk(imports.tree(module)) if isinstance(n, ast.Constant) and n.value == module]
    assert strings


@pytest.mark.parametrize("name", [s for s in stage.ORDER if s not in ("sample", "report")])
def test_every_module_that_a_stage_reaches_is_counted_somewhere(name: str) -> None:
    reached = imports.closure(f"pipelines.{name}")
    roots = [f"pipelines.{name}", *(m for m in deps.BY_CONTENT if m in reached)]
    counted = set().union(*(deps.computing(m) for m in roots))
    lost = {m for m in reached - counted if not imports.within(m, deps.PLUMBING)}
    only_plumbing = set().union(*(imports.closure(m) for m in reached if imports.within(m, deps.PLUMBING)))
    assert lost <= only_plumbing


def test_the_head_and_what_it_learns_from_count() -> None:
    """How many windows a head learns from decides the head (a module of `pipelines`, once left out)."""
    counted = deps.computing("pipelines.quality_models.fit")
    assert {"pipelines.quality_models.weak_labels", "pipelines.passes.kept_texts", "scoring.quality.head"} <= counted


def test_a_library_that_is_another_changes_the_stages_that_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    before = {name: deps.code_version(f"pipelines.{name}") for name in ("clean", "plan", "ingest")}
    (tmp_path / "ftfy").mkdir()
    (tmp_path / "ftfy" / "__init__.py").write_text("def fix_text(text): return text.upper()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ftfy", raising=False)  # or what is loaded already would be found
    forget()
    after = {name: deps.code_version(f"pipelines.{name}") for name in before}
    assert {name for name in before if before[name] != after[name]} == {"clean"}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("clean", {"ftfy", "numba", "pyarrow"}),
        ("gradients", {"torch", "transformers"}),
        ("static", {"duckdb", "numba"}),
    ],
)
def test_libraries_follow_from_the_imports(name: str, wanted: set[str]) -> None:
    found = deps.libraries(deps.computing(f"pipelines.{name}"))
    assert wanted <= found
    assert not found & deps.CARRIERS


def test_the_version_of_a_library_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert version("pillow") in deps.library_version("PIL")
    assert version("pyarrow") in deps.library_version("pyarrow")
    assert deps.library_version("no_such_package") == "absent"
