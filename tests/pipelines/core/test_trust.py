"""What is checked, what is remembered of it, and what makes a file be checked once more."""

import os
import time
from pathlib import Path

import pytest
from support import stages

from pipelines.core import progress, trust
from scoring.core.errors import DataError
from transforms.core import parts, sealed


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files whose bytes are compared."""
    names: list[str] = []
    check = sealed.check

    def counted(path: Path) -> bool:
        names.append(path.name)
        return check(path)

    monkeypatch.setattr(sealed, "check", counted)
    return names


def test_what_was_checked_is_not_read_again(tmp_path: Path, checked: list[str]) -> None:
    stages.samples(tmp_path, 3)
    folder = tmp_path / "data/samples"
    for _ in range(2):
        assert trust.damaged(folder, parts.names(folder)) == {}
    assert sorted(checked) == parts.names(folder)


def test_a_change_or_a_week_makes_a_file_be_checked_again(
    tmp_path: Path, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stages.samples(tmp_path, 2)
    folder = tmp_path / "data/samples"
    names = parts.names(folder)
    trust.damaged(folder, names)
    checked.clear()
    path = folder / names[0]
    before = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # the same size and time of change
    trust.damaged(folder, names)
    assert checked == [names[0]]
    later = time.time() + trust.TRUST_S + 60
    monkeypatch.setattr(trust.time, "time", lambda: later)
    trust.damaged(folder, names)
    assert sorted(checked) == sorted([names[0], *names])


def test_damage_is_told_each_time_and_forgotten_once_rewritten(tmp_path: Path) -> None:
    stages.samples(tmp_path, 1)
    path = next((tmp_path / "data/samples").iterdir())
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"?" + whole[101:])
    for _ in range(2):
        with pytest.raises(DataError, match="gradsift run ingest"):
            trust.require(path.parent, [path.name])
    path.write_bytes(whole)
    trust.require(path.parent, [path.name])


def test_a_reader_that_finds_rotten_bytes_makes_its_stage_check_them(tmp_path: Path) -> None:
    """Rot leaves the file's times as they were: what was checked before is taken for whole until somebody reads it."""
    stages.samples(tmp_path, 1)
    path = next((tmp_path / "data/samples").iterdir())
    task = parts.Task(path.name, parts.Footer(path).fingerprint)
    assert trust.is_done(path.parent, task)
    memory = tmp_path / "data/.verified/samples"
    path.write_bytes(path.read_bytes()[:20] + b"????" + path.read_bytes()[24:])
    name, _, when = memory.read_text().strip().split("\t")
    memory.write_text(f"{name}\t{trust._stat(path)} \t{when}\n")
    assert trust.is_done(path.parent, task)
    with pytest.raises(DataError, match="damaged file"):
        parts.read_part(path, ["sample_id"])
    assert not trust.is_done(path.parent, task)


def test_a_damaged_memory_is_no_harm(tmp_path: Path) -> None:
    stages.samples(tmp_path, 1)
    folder = tmp_path / "data/samples"
    trust.damaged(folder, parts.names(folder))
    (tmp_path / "data/.verified/samples").write_bytes(b"\xff\0rubbish\t\n")
    assert trust.damaged(folder, parts.names(folder)) == {}


def test_a_listed_digest_is_compared_too(tmp_path: Path) -> None:
    stages.samples(tmp_path, 1)
    folder = tmp_path / "data/samples"
    (name,) = parts.names(folder)
    assert trust.damaged(folder, [name], {name: sealed.sha256(folder / name)}) == {}
    assert "SHA-256" in str(trust.damaged(folder, [name], {name: "0" * 64})[name])


def test_progress_passes_over_a_damaged_part_until_it_is_rewritten(tmp_path: Path) -> None:
    stages.samples(tmp_path, 1)
    path = next((tmp_path / "data/samples").iterdir())
    whole = path.read_bytes()
    watcher = progress.Watcher(path.parent, {path.name})
    path.write_bytes(whole[:50])
    assert watcher.poll() == 0
    path.write_bytes(whole)
    assert (watcher.poll(), watcher.rows) == (1, 4)
