"""A stage is left alone only where nothing that it follows from has changed."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.core import trust, unchanged
from pipelines.core.options import RuntimeConfig
from pipelines.core.params import Params
from pipelines.core.project import Project

RUNTIME = RuntimeConfig(engine="local", workers=1, threads=1, beam_args=())


def project(root: Path, *, force: bool = False, **quality: object) -> Project:
    return Project(root, Params(root / "params.yaml", {"quality": quality}), RUNTIME, force)


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """Returns a project whose stage `quality` has ended."""
    for folder in ("samples", "clean", "dedup", "quality", "rejects", "lqs"):
        (tmp_path / "data" / folder).mkdir(parents=True)
        (tmp_path / "data" / folder / "part.parquet").write_bytes(b"rows")
    (tmp_path / "labels.jsonl").write_text("{}")
    old = time.time() - 60
    os.utime(tmp_path / "labels.jsonl", (old, old))
    return tmp_path


def ran(found: Project, work: Callable[[], None] = lambda: None) -> bool:
    return unchanged.run(found, "quality", work)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unchanged, "_SETTLED_S", 0.0)


def test_what_has_not_changed_is_left_alone(done: Path, settled: None) -> None:
    assert ran(project(done, labels="labels.jsonl"))
    assert not ran(project(done, labels="labels.jsonl"))
    (done / "data/lqs/part.parquet").write_bytes(b"of a later stage")
    (done / "data/rejects/part.parquet").write_bytes(b"which only the report reads")
    assert not ran(project(done, labels="labels.jsonl"))


@pytest.mark.parametrize("changed", ["data/samples", "data/clean", "data/dedup", "data/quality"])
def test_a_file_of_this_stage_or_one_before_counts(done: Path, settled: None, changed: str) -> None:
    assert ran(project(done))
    path = done / changed / "part.parquet"
    times = path.stat()
    path.write_bytes(b"rowz")  # as long as before
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ran(project(done))
    assert not ran(project(done))
    path.unlink()
    assert ran(project(done))


def test_params_and_the_files_that_they_name_count(done: Path, settled: None) -> None:
    assert ran(project(done, labels="labels.jsonl"))
    assert ran(project(done, labels="labels.jsonl", seed=1))
    assert not ran(project(done, labels="labels.jsonl", seed=1))
    (done / "labels.jsonl").write_text("[]")
    assert ran(project(done, labels="labels.jsonl", seed=1))
    assert ran(project(done, labels="*.jsonl"))
    (done / "more.jsonl").write_text("[]")
    assert ran(project(done, labels="*.jsonl"))


def test_code_and_what_is_installed_count(done: Path, settled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ran(project(done))
    monkeypatch.setattr(unchanged.deps, "installed", lambda: b"another library")
    unchanged._machine.cache_clear()
    assert ran(project(done))
    unchanged._machine.cache_clear()


def test_a_named_file_that_was_just_written_is_looked_at_again(done: Path) -> None:
    assert ran(project(done, labels="labels.jsonl"))
    assert ran(project(done, labels="labels.jsonl"))


def test_force_a_failure_and_age_run_again(done: Path, settled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError("no disk")

    assert ran(project(done))
    assert ran(project(done, force=True))
    with pytest.raises(ValueError, match="no disk"):
        ran(project(done, seed=2), fail)
    assert ran(project(done, seed=2))
    assert not ran(project(done, seed=2))
    monkeypatch.setattr(trust, "TRUST_S", 0)
    assert ran(project(done, seed=2))
