"""A record becomes rows: the kinds of samples, ids of segments, and what a failing medium leaves."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from support.clips import AUDIO, IMAGE, VIDEO, lavfi, make, samples

from transforms.core import schemas
from transforms.decode.errors import MediaError
from transforms.ingest.rows import MakeRows, Origin, RejectRow, SampleRow, locate, storable
from transforms.readers.fields import Fields, Media

MPEG4 = ("-c:v", "mpeg4")
FASTSTART = ("-movflags", "+faststart")
ORIGIN = Origin("src", "rows/a.jsonl", "0123456789abcdef0123456789abcdef")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "rows").mkdir()
    (root / "pics").mkdir()
    Image.new("RGB", (640, 320), "red").save(root / "pics/red.png")
    Image.new("RGB", (20, 10), "blue").save(root / "rows/blue.png")
    (root / "pics/broken.jpg").write_bytes(b"\xff\xd8\xff\xe0rubbish")
    make(root / "pics/tone.wav", *lavfi("sine=d=2.5:r=16000"))
    make(
        root / "pics/clip.mkv",
        *lavfi("testsrc=d=2.5:r=4:s=64x48"),
        *lavfi("sine=d=2.5"),
        "-c:v",
        "mpeg4",
        "-c:a",
        "flac",
    )
    make(root / "pics/mute.mkv", *lavfi("testsrc=d=1:r=4:s=64x48"), *MPEG4)
    whole = make(root / "pics/long.mp4", *lavfi("testsrc=d=6:r=10:s=320x240"), *MPEG4, *FASTSTART).read_bytes()
    (root / "pics/cut.mp4").write_bytes(whole[: len(whole) * 2 // 3])
    return root


def fields(*media: Media, text: str | None = "t", own_id: str | None = None, in_messages: bool = False) -> Fields:
    return Fields(own_id, text, "good", "news", media, in_messages, 3, '{"a":1}')


def make_rows(root: Path, found: Fields, *, alone: bool = False, limit: int = 1 << 20, **video: Any) -> list[Any]:
    maker = MakeRows(root, "pics", IMAGE, replace(VIDEO, **video), replace(AUDIO, segment_s=1.0), limit, alone)
    return list(maker.rows(ORIGIN, 17, found))


def test_rows_have_the_fields_of_the_schemas() -> None:
    assert list(SampleRow._fields) == schemas.SAMPLES.names
    assert list(RejectRow._fields) == schemas.REJECTS.names


def test_a_text(root: Path) -> None:
    [row] = make_rows(root, fields())
    assert row == SampleRow(
        "0123456789abcdef-17", "src", "rows/a.jsonl", ORIGIN.digest, 17, 0, "text", "t", None, None, None, None, None,
        None, None, None, None, "good", "news", 3, '{"a":1}',
    )  # fmt: skip
    assert row._replace(text="é", meta=None).size - row._replace(text=None, meta=None).size == 2


def test_a_picture(root: Path) -> None:
    [row] = make_rows(root, fields(Media("image", "red.png"), own_id="7"))
    assert (row.sample_id, row.modality, row.text) == ("src/7", "image", "t")
    assert (row.width, row.height, row.codec, row.frames, row.image_times_s) == (640, 320, "png", None, None)
    [blob] = row.images
    assert blob["path"] == "red.png"
    with Image.open(io.BytesIO(blob["bytes"])) as picture:
        assert (picture.format, picture.size) == ("JPEG", (512, 256))
    assert row.size > len(blob["bytes"])


def test_bytes_need_no_file_and_no_path_is_absolute(root: Path) -> None:
    data = (root / "pics/red.png").read_bytes()
    [row] = make_rows(root, fields(Media("image", "gone/x.png", data)))
    assert row.images[0]["path"] == "gone/x.png"
    [row] = make_rows(root, fields(Media("image", None, data)))
    assert row.images[0]["path"] is None
    [row] = make_rows(root, fields(Media("image", str(root / "pics/red.png"))))
    assert row.images[0]["path"] == "pics/red.png"
    sounds = make_rows(root, fields(Media("audio", None, (root / "pics/tone.wav").read_bytes())))
    assert [r.segment for r in sounds] == [0, 1, 2]


def test_several_pictures_are_interleaved(root: Path) -> None:
    [row] = make_rows(root, fields(Media("image", "red.png"), Media("image", "red.png")))
    assert (row.modality, len(row.images), row.width, row.codec) == ("interleaved", 2, None, None)
    [row] = make_rows(root, fields(Media("image", "red.png"), in_messages=True))
    assert (row.modality, len(row.images), row.width) == ("interleaved", 1, 640)


def test_sound_is_cut_into_segments(root: Path) -> None:
    rows = make_rows(root, fields(Media("audio", "tone.wav"), own_id="a"))
    assert [(r.sample_id, r.segment) for r in rows] == [("src/a", 0), ("src/a-s0001", 1), ("src/a-s0002", 2)]
    assert {(r.modality, r.text, r.has_audio, r.codec, r.position) for r in rows} == {
        ("audio", "t", True, "pcm_s16le", 17)
    }
    assert [r.duration_s for r in rows] == [1.0, 1.0, 0.5]
    assert sum(len(samples(r.audio["bytes"])) for r in rows) == 40_000


def test_a_video_is_cut_into_segments(root: Path) -> None:
    rows = make_rows(root, fields(Media("video", "clip.mkv")), segment_s=2.0)
    assert [(r.modality, r.segment, r.frames, r.image_times_s) for r in rows] == [
        ("video", 0, 2, [0.0, 1.0]), ("video", 1, 1, [2.0]),
    ]  # fmt: skip
    assert {(r.width, r.height, r.codec, r.has_audio) for r in rows} == {(64, 48, "mpeg4", True)}
    assert all(len(r.images) == r.frames and r.audio["path"] == "clip.mkv" for r in rows)
    [row] = make_rows(root, fields(Media("video", "mute.mkv")))
    assert (row.has_audio, row.audio) == (False, None)


def test_mixed_media_are_interleaved_the_pictures_first(root: Path) -> None:
    media = (Media("video", "mute.mkv"), Media("audio", "tone.wav"), Media("image", "red.png"))
    rows = make_rows(root, fields(*media))
    assert {r.modality for r in rows} == {"interleaved"}
    found = [(r.segment, len(r.images or ()), r.audio is not None) for r in rows]
    assert found == [(0, 2, False), (1, 0, True), (2, 0, True), (3, 0, True)]
    assert rows[0].image_times_s == [None, 0.0]


def test_a_lone_file_is_what_its_streams_are(root: Path) -> None:
    sound = make(root / "pics/sound.mp4", *lavfi("sine=d=0.5:r=16000"), "-c:a", "aac")
    [row] = make_rows(root, fields(Media("video", str(sound)), text=None), alone=True)
    assert (row.modality, row.codec, row.text) == ("audio", "aac", None)
    [row] = make_rows(root, fields(Media("audio", str(root / "pics/mute.mkv"))), alone=True)
    assert row.modality == "video"


FAULTS: list[tuple[tuple[Media, ...], str, str]] = [
    ((Media("image", "broken.jpg"),), "broken_image", ""),
    ((Media("image", "gone.jpg"),), "missing_media", "gone.jpg: No such file"),
    ((Media("image", "https://x.org/a.jpg"),), "missing_media", "not downloaded"),
    ((Media("image", "data:image/png;base64,AAAA"),), "missing_media", "not downloaded"),
    ((Media("image", "../pics"),), "missing_media", "not a file"),
    ((Media("image", "/dev/zero"),), "missing_media", "not a file"),
    ((Media("image", "a\0b"),), "missing_media", "null"),
    ((Media("image", "x" * 5000),), "missing_media", "too long"),
    ((Media("image", "red.png/x"),), "missing_media", "Not a directory"),
    ((Media("image", None, b""),), "empty_file", ""),
    ((Media("audio", "mute.mkv"),), "no_stream", ""),
    ((Media("video", "tone.wav"),), "no_stream", ""),
    ((Media("video", "broken.jpg"),), "no_stream", ""),
    ((Media("image", "red.png"), Media("image", "broken.jpg")), "broken_image", ""),
]


@pytest.mark.parametrize(("media", "reason", "words"), FAULTS, ids=lambda v: str(v)[:50])
def test_a_medium_that_fails_makes_the_row_a_reject(
    root: Path, media: tuple[Media, ...], reason: str, words: str
) -> None:
    [row] = make_rows(root, fields(*media))
    assert isinstance(row, RejectRow)
    assert (row.reason, row.position, row.source_digest, row.partial) == (reason, 17, ORIGIN.digest, False)
    assert words in row.error
    assert "\0" not in row.error


def test_a_picture_beyond_the_limit(root: Path) -> None:
    [row] = make_rows(root, fields(Media("image", "red.png")), limit=100)
    assert row.reason == "too_large"


def test_what_decodes_before_the_damage_stays(root: Path) -> None:
    *rows, reject = make_rows(root, fields(Media("video", "cut.mp4")), segment_s=1.0)
    assert len(rows) >= 2
    assert all(isinstance(r, SampleRow) for r in rows)
    assert (reject.reason, reject.partial) == ("broken_video", True)
    assert reject.tail


def test_segments_of_one_row_never_have_the_id_of_another() -> None:
    ids = [ORIGIN.sample_id(i, 0) for i in ("a", "a-s0000", "a-s0001", "a-s0000-s0000", "a-s1", "s0001")]
    assert len(set(ids)) == len(ids)
    assert ids[1:3] == ["src/a-s0000-s0000", "src/a-s0001-s0000"]
    assert not {f"{i}-s0001" for i in ids} & set(ids)


def test_paths_are_searched_below_media_root_or_beside_the_rows(root: Path) -> None:
    assert locate(root, None, "rows/a.jsonl", "blue.png") == root / "rows/blue.png"
    assert locate(root, None, "rows/a.jsonl", "../pics/red.png").samefile(root / "pics/red.png")
    assert locate(root, ".", "rows/a.jsonl", "pics/red.png") == root / "pics/red.png"
    assert locate(root, None, "rows", "blue.png") == root / "rows/blue.png"
    assert locate(root, None, "rows/a.jsonl", str(root / "pics/red.png")) == root / "pics/red.png"
    with pytest.raises(MediaError):
        locate(root, "pics", "rows/a.jsonl", "blue.png")


def test_storable_text() -> None:
    assert storable("a\udcffb\0é") == "a\\udcffbé"
