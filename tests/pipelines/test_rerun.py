"""A change of code that comes to the same values runs its own stage again, and no later one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import command, whole

from pipelines.core import deps
from scoring.core import imports

CHANGED = ("transforms.readers.jsonl", "transforms.text.pii.redact", "scoring.order.cost")


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes this process believe that the code of `CHANGED` is not what it was."""
    monkeypatch.setattr(deps, "_digest", lambda m: "changed" if m in CHANGED else imports.code_digest(m))
    deps.code_version.cache_clear()
    yield
    deps.code_version.cache_clear()


def test_a_change_costs_its_own_stage_alone(whole_run: Path, tmp_path: Path, changed: None) -> None:
    root = whole.copy(whole_run, tmp_path / "project")
    out = command.within(root, "run")
    assert out.returncode == 0, out.stderr
    counts = dict(re.findall(r"^(\S+): (\d+) of \d+ ", out.stdout + out.stderr, re.MULTILINE))
    assert {"ingest", "clean", "quality", "gradients", "static/raw", "lqs", "shards"} <= counts.keys()
    assert {name for name, todo in counts.items() if todo != "0"} == {"ingest", "clean", "tokens/raw", "tokens"}
