"""Rough use: full disks in every writer, odd files, wrong flags, Ctrl-C. One clear message each, and no half file."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import builders, command, small
from support.command import ENV, gradsift, within

from pipelines.catalog import current
from pipelines.catalog import views as catalog
from pipelines.core.project import open_project
from scoring.core.errors import ConfigError, DataError, ToolError
from scoring.reference.train import save_checkpoint
from transforms.decode import tool
from transforms.gradients.checkpoints import write_directions


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_checkpoint_on_a_full_disk(full_disk: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = LlamaConfig(
        vocab_size=512, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=1
    )
    with pytest.raises(DataError, match="No space left"):
        save_checkpoint(full_disk / "checkpoint-1", LlamaForCausalLM(sizes), None)
    assert list(full_disk.iterdir()) == []


def test_directions_on_a_full_disk(full_disk: Path) -> None:
    import torch

    with pytest.raises(OSError, match="No space left"):
        write_directions(str(full_disk / "d.safetensors"), {"a": torch.zeros(200, 200)}, None)


def fill(path: Path) -> None:
    """Writes until the disk is full."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def test_a_catalog_on_a_full_disk(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs the right to mount a small file system")
    project = builders.complete_project(tmp_path / "p")
    current.path(project).unlink(missing_ok=True)
    size = sum(p.stat().st_size for p in project.data.rglob("*") if p.is_file())
    aside = tmp_path / "aside"
    project.data.rename(aside)
    project.data.mkdir()
    options = f"size={size // 1024 + 4 * len(list(aside.rglob('*'))) + 64}k"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", project.data], check=False).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        subprocess.run(["cp", "-r", f"{aside}/.", project.data], check=True)
        fill(project.data / "fill")
        (project.data / ".duckdb").mkdir(exist_ok=True)  # where DuckDB spills
        (project.data / ".verified").mkdir(exist_ok=True)  # which parts were compared with their seals
        before = sorted(p.name for p in project.data.iterdir())
        with pytest.raises(DataError, match="cannot write"):
            catalog.build(project)
        assert sorted(p.name for p in project.data.iterdir()) == before
    finally:
        subprocess.run(["umount", project.data], check=True)


def test_one_parquet_with_a_column_twice_is_one_reject(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table([["x"], ["y"]], names=["text", "text"]), tmp_path / "raw/twice.parquet")
    (tmp_path / "raw/good.jsonl").write_text('{"id": "a", "text": "hello"}\n')
    small.write(tmp_path, ingest__sources=[{"name": "raw", "paths": ["raw"]}])
    out = within(tmp_path, "run", "ingest")
    assert out.returncode == 0, out.stderr
    found = [r for p in (tmp_path / "data/rejects").glob("*.parquet") for r in pq.read_table(p).to_pylist()]
    assert [(r["reason"], "text" in r["error"]) for r in found] == [("bad_value", True)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "plan", "--workers", "0"), "at least 1"),
        (("run", "sample", "ingest", "--engine", "nosuch"), "unknown engine"),
        (("run",), "nowhere"),
        (("query", "drops", "--csv", "--json"), "mutually exclusive"),
    ],
)
def test_a_wrong_call_changes_nothing(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    small.write(tmp_path, ingest__sources=[{"name": "none", "paths": ["nowhere"]}])
    out = within(tmp_path, *arguments)
    assert (out.returncode, "Traceback" in out.stderr) == (2, False), out.stderr
    assert said in out.stderr
    assert not (tmp_path / "data/sample").exists()


def test_a_source_that_holds_the_project_is_refused_at_once(tmp_path: Path) -> None:
    small.write(tmp_path, ingest__sources=[{"name": "here", "paths": ["."]}])
    out = within(tmp_path, "run", "ingest")
    assert out.returncode == 2
    assert "contains the project itself" in out.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"runtime__threads": 10**22}, "threads"),
        ({"quality__min_quality": 7.0}, "min_quality of a fitted head must lie in [0, 1], not 7.0"),
        ({"plan__shard_rows": 0}, "got 0"),
    ],
)
def test_a_value_out_of_range_is_said_without_its_whole_section(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_project(small.write(tmp_path, **change))
    assert said in str(caught.value)
    assert "{" not in str(caught.value)


def test_nested_yaml_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("[" * 5000)
    with pytest.raises(ConfigError, match="cannot read params"):
        open_project(tmp_path / "params.yaml")


def test_another_program_is_not_ffmpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSIFT_FFMPEG", "/bin/true")
    with pytest.raises(ToolError, match="not ffmpeg"):
        tool.versions()


def test_a_folder_without_rights_is_one_message(tmp_path: Path) -> None:
    small.write(tmp_path)
    (tmp_path / "data").write_text("a file where the folder should be")
    out = gradsift(tmp_path, "run", "sample")
    assert (out.returncode, "Traceback" in out.stderr) == (1, False), out.stderr
    assert "cannot write" in out.stderr


def test_ctrl_c_is_no_traceback(tmp_path: Path, corpus: Path) -> None:
    small.write(tmp_path, corpus)
    heard = ["env", "--default-signal=INT"]  # a shell lets its background jobs, and their children, ignore Ctrl-C
    with subprocess.Popen(
        [*heard, *command.argv("run")], cwd=tmp_path, env=ENV, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (tmp_path / "data/rejects").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in said) == (130, False), said
    assert "interrupted; rerun to resume" in said
