"""Which files a source names, and what reads them."""

import gzip
import os
from pathlib import Path

import pytest
from support.reading import source

from scoring.core.errors import ConfigError
from transforms.readers.base import compression
from transforms.readers.files import list_files
from transforms.readers.kinds import media_kind, reader_of

FILES = ("raw/a.txt", "raw/b/c.jsonl", "raw/b/d e.JPG", "raw/b/.hidden", "raw/.git/x", "raw/b/x/y/z.jsonl", "[odd].txt")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / name).write_text("x")
    (tmp_path / "outside.txt").write_text("x")
    return tmp_path / "p"


PATTERNS: list[tuple[str, list[str]]] = [
    ("raw", ["raw/a.txt", "raw/b/c.jsonl", "raw/b/d e.JPG", "raw/b/x/y/z.jsonl"]),
    ("raw/", ["raw/a.txt", "raw/b/c.jsonl", "raw/b/d e.JPG", "raw/b/x/y/z.jsonl"]),
    ("./raw/a.txt", ["raw/a.txt"]),
    ("raw/b/*.jsonl", ["raw/b/c.jsonl"]),
    ("raw/**/*.jsonl", ["raw/b/c.jsonl", "raw/b/x/y/z.jsonl"]),
    ("raw/*/x", ["raw/b/x/y/z.jsonl"]),
    ("ra?/[ab].txt", ["raw/a.txt"]),
    ("raw/b/.hidden", ["raw/b/.hidden"]),
    ("[odd].txt", ["[odd].txt"]),
    ("../outside.txt", ["../outside.txt"]),
    ("../*.txt", ["../outside.txt"]),
]


@pytest.mark.parametrize(("pattern", "expected"), PATTERNS)
def test_a_path_a_folder_or_a_glob(root: Path, pattern: str, expected: list[str]) -> None:
    assert list_files(root, source(paths=(pattern,))) == expected


def test_absolute_paths_become_relative_and_twice_is_once(root: Path) -> None:
    paths = (str(root / "raw/a.txt"), "raw/*.txt", str(root.parent / "outside.txt"))
    assert list_files(root, source(paths=paths)) == ["../outside.txt", "raw/a.txt"]


@pytest.mark.parametrize("pattern", ["nothing", "raw/*.csv", "empty", "raw/**/q", "a.txt/b", "raw/a.txt/*"])
def test_what_matches_nothing_is_an_error_with_source_pattern_and_remedy(root: Path, pattern: str) -> None:
    (root / "empty").mkdir()
    with pytest.raises(ConfigError) as caught:
        list_files(root, source(name="web", paths=("raw", pattern)))
    assert f"source web: '{pattern}' matches no files" in str(caught.value)
    assert "remedy" in str(caught.value)


def test_what_gradsift_writes_is_no_source(root: Path) -> None:
    for name in ("data/samples/part-a-0000.parquet", "data/sample/texts.jsonl"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("x")
    assert list_files(root, source(paths=("data/sample",))) == ["data/sample/texts.jsonl"]
    with pytest.raises(ConfigError, match="written by gradsift itself"):
        list_files(root, source(paths=("data",)))


def test_links_are_followed_but_not_in_circles(root: Path) -> None:
    (root / "raw/b/up").symlink_to(root / "raw")
    (root / "raw/b/twin").symlink_to(root / "raw/b/x")
    (root / "raw/b/gone").symlink_to(root / "nowhere")
    found = list_files(root, source(paths=("raw/b",)))
    assert found == ["raw/b/c.jsonl", "raw/b/d e.JPG", "raw/b/gone", "raw/b/twin/y/z.jsonl", "raw/b/up/a.txt",
                     "raw/b/x/y/z.jsonl"]  # fmt: skip


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything; test_ingest_process.py gives that up")
def test_a_folder_without_rights_is_an_error(root: Path) -> None:
    (root / "raw/b").chmod(0)
    with pytest.raises(ConfigError, match="no permission"):
        list_files(root, source(paths=("raw",)))
    (root / "raw/b").chmod(0o755)


PNG = b"\x89PNG\r\n\x1a\n"
ROW = b'{"text": "a"}\n{"text": "b"}\n'
KINDS: list[tuple[bytes, str, str]] = [
    (ROW, "a.jsonl", "jsonl"),
    (ROW, "a", "jsonl"),
    (ROW, "a.json", "jsonl"),
    (b'[{"text": "a"}]', "a.json", "json"),
    (b"\x00\x01rubbish", "a.jsonl", "jsonl"),
    (b"\x00\x01rubbish", "a.json", "json"),
    (b"\x00\x01rubbish", "a.parquet", "parquet"),
    (b"\x00\x01rubbish", "a.mp4", "media"),
    (b"\x00\x01rubbish", "a.bin", "unsupported_format"),
    (ROW, "a.txt", "text"),
    (b"# Title", "a.MD", "text"),
    (b"a,b", "a.csv", "csv"),
    (b"a\tb", "a.tsv", "csv"),
    (b"<html>", "a.html", "html"),
    (b"<p>a fragment", "a.HTM", "html"),
    (b"<!-- x -->\n<!DOCTYPE html>", "index.php", "html"),
    (b"<html>", "a.txt", "text"),
    (b"WARC/1.0\r\n", "a", "warc"),
    (b"WARC/1.0\n", "sample.warc.txt", "warc"),
    (b"\x00\x01rubbish", "a.warc", "warc"),
    (b"\x00\x01rubbish", "a.wet", "warc"),
    (b"PAR1".ljust(257, b"\0") + b"ustar\x0000", "a", "webdataset"),
    (b"\x00\x01rubbish", "a.tar", "webdataset"),
    (PNG, "a.txt", "media"),
    (PNG, "a", "media"),
    (b"PAR1", "a", "parquet"),
    (b"plain words", "README", "unsupported_format"),
]


@pytest.mark.parametrize(("head", "name", "expected"), KINDS)
def test_the_reader_of_a_file(head: bytes, name: str, expected: str) -> None:
    reader, words = reader_of(source(), head, name, packed=False)
    assert reader == expected
    assert bool(words) == (expected == "unsupported_format")


def test_packed_files_are_told_by_what_is_in_them() -> None:
    assert compression(gzip.compress(b"")) == "gzip"
    assert reader_of(source(), ROW, "a.jsonl.gz", packed=True)[0] == "jsonl"
    assert reader_of(source(), b"words", "a.txt.zst", packed=True)[0] == "text"
    assert reader_of(source(), PNG, "a.png.gz", packed=True) == (
        "unsupported_format", "a compressed media file: decompress it first",
    )  # fmt: skip
    assert reader_of(source(), b"<html>", "a.html.gz", packed=True)[0] == "html"
    for name in ("a.tar.gz", "a.tgz", "a.TZST", "a.tar.zst"):
        assert reader_of(source(), b"rubbish", name, packed=True)[0] == "webdataset"
    words = reader_of(source(), b"<rss>", "a.xml.gz", packed=True)[1]
    assert words.startswith("no reader for .xml files (text)")


def test_a_format_that_params_name_is_taken_at_its_word() -> None:
    assert reader_of(source(format="text"), b"<html>", "a.html", packed=False) == ("text", "")
    assert reader_of(source(format="media"), ROW, "a.jsonl", packed=False)[0] == "unsupported_format"
    assert reader_of(source(format="media"), PNG, "a.jsonl", packed=False) == ("media", "")


def test_the_kind_of_a_media_file() -> None:
    assert [media_kind(*x) for x in ((PNG, "a.mp3"), (b"", "a.MP3"), (b"", "a.jpg"), (b"", "a.xyz"))] == [
        "image", "audio", "image", "",
    ]  # fmt: skip
