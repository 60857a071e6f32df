"""The embedded corpus: the same bytes everywhere, clean rows that are clean, faults that are named."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.builders import empty_project
from support.places import ROOT, SHIPPED

from pipelines import sample
from pipelines.core import params
from pipelines.core.project import Project
from pipelines.sample_corpus import faults, sources, texts
from pipelines.sample_corpus.config import SampleConfig
from scoring.core.errors import ConfigError, ToolError
from transforms.decode.audio import decode_audio
from transforms.decode.config import AudioConfig, ImageConfig, VideoConfig
from transforms.decode.errors import MediaError
from transforms.decode.image import decode_image
from transforms.decode.video import decode_video

IMAGE = ImageConfig(max_side=512, max_pixels=100_000_000, format="jpeg", quality=92, background="white")
VIDEO = VideoConfig(fps=1.0, segment_s=60.0, max_side=512, timeout_s=60.0)
AUDIO = AudioConfig(sample_rate_hz=16_000, segment_s=300.0, timeout_s=60.0)
CONFIG = params.read(SHIPPED).section("sample", SampleConfig)


_OTHER = """
import sys
from pathlib import Path
from support.builders import empty_project
from pipelines import sample
sample.run(empty_project(Path(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path]:
    """A project with the default corpus, and the root of one that another process made at the same time."""
    other = tmp_path_factory.mktemp("other")
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "PYTHONHASHSEED": "4711"}
    with subprocess.Popen([sys.executable, "-c", _OTHER, str(other)], env=env, cwd=other) as process:
        made = empty_project(tmp_path_factory.mktemp("sample"))
        sample.run(made)
        assert process.wait(300) == 0
    return made, other


@pytest.fixture(scope="module")
def project(twins: tuple[Project, Path]) -> Project:
    return twins[0]


@pytest.fixture(scope="module")
def folder(project: Project) -> Path:
    return project.folder("sample")


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def lines(folder: Path, name: str) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Yields each line, and the row that it is, if it is one."""
    for line in (folder / name).read_bytes().splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        yield line, row if isinstance(row, dict) else None


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [row for _, row in lines(folder, name) if row]


def media(folder: Path, kind: str, *, sound: bool = True) -> list[Path]:
    """Returns the files of a folder that have a caption (`sound`), or that have none."""
    captioned = {
        r.get(k) for r in rows(folder, "captions.jsonl") for k in ("image", "video", "audio") if not r["fault"]
    }
    files = sorted((folder / kind).iterdir())
    return [p for p in files if (f"{kind}/{p.name}" in captioned) == sound]


def test_another_process_makes_the_same_bytes(twins: tuple[Project, Path]) -> None:
    project, other = twins
    assert contents(other / "data/sample") == contents(project.folder("sample"))
    assert (other / "metrics/sample.json").read_bytes() == project.metrics("sample").read_bytes()


def test_a_whole_corpus_is_not_made_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "_write", lambda *_: pytest.fail("it was made again"))
    before = project.metrics("sample").read_bytes()
    project.metrics("sample").unlink()
    sample.run(project)
    assert project.metrics("sample").read_bytes() == before


def test_a_damaged_or_other_corpus_is_not_current(folder: Path, tmp_path: Path) -> None:
    fingerprint = json.loads((folder / sample.MANIFEST).read_text())["fingerprint"]
    assert sample.is_current(folder, fingerprint)
    assert not sample.is_current(folder, "another")
    assert not sample.is_current(tmp_path, fingerprint)
    (tmp_path / sample.MANIFEST).write_text("not JSON")
    assert not sample.is_current(tmp_path, fingerprint)
    path = tmp_path / "pictures/zero-bytes.png"
    path.parent.mkdir()
    path.write_bytes(b"")
    manifest = {"fingerprint": "f", "files": {"pictures/zero-bytes.png": sample._digest(path)}}
    (tmp_path / sample.MANIFEST).write_text(json.dumps(manifest))
    assert sample.is_current(tmp_path, "f")
    path.write_bytes(b"x")
    assert not sample.is_current(tmp_path, "f")
    path.unlink()
    assert not sample.is_current(tmp_path, "f")


def test_what_an_earlier_corpus_left_is_removed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "_files", lambda _: iter([("pictures/new.png", b"new", {"pictures": 1})]))
    other = Project(tmp_path, project.params, project.runtime)
    (tmp_path / "data/sample/pictures").mkdir(parents=True)
    (tmp_path / "data/sample/pictures/old.png").write_bytes(b"old")
    (tmp_path / "data/sample/pictures/.tmp-x.png").write_bytes(b"half")
    sample.run(other)
    assert sorted(contents(tmp_path / "data/sample")) == ["_manifest.json", "pictures/new.png"]


def test_counts(project: Project) -> None:
    counts = json.loads(project.metrics("sample").read_text())
    wanted = {"texts": 640, "pictures": 32 + 10, "videos": 6 + 1, "sounds": 6 + 1, "captions": 33 + 6 + 6 + 3}
    assert {k: counts[k] for k in wanted} == wanted
    assert sum(p.stat().st_size for p in project.folder("sample").rglob("*") if p.is_file()) < 20_000_000


def test_texts_are_long_enough_and_named(folder: Path) -> None:
    clean = [r for r in rows(folder, "texts.jsonl") if r.get("fault") is None]
    assert len(clean) == 640
    assert len({r["id"] for r in clean}) == 640
    assert len({r["text"] for r in clean}) == 640
    assert [r["id"] for r in clean] == sorted(r["id"] for r in clean)
    assert all(texts.MIN_WORDS <= len(r["text"].split()) <= texts.MAX_WORDS for r in clean)
    domains = Counter(r["domain"] for r in clean)
    assert set(domains) >= {"library", "licences", "packages", "reference"}
    assert min(domains.values()) >= 30


def test_clean_texts_pass_gopher(folder: Path) -> None:
    from transforms.clean.config import CleanConfig
    from transforms.text.rules import listed
    from transforms.text.rules.measure import measure

    config = params.read(SHIPPED).section("clean", CleanConfig)
    texts = [row["text"] for row in rows(folder, "texts.jsonl") if row.get("fault") is None]
    array = pa.array(texts, pa.large_string())
    values = measure(array, ["en"] * len(texts), np.ones(len(texts), bool), config).values
    failed = {
        rule.code: int(rule.drops(values[rule.value].to_numpy(zero_copy_only=False), config).sum())
        for rule in (*listed.GOPHER, *listed.REPETITION)
    }
    assert sum(failed.values()) <= 0.02 * 640, failed


def test_no_file_names_a_place_of_this_machine(folder: Path) -> None:
    hidden = [str(p).encode() for p in (folder, ROOT, sys.prefix, sys.base_prefix)]
    assert [n for n, data in contents(folder).items() if any(h in data for h in hidden)] == []


def test_every_planted_fault_is_there(folder: Path) -> None:
    found = Counter(r.get("fault") for r in rows(folder, "texts.jsonl"))
    assert {k: found[k] for k in faults._KINDS} == dict.fromkeys(faults._KINDS, CONFIG.faults)
    single = {"empty_text", "null_text", "wrong_type", "nul_character", "lone_surrogate", "long_line", "duplicate_id"}
    assert {k: found[k] for k in single | {"no_content"}} == dict.fromkeys(single | {"no_content"}, 1)
    assert found["chinese"] == 6
    whole = (folder / "texts.jsonl").read_bytes()
    for fault in ("not_json", "not_an_object", "bad_encoding"):
        assert whole.count(fault.encode()) >= 1
    assert sum(row is None for _, row in lines(folder, "texts.jsonl")) == 3


def test_faults_are_what_they_are_called(folder: Path) -> None:
    by_fault: dict[str, list[dict[str, Any]]] = {}
    for row in rows(folder, "texts.jsonl"):
        by_fault.setdefault(row.get("fault"), []).append(row)
    clean = {r["text"]: r["id"] for r in by_fault[None]}
    assert all(r["text"] in clean for r in by_fault["exact_duplicate"])
    assert by_fault["duplicate_id"][0]["id"] in clean.values()
    assert by_fault["lone_surrogate"][0]["text"].startswith("\ud800 ")
    assert "\0" in by_fault["nul_character"][0]["text"]
    (line,) = [x for x, row in lines(folder, "texts.jsonl") if row and row.get("fault") == "long_line"]
    assert len(json.loads(line)["text"]) == 2_000_000
    assert b"\\n" not in line
    assert all("@example.com" in r["text"] and "555-01" in r["text"] for r in by_fault["personal_data"])
    for row in by_fault["near_duplicate"]:
        assert row["text"] not in clean
        assert max(jaccard(row["text"], text) for text in clean) >= 0.75


def jaccard(one: str, other: str) -> float:
    """Returns the similarity of two texts' sets of word 5-grams."""
    a, b = ({tuple(w[k : k + 5]) for k in range(len(w) - 4)} for w in (one.split(), other.split()))
    return len(a & b) / len(a | b)


def test_captions_lead_to_their_media(folder: Path) -> None:
    sound = [r for r in rows(folder, "captions.jsonl") if not r["fault"]]
    assert all((folder / (r.get("image") or r.get("video") or r["audio"])).is_file() for r in sound)
    assert len({r["id"] for r in sound}) == len(sound) == 45
    assert all(len(r["text"].split()) >= 4 for r in sound)


def test_sound_pictures_decode(folder: Path) -> None:
    found = [decode_image(p.read_bytes(), IMAGE) for p in media(folder, "pictures")]
    assert {p.codec for p in found} == {"jpeg", "png", "gif", "webp", "bmp", "tiff"}
    assert len({p.data for p in found}) == len(found) == 33
    original = decode_image((folder / "pictures/original.jpg").read_bytes(), IMAGE)
    turned = decode_image((folder / "pictures/rotated.jpg").read_bytes(), IMAGE)
    assert (turned.width, turned.height) == (original.width, original.height)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("truncated.jpg", "broken_image"), ("zero-bytes.png", "empty_file"), ("bomb.gif", "too_many_pixels")],
)
def test_broken_pictures_are_refused(folder: Path, name: str, reason: str) -> None:
    with pytest.raises(MediaError) as error:
        decode_image((folder / "pictures" / name).read_bytes(), IMAGE)
    assert error.value.reason == reason


def test_videos_decode_and_one_becomes_several_rows(folder: Path) -> None:
    found = {p.name: list(decode_video(p, VIDEO, IMAGE, AUDIO)) for p in media(folder, "videos")}
    assert len(found) == 6
    assert sorted(len(segments) for segments in found.values()) == [1, 1, 1, 1, 1, 2]
    assert {s.has_audio for segments in found.values() for s in segments} == {True, False}
    (broken,) = media(folder, "videos", sound=False)
    with pytest.raises(MediaError, match="broken_video"):
        list(decode_video(broken, VIDEO, IMAGE, AUDIO))


def test_sounds_decode(folder: Path) -> None:
    found = [list(decode_audio(p, AUDIO)) for p in media(folder, "sounds")]
    assert [len(segments) for segments in found] == [1] * 6
    (broken,) = media(folder, "sounds", sound=False)
    with pytest.raises(MediaError, match="broken_audio"):
        list(decode_audio(broken, AUDIO))


def test_more_recordings_than_kinds_are_not_copies() -> None:
    from pipelines.sample_corpus.recordings import sounds

    made = [s.data for s in sounds(8, seed=7)]
    assert made[0] != made[6]


def test_a_missing_encoder_is_a_tool_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.sample_corpus import recordings

    broken = recordings.Sound("x.wav", "sine=d=1", ("-c:a", "no_such_encoder"), "x")
    monkeypatch.setattr(recordings, "_SOUNDS", (broken,))
    with pytest.raises(ToolError, match="no_such_encoder"):
        list(recordings.sounds(1, seed=7))


def test_another_text_changes_one_row_only(monkeypatch: pytest.MonkeyPatch) -> None:
    prose = "The {n} ducks of the lake swim to the shore and back again, and nobody knows what it is that they want. "
    found = [sources.Origin(f"topic:{n}", "reference", prose.format(n=n * 3) * 6) for n in "abcdefghijklmnopqrst"]
    monkeypatch.setattr(texts, "origins", lambda: iter(found))
    monkeypatch.setattr(texts, "_repeats", lambda _: False)
    before = {d.id for d in texts.documents(10, seed=7)}
    found.insert(3, sources.Origin("topic:new", "reference", prose.format(n="many") * 6))
    assert len(before) == 10
    assert len(before & {d.id for d in texts.documents(10, seed=7)}) >= 9


def test_paragraphs_are_prose_unwrapped() -> None:
    text = """\
A Heading
=========

This is the ``first`` sentence of a text that is
wrapped at some width, and it ends here.

    >>> code = that(stays) # out of the corpus because it is no prose

See :func:`json.loads` and *this* for a way to read the texts that a program of yours has written::

- one item of the list which is in fact a sentence with words to spare for all.
- and the next of them that goes on and on until it has said what it is.
"""
    assert list(texts.paragraphs(text)) == [
        "This is the first sentence of a text that is wrapped at some width, and it ends here.",
        "See json.loads and this for a way to read the texts that a program of yours has written:",
        "- one item of the list which is in fact a sentence with words to spare for all.\n"
        "- and the next of them that goes on and on until it has said what it is.",
    ]


def test_only_what_the_project_needs_counts() -> None:
    assert {"numpy", "pillow", "apache-beam"} <= set(sources.packages())
    assert not {"gradsift", "pytest", "pip"} & set(sources.packages())


@pytest.mark.parametrize("name", ["texts", "faults", "pictures", "videos", "sounds"])
def test_config_names_what_is_wrong(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} 0 must be at least 1"):
        replace(CONFIG, **{name: 0})
    with pytest.raises(ConfigError, match=rf"sample\.{name}"):
        empty_project(Path(), sample={name: "many"}).section("sample", SampleConfig)
