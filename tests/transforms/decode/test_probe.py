"""What a file is: by its first bytes, then by its streams."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.clips import lavfi, make

from transforms.decode.errors import MediaError
from transforms.decode.probe import Kind, probe, sniff

ROW = b'{"id": 1, "text": "a"}'


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b"", "a.jpg", "empty"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a.tiff", "image"),
        (b"\x89PNG\r\n\x1a\n", "a", "image"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a.wav", "image"),
        (b"\x00\x00\x00\x20ftypavif\x00\x00\x00\x00", "a.mp4", "image"),
        (b"P6\n# by hand\n4 3\n255\n", "a.ppm", "image"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "a.mp3", "audio"),
        (b"ID3\x03\x00\x00", "a.wav", "audio"),
        (b"\xff\xfb\x90\x64", "a.wav", "audio"),
        (b"\xff\xf1\x50\x80", "a", "audio"),
        (b"fLaC\x00\x00\x00\x22", "a", "audio"),
        (b"OggS\x00\x02", "a.ogg", "video"),
        (b"\x00\x00\x00\x1cftypM4A ", "a.m4a", "video"),
        (b"\x00\x0b\x2a\x00mdat", "a.mov", "video"),
        (b"\x1a\x45\xdf\xa3", "a.webm", "video"),
        (b"PAR1\x15\x04", "a.bin", "parquet"),
        (b"\x1f\x8b\x08", "a.jsonl.gz", "gzip"),
        (b"\x28\xb5\x2f\xfd", "a.jsonl", "zstd"),
        (ROW + b"\n" + ROW + b"\n", "rows", "jsonl"),
        (ROW + b"\n" + ROW + b"\n", "rows.json", "jsonl"),
        (ROW + b"\n", "one.json", "json"),
        (ROW[:-4], "cut_in_the_head", "jsonl"),
        (b"\xef\xbb\xbf" + ROW + b"\n", "rows.txt", "jsonl"),
        (json.dumps({"a": [1, 2]}, indent=2).encode(), "config", "json"),
        (b"[1, 2]", "a.json", "json"),
        (b"[1] A footnote.", "a.txt", "text"),
        (b"{not json, but braces}", "a.txt", "text"),
        (b"not json at all\n", "rows.jsonl", "jsonl"),
        (b"Get free things, ID3 tags, P1 priority, MAC addresses", "a", "text"),
        ("naïve café, 中文".encode()[:-1], "a", "text"),
        ("text in UTF-16".encode("utf-16"), "a", "text"),
        ("caf\xe9s".encode("latin-1"), "a.txt", "text"),
        ("caf\xe9s".encode("latin-1"), "a", "unknown"),
        (b"\x00\x01\x02\x03", "a.txt", "unknown"),
        (b"PK\x03\x04", "a.zip", "unknown"),
        (b"WARC/1.1\r\n", "a.txt", "warc"),
        (b"WARCRAFT", "a.txt", "text"),
        (b"\xff\xd8\xff.jpg".ljust(257, b"\0") + b"ustar  \x00", "a.jpg", "tar"),
        (b"\n<!DOCTYPE HTML PUBLIC", "a", "html"),
        ("<html>caf\xe9".encode("latin-1"), "a", "html"),
        (b'\xef\xbb\xbf<?xml version="1.0"?><!-- a --><html xmlns="x">', "a", "html"),
        (b"<htmlx>", "a", "text"),
    ],
)
def test_content_decides(head: bytes, name: str, kind: Kind) -> None:
    assert sniff(head, name) == kind


@given(st.binary(max_size=300), st.text(max_size=20))
def test_sniff_answers_to_anything(head: bytes, name: str) -> None:
    assert isinstance(sniff(head, name), str)


@given(st.text(alphabet=st.characters(codec="ascii", min_codepoint=32, max_codepoint=122), min_size=1))
def test_printable_prose_is_text(text: str) -> None:
    assert sniff(("It says: " + text).encode(), "a") == "text"


def test_real_files_are_what_their_folder_says(shared: Path) -> None:
    wanted = {"images": {"image"}, "video": {"video"}, "audio": {"audio", "video", "empty"}}
    for folder, kinds in wanted.items():
        files = [p for p in (shared / folder).rglob("*") if p.is_file()]
        assert {sniff(p.read_bytes()[:4096], p.name) for p in files} <= kinds


def test_cover_art_is_no_video(tmp_path: Path) -> None:
    art = tmp_path / "art.jpg"
    Image.new("RGB", (16, 16), "red").save(art)
    song = make(
        tmp_path / "song.flac", *lavfi("sine=d=1"), "-i", str(art), "-map", "0", "-map", "1", "-c:v", "copy",
        "-disposition:v", "attached_pic",
    )  # fmt: skip
    info = probe(song, 30.0)
    assert (info.kind, info.video, info.has_audio, info.codec) == ("audio", None, True, "flac")
    assert info.duration_s == pytest.approx(1.0)


def test_the_largest_picture_is_chosen(tmp_path: Path) -> None:
    sources = [*lavfi("testsrc=d=1:s=32x24"), *lavfi("testsrc=d=1:s=64x48"), *lavfi("sine=d=1")]
    clip = make(
        tmp_path / "two.mkv", *sources, "-map", "0", "-map", "1", "-map", "2", "-c:v", "mpeg4", "-c:a", "pcm_s16le"
    )
    info = probe(clip, 30.0)
    assert info.video is not None
    assert (info.kind, info.video.index, info.video.width, info.video.height) == ("video", 1, 64, 48)
    assert info.audio is not None
    assert (info.audio.index, info.audio.codec) == (2, "pcm_s16le")


def test_square_pixels_and_upright(tmp_path: Path) -> None:
    wide = make(tmp_path / "wide.mkv", *lavfi("testsrc=d=1:s=64x48,setsar=2"), "-c:v", "mpeg4")
    turned = make(tmp_path / "turned.mov", "-display_rotation", "90", "-i", str(wide), "-c", "copy")
    for path, size, rotation in ((wide, (128, 48), 0), (turned, (48, 128), 270)):
        info = probe(path, 30.0)
        assert info.video is not None
        assert ((info.video.width, info.video.height), info.rotation) == (size, rotation)


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"", "a.mp4", "empty_file"),
        (b"\x00\x00\x00\x18ftypisom" + b"\x00" * 64, "a.mp4", "broken_video"),
        (b"ID3\x03" + b"x" * 64, "a.mp3", "broken_audio"),
        (b"RIFF\x24\x00\x00\x00WAVE", "a.wav", "broken_audio"),
    ],
)
def test_what_cannot_be_opened_says_so(tmp_path: Path, data: bytes, name: str, reason: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(MediaError) as error:
        probe(path, 30.0)
    assert error.value.reason == reason
    assert str(tmp_path) not in error.value.tail


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="unreadable_file: the file cannot be opened: No such file"):
        probe(tmp_path / "none.mp4", 30.0)


def test_subtitles_alone_are_no_stream(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nhello\n")
    clip = make(tmp_path / "subs.mkv", "-i", str(tmp_path / "a.srt"))
    with pytest.raises(MediaError, match="no_stream"):
        probe(clip, 30.0)


def test_a_playlist_reads_no_other_file(tmp_path: Path) -> None:
    make(tmp_path / "secret.ts", *lavfi("testsrc=d=1:s=32x24"), "-c:v", "mpeg2video")
    playlist = tmp_path / "list.m3u8"
    playlist.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://example.com/a.ts\n#EXT-X-ENDLIST\n")
    assert sniff(playlist.read_bytes(), playlist.name) == "text"
    with pytest.raises(MediaError):
        probe(playlist, 30.0)


@pytest.mark.parametrize(
    ("name", "size", "rotation", "streams"),
    [
        ("ios9_rotated.mov", (720, 1280), 90, (0, 1)),
        ("nasa_13013.mp4", (480, 270), 0, (3, 4)),
        ("daft_sample.mp4", (192, 144), 0, (1, 0)),
        ("weird_aspect.mpg", (501, 288), 0, (0, 1)),
    ],
)
def test_real_videos(shared: Path, name: str, size: tuple[int, int], rotation: int, streams: tuple[int, int]) -> None:
    info = probe(shared / "video" / name, 30.0)
    assert info.video is not None
    assert info.audio is not None
    assert (info.video.width, info.video.height) == size
    assert (info.rotation, (info.video.index, info.audio.index)) == (rotation, streams)


def test_a_real_cover_is_no_video(shared: Path) -> None:
    assert probe(shared / "audio/mut_silence-44-s.flac", 30.0).kind == "audio"
    assert probe(shared / "video/no_duration.webm", 30.0).duration_s is None
