"""Sources that change while they are read: read again, or an error in words; never rows under another digest."""

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from support.ingesting import ask, lines, project

from pipelines import ingest
from scoring.core.errors import ConfigError, DataError
from scoring.core.files import file_digest
from transforms.ingest import reading, stamps
from transforms.readers.base import Extent, Item
from transforms.readers.jsonl import read_jsonl

SOURCE = {"name": "web", "paths": ["raw"]}


def meddle(monkeypatch: pytest.MonkeyPatch, action: Callable[[Path], None], times: int = 1) -> list[int]:
    """Calls `action` with the file after the first record is read, for the first `times` that files are read."""
    reads: list[int] = []

    def read(extent: Extent) -> Iterator[Item]:
        for number, item in enumerate(read_jsonl(extent)):
            yield item
            if not number and len(reads) < times:
                action(extent.path)
                reads.append(1)

    monkeypatch.setitem(reading.READERS, "jsonl", read)
    return reads


def rows(root: Path, count: int, word: str = "text") -> Path:
    path = root / "raw/a.jsonl"
    lines(path, [{"id": k, "text": f"{word} {k}"} for k in range(count)])
    return path


def texts(root: Path) -> list[str]:
    return [text for (text,) in ask(root, "samples", "text")]


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write('\n{"id": "more", "text": "a row that came later"}')


def replace(path: Path) -> None:
    """Puts a file of the same size and times in the place of `path`."""
    before = path.stat()
    other = path.with_name(".other")
    other.write_text(path.read_text().replace("text ", "word "))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert other.stat().st_size == before.st_size
    other.replace(path)


@pytest.mark.parametrize("by", ["stamp", "digest"])
@pytest.mark.parametrize(("action", "expected"), [(append, "a row that came later"), (replace, '"id": 0')])
def test_a_source_that_changed_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: Callable[[Path], None], expected: str, by: str
) -> None:
    path = rows(tmp_path, 5)
    if by == "stamp":
        monkeypatch.setattr(stamps, "_FRESH_S", 0.0)
    meddle(monkeypatch, action)
    ingest.run(project(tmp_path, [SOURCE]))
    found = texts(tmp_path)
    assert len(found) == (6 if action is append else 5)
    assert expected in found if action is append else all(t.startswith("word") for t in found)
    assert set(ask(tmp_path, "samples", "DISTINCT source_digest")) == {(file_digest(path),)}


def test_a_source_that_changes_each_time_fails_with_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(tmp_path, 5)
    meddle(monkeypatch, append, times=99)
    with pytest.raises(DataError, match=r"source web changed each of the 3 times.*raw/a.jsonl: its size went from"):
        ingest.run(project(tmp_path, [SOURCE]))
    monkeypatch.undo()
    ingest.run(project(tmp_path, [SOURCE]))
    assert texts(tmp_path).count("a row that came later") == 1  # the id of the others is the same


def test_a_source_that_another_process_keeps_appending_to(tmp_path: Path) -> None:
    path, stop = rows(tmp_path, 3000), threading.Event()

    def grow() -> None:
        while not stop.wait(0.002):
            append(path)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        with pytest.raises(DataError, match=r"raw/a.jsonl"):
            ingest.run(project(tmp_path, [SOURCE]))
    finally:
        stop.set()
        thread.join()


def test_a_deleted_source_leaves_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rows(tmp_path, 5)
    lines(tmp_path / "raw/b.jsonl", [{"text": "stays"}])
    meddle(monkeypatch, lambda _: path.unlink())
    ingest.run(project(tmp_path, [SOURCE]))
    assert texts(tmp_path) == ["stays"]


def test_a_deleted_source_that_params_name_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rows(tmp_path, 5)
    meddle(monkeypatch, lambda _: path.unlink())
    with pytest.raises(ConfigError, match="matches no file"):
        ingest.run(project(tmp_path, [{"name": "web", "paths": ["raw/a.jsonl"]}]))


def test_a_picture_that_a_row_names_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = tmp_path / "raw/red.png"
    lines(tmp_path / "raw/a.jsonl", [{"text": "one", "image": "red.png"}, {"text": "two", "image": "red.png"}])
    Image.new("RGB", (8, 8)).save(picture)
    os.utime(picture, (1, 1))
    meddle(monkeypatch, lambda _: Image.new("RGB", (16, 8)).save(picture))
    ingest.run(project(tmp_path, [{"name": "web", "paths": ["raw/*.jsonl"]}]))
    assert ask(tmp_path, "samples", "width") == [(16,), (16,)]


def test_a_touched_source_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(tmp_path, 5)
    reads = meddle(monkeypatch, os.utime, times=99)
    ingest.run(project(tmp_path, [SOURCE]))
    assert len(reads) == 1


def test_force_leaves_no_mark_of_a_source_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(tmp_path, 5)
    ingest.run(project(tmp_path, [SOURCE]))
    meddle(monkeypatch, append)
    ingest.run(dataclasses.replace(project(tmp_path, [SOURCE]), force=True))
    assert len(texts(tmp_path)) == 6
