"""`gradsift verify` on small projects built by hand: what it finds, counts and says."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support import builders, command, ingesting
from support.small import write as write_params

from pipelines import ingest
from pipelines.commands import verify
from pipelines.core.project import open_project
from scoring.core.errors import DataError


def built(root: Path) -> Path:
    """Returns the params file of a project whose folders of samples, rejects and clean are written."""
    path = write_params(root)
    project = open_project(path)
    for folder, rows in (("samples", builders.SAMPLES), ("rejects", builders.REJECTS)):
        for part, samples in rows.items():
            builders.write_rows(project, folder, part, samples)
    for part, samples in builders.SAMPLES.items():
        ids = [{"sample_id": s["sample_id"], **builders.KEPT} for s in samples]
        builders.write_rows(project, "clean", part, ids)
    return path


def test_whole_data_are_said_to_be_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verify.main(built(tmp_path))
    assert ": 0 damaged, 0 without checksums" in capsys.readouterr().out


def test_no_data_yet_are_no_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verify.main(write_params(tmp_path))
    assert "0 files" in capsys.readouterr().out


def test_parts_of_an_earlier_version_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = built(tmp_path)
    part = tmp_path / "data/clean" / builders.PARTS[0]
    table = pq.read_table(part)
    kept = {k: v for k, v in table.schema.metadata.items() if k != b"gradsift.sealed"}
    pq.write_table(table.replace_schema_metadata(kept), part)
    verify.main(path)
    assert ": 0 damaged, 1 without checksums" in capsys.readouterr().out


@pytest.mark.parametrize("fault", ["missing", "stray", "other", "broken"])
def test_what_is_wrong_is_named_with_the_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str) -> None:
    path = built(tmp_path)
    part = tmp_path / "data/clean" / builders.PARTS[0]
    other = part.with_name(builders.PARTS[1])
    if fault == "missing":
        part.unlink()
    elif fault == "stray":
        (tmp_path / "data/samples" / part.name).unlink()
    elif fault == "other":
        part.write_bytes(other.read_bytes())
    else:
        part.write_bytes(part.read_bytes()[:-3])
    with pytest.raises(DataError, match=r"(?s)1 files are damaged.*remedy: gradsift run clean"):
        verify.main(path)
    out = capsys.readouterr().out
    assert f"data/clean/{part.name}: " in out
    assert "rewritten by: gradsift run clean" in out


def test_swapped_rejects_are_found(tmp_path: Path) -> None:
    path = write_params(tmp_path)
    ingest.run(ingesting.project(tmp_path, ingesting.corpus(tmp_path)))
    verify.main(path)
    first, second = sorted((tmp_path / "data/rejects").glob("*.parquet"))[:2]
    first.write_bytes(second.read_bytes())
    with pytest.raises(DataError, match="gradsift run ingest"):
        verify.main(path)


def test_the_command_ends_with_1_on_damage(tmp_path: Path) -> None:
    built(tmp_path)
    assert command.within(tmp_path, "verify").returncode == 0
    (tmp_path / "data/samples" / builders.PARTS[2]).write_bytes(b"")
    out = command.within(tmp_path, "verify")
    assert out.returncode == 1
    assert "gradsift run ingest" in out.stderr
    assert "example: gradsift verify" in command.within(tmp_path, "verify", "--help").stdout
