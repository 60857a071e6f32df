"""The stage runner: what is skipped, what is removed, what a killed run leaves, how errors arrive."""

import subprocess
import sys
from pathlib import Path

import pytest
from support import stages
from support.places import ROOT

from pipelines.core import exits, stage
from pipelines.core.project import locked
from scoring.core.errors import ConfigError, DataError, ToolError
from transforms.core import parts


def files(root: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((root / "data/tokens/raw").iterdir())}


def times(root: Path) -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in (root / "data/tokens/raw").iterdir()}


def test_a_second_run_computes_nothing(tmp_path: Path) -> None:
    stages.samples(tmp_path, 3)
    stages.count(stages.project(tmp_path))
    before = times(tmp_path)
    stages.count(stages.project(tmp_path))
    assert times(tmp_path) == before
    assert len(before) == 3


def test_no_parts_and_empty_parts_are_fine(tmp_path: Path) -> None:
    stages.count(stages.project(tmp_path))
    stages.samples(tmp_path, 1, rows=0)
    stages.count(stages.project(tmp_path))
    assert [parts.Footer(tmp_path / "data/tokens/raw" / n).rows for n in files(tmp_path)] == [0]


@pytest.mark.parametrize("change", ["config", "depends", "input"])
def test_whatever_a_part_depends_on_makes_it_anew(tmp_path: Path, change: str) -> None:
    stages.samples(tmp_path, 2)
    stages.count(stages.project(tmp_path))
    before = times(tmp_path)
    if change == "input":
        stages.samples(tmp_path, 1, rows=5)
    stages.count(
        stages.project(tmp_path),
        config={"a": 2} if change == "config" else None,
        depends=["model"] if change == "depends" else (),
    )
    redone = [n for n, t in times(tmp_path).items() if t != before[n]]
    assert len(redone) == (1 if change == "input" else 2)


def test_a_removed_source_takes_its_parts_along(tmp_path: Path) -> None:
    stages.samples(tmp_path, 3)
    stages.count(stages.project(tmp_path))
    next((tmp_path / "data/samples").iterdir()).unlink()
    stages.count(stages.project(tmp_path))
    assert set(files(tmp_path)) == set(parts.names(tmp_path / "data/samples"))


KILLED = """
import sys
sys.path[:0] = [sys.argv[2], sys.argv[2] + "/tests"]
from pathlib import Path
from support import stages
root = Path(sys.argv[1])
stages.count(stages.project(root), stages.CountPositions(die_at=f"part-{5:016x}-0000.parquet"))
"""


def test_a_killed_stage_goes_on_where_it_was(tmp_path: Path) -> None:
    for name in ("killed", "calm"):
        stages.samples(tmp_path / name, 12)
    out = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "killed", ROOT], check=False, capture_output=True)
    assert out.returncode == -9, out.stderr
    survivors = times(tmp_path / "killed")
    assert 0 < len(survivors) < 12
    for name in ("killed", "calm"):
        stages.count(stages.project(tmp_path / name))
    after = times(tmp_path / "killed")
    assert {n: after[n] for n in survivors} == survivors
    assert files(tmp_path / "killed") == files(tmp_path / "calm")


def test_two_worker_processes_write_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT}/tests")
    for engine in ("local", "processes"):
        stages.samples(tmp_path / engine, 6)
        stages.count(stages.project(tmp_path / engine, engine))
    assert files(tmp_path / "local") == files(tmp_path / "processes")


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_an_error_of_a_worker_reaches_the_user_whole(
    tmp_path: Path, engine: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT}/tests")
    stages.samples(tmp_path, 3)
    bad = f"part-{1:016x}-0000.parquet"
    code = exits.guard(
        "count", lambda: stages.count(stages.project(tmp_path, engine), stages.CountPositions(fail_at=bad))
    )
    said = capsys.readouterr().err
    assert code == 1
    assert said.strip().endswith(f"gradsift count: bad value 7\n  where: {bad}\n  remedy: fix it")
    assert "Traceback" not in said


def test_a_lost_row_is_a_breach(tmp_path: Path) -> None:
    stages.samples(tmp_path, 1)
    stages.count(stages.project(tmp_path))
    stages.samples(tmp_path, 1, rows=3)
    written, task = tmp_path / "data/tokens/raw", parts.names(tmp_path / "data/samples")[0]
    wanted = stage.tasks(stages.project(tmp_path), stages.sidecar({"a": 1}))
    stale = parts.read_part(written / task, ["sample_id", *stages.COUNTS])
    parts.write_part(written, parts.Part(task, wanted[0].fingerprint, stale), stages.schemas.TOKENS_RAW)
    with pytest.raises(DataError, match="4 rows written for 3 samples"):
        stages.count(stages.project(tmp_path))


def test_what_comes_out_the_same_leaves_later_stages_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another code version computes a part again; what reads its columns sees the same values and skips it."""
    project = stages.project(tmp_path)
    stages.samples(tmp_path, 2)
    for code, later in (("scoring.core.sums", 2), ("scoring.core.files", 0)):
        stages.count(project, code=code)
        stages.count(project, folder="static/counts", reads={**stages.READS, "tokens/raw": ["text_tokens"]})
        said = capsys.readouterr()
        assert "tokens/raw: 2 of 2 parts to do" in said.out + said.err
        assert f"static/counts: {later} of 2 parts to do" in said.out + said.err


def test_two_runs_in_one_project_are_refused(tmp_path: Path) -> None:
    project = stages.project(tmp_path)
    with locked(project), pytest.raises(DataError, match="another gradsift run"), locked(project):
        pass


@pytest.mark.parametrize(("error", "code"), [(ConfigError, 2), (DataError, 1), (ToolError, 3)])
def test_exit_codes(error: type[Exception], code: int) -> None:
    def action() -> None:
        raise error("what", where="here", remedy="this")

    assert exits.guard("x", action) == code


def test_a_bug_is_not_dressed_up_as_a_user_error() -> None:
    def action() -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        exits.guard("x", action)


@pytest.mark.parametrize(("engine", "said"), [("nosuch", "unknown engine"), ("DirectRunner", "from the network")])
def test_an_engine_that_cannot_be_used_is_a_configuration_error(tmp_path: Path, engine: str, said: str) -> None:
    stages.samples(tmp_path, 1)
    with pytest.raises(ConfigError, match=said):
        stages.count(stages.project(tmp_path, engine))
