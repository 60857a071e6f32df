"""Video: frames by presentation time, upright, with sound in step, in bounded segments."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clips import AUDIO, IMAGE, VIDEO, lavfi, make, pixels, samples

from transforms.decode import tool
from transforms.decode.config import VideoConfig
from transforms.decode.errors import MediaError
from transforms.decode.video import VideoSegment, decode_video

MPEG4 = ("-c:v", "mpeg4", "-q:v", "2")


def decode(path: Path, config: VideoConfig = VIDEO) -> tuple[list[VideoSegment], MediaError | None]:
    """Returns the segments, and the error that came after them."""
    found: list[VideoSegment] = []
    try:
        for segment in decode_video(path, config, IMAGE, AUDIO):
            found.append(segment)
    except MediaError as error:
        return found, error
    return found, None


def times(found: list[VideoSegment]) -> list[float]:
    return [t for s in found for t in s.times_s]


def presented(path: Path) -> list[float]:
    """Returns when each frame is shown since the first, asked of ffprobe: the slow, obvious way."""
    args = [tool.ffprobe(), "-v", "error", "-select_streams", "v:0", "-show_frames", "-of", "json", str(path)]
    frames = json.loads(subprocess.run(args, capture_output=True, check=True).stdout)["frames"]
    shown = [float(f["pts_time"]) for f in frames]
    return [t - shown[0] for t in shown]


def first_of_each_interval(shown: list[float], fps: float) -> list[float]:
    """Returns the earliest time in each interval of 1/fps seconds; a millisecond early is in time."""
    found: dict[int, float] = {}
    for time_s in sorted(shown):
        found.setdefault(int((time_s + 0.001) * fps), time_s)
    return list(found.values())


def number(data: bytes) -> int:
    """Returns the frame's number n, which `counting` has painted as gray 16 + 2n."""
    return round((pixels(data).mean() - 16) / 2)


def counting(path: Path, rate: int, frames: int, *args: str, extra: str = "") -> Path:
    """Makes a lossless clip whose frame n is gray 16 + 2n."""
    source = f"color=black:s=32x24:r={rate}:d={frames / rate},format=gray,geq=lum='16+2*N'{extra}"
    return make(path, *lavfi(source), "-c:v", "ffv1", "-pix_fmt", "gray", "-fps_mode", "passthrough", *args)


@pytest.mark.parametrize("change", [{"fps": 0.0}, {"segment_s": 0.1}, {"timeout_s": 0.0}, {"max_side": 0}])
def test_config_names_what_is_wrong(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(VIDEO, **change)


@pytest.mark.parametrize("fps", [0.5, 1.0, 3.0, 10.0, 30.0])
@pytest.mark.parametrize("rate", [10, 30])
def test_constant_rate(tmp_path: Path, fps: float, rate: int) -> None:
    path = counting(tmp_path / "a.mkv", rate, 3 * rate)
    found, error = decode(path, replace(VIDEO, fps=fps))
    wanted = first_of_each_interval(presented(path), fps)
    assert error is None
    assert times(found) == pytest.approx(wanted, abs=1e-6)
    assert [number(f) for f in found[0].frames] == [round(t * rate) for t in wanted]
    assert len(wanted) == min(3 * fps, 3 * rate) if fps >= 1 else 2


@pytest.mark.parametrize("start", [0, 7])
def test_variable_rate_goes_by_time_not_by_number(tmp_path: Path, start: float) -> None:
    # Frame n is shown at start + n²/100 s: ten frames in the first second, few later.
    path = counting(tmp_path / "a.mkv", 25, 50, extra=f",setpts='({start}+N*N/100)/TB'")
    found, error = decode(path)
    wanted = first_of_each_interval(presented(path), 1.0)
    assert error is None
    assert times(found) == pytest.approx(wanted, abs=1e-6)
    assert [number(f) for f in found[0].frames] == [round(10 * t**0.5) for t in wanted]
    assert len(wanted) == 25


def test_a_long_gap_has_no_frames_and_no_rows(tmp_path: Path) -> None:
    path = counting(tmp_path / "a.mkv", 10, 20, extra=",setpts='if(lt(N,10),N/10,N/10+100)/TB'")
    found, _ = decode(path, replace(VIDEO, segment_s=10.0))
    assert [(s.index, s.start_s, s.times_s) for s in found] == [(0, 0.0, [0.0]), (10, 100.0, [101.0])]


@pytest.mark.parametrize("segment_s", [60.0, 2.0, 1.5])
def test_segments_join_to_the_whole(tmp_path: Path, segment_s: float) -> None:
    path = counting(tmp_path / "a.mkv", 10, 65)
    whole = decode(path)[0][0]
    found, error = decode(path, replace(VIDEO, segment_s=segment_s))
    assert error is None
    assert times(found) == whole.times_s == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert [f for s in found for f in s.frames] == whole.frames
    assert sum(s.duration_s for s in found) == pytest.approx(6.5)
    assert all(s.start_s <= t < s.start_s + segment_s for s in found for t in s.times_s)


@pytest.mark.parametrize(
    ("container", "codecs"),
    [
        ("mkv", [*MPEG4, "-c:a", "pcm_s16le"]), ("mp4", [*MPEG4, "-c:a", "aac"]),
        ("ts", ["-c:v", "mpeg2video", "-c:a", "mp2"]), ("flv", ["-c:v", "flv1", "-c:a", "pcm_s16le", "-ar", "44100"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("video_at", "sound_at"), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
def test_sound_keeps_step(tmp_path: Path, container: str, codecs: list[str], video_at: float, sound_at: float) -> None:
    beep = "aevalsrc='sin(2*PI*440*t)*between(t,2.5,2.6)':d=5:s=44100"
    path = make(
        tmp_path / f"a.{container}", "-itsoffset", str(video_at), *lavfi("testsrc=d=5:r=25:s=64x48"),
        "-itsoffset", str(sound_at), *lavfi(beep), *codecs,
    )  # fmt: skip
    found, error = decode(path, replace(VIDEO, segment_s=2.0))
    heard = np.concatenate([samples(s.wav) for s in found if s.wav]).astype(float)
    assert error is None
    assert np.flatnonzero(np.abs(heard) > 3000)[0] / 16_000 == pytest.approx(2.5 + sound_at - video_at, abs=0.01)
    assert all(len(samples(s.wav)) == 32_000 for s in found[:2])


def test_sound_that_outlasts_the_pictures_keeps_the_last_one(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mkv", *lavfi("testsrc=d=1:r=10:s=64x48"), *lavfi("sine=d=5"), *MPEG4, "-c:a", "pcm_s16le")
    found, _ = decode(path, replace(VIDEO, segment_s=2.0))
    assert [(s.index, s.times_s, round(s.duration_s, 2)) for s in found] == [
        (0, [0.0], 2.0), (1, [2.0], 2.0), (2, [4.0], 1.0)
    ]  # fmt: skip
    assert found[0].frames == found[1].frames == found[2].frames


def test_pictures_that_outlast_the_sound(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mkv", *lavfi("testsrc=d=5:r=10:s=64x48"), *lavfi("sine=d=1"), *MPEG4, "-c:a", "pcm_s16le")
    found, _ = decode(path, replace(VIDEO, segment_s=2.0))
    assert [(s.has_audio, len(samples(s.wav)) if s.wav else None) for s in found] == [
        (True, 16_000), (False, None), (False, None)
    ]  # fmt: skip


def test_a_silent_film_has_no_wav(tmp_path: Path) -> None:
    (segment,), error = decode(make(tmp_path / "a.mkv", *lavfi("testsrc=d=2:r=10:s=64x48"), *MPEG4))
    assert (segment.wav, segment.has_audio, error) == (None, False, None)
    assert (segment.codec, segment.duration_s) == ("mpeg4", pytest.approx(2.0))


def test_turned_and_stretched_pictures_come_upright_and_square(tmp_path: Path) -> None:
    half = "color=red:s=64x48:d=1:r=5,drawbox=w=32:color=blue:t=fill,setsar=2"  # blue on the left
    flat = make(tmp_path / "flat.mkv", *lavfi(half), *MPEG4)
    turned = make(tmp_path / "turned.mov", "-display_rotation", "90", "-i", str(flat), "-c", "copy")
    (segment,), _ = decode(flat)
    assert (segment.width, segment.height) == (128, 48)
    assert pixels(segment.frames[0]).shape == (48, 128, 3)
    (segment,), _ = decode(turned)
    picture = pixels(segment.frames[0])
    assert (segment.width, segment.height, picture.shape) == (48, 128, (128, 48, 3))
    assert picture[120, 24, 2] > 200  # turned to the left: blue is at the bottom
    assert picture[8, 24, 0] > 200


def test_frames_are_shrunk_never_enlarged(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mkv", *lavfi("testsrc=d=1:r=5:s=320x200"), *MPEG4)
    (segment,), _ = decode(path, replace(VIDEO, max_side=64))
    assert (segment.width, segment.height, pixels(segment.frames[0]).shape) == (320, 200, (40, 64, 3))
    assert pixels(decode(path)[0][0].frames[0]).shape == (200, 320, 3)


def test_one_frame(tmp_path: Path) -> None:
    (segment,), error = decode(counting(tmp_path / "a.mkv", 10, 1))
    assert (segment.times_s, error) == ([0.0], None)
    assert segment.duration_s == pytest.approx(0.1, abs=0.01)


def test_a_stream_that_changes_its_size_plays_on(tmp_path: Path) -> None:
    small = make(tmp_path / "s.ts", *lavfi("testsrc=d=2.5:r=10:s=64x48"), "-c:v", "mpeg2video")
    large = make(
        tmp_path / "l.ts", *lavfi("testsrc=d=2.5:r=10:s=128x96"), "-c:v", "mpeg2video", "-output_ts_offset", "2.5"
    )
    path = tmp_path / "both.ts"
    path.write_bytes(small.read_bytes() + large.read_bytes())
    found, _ = decode(path)
    assert len(times(found)) == 5
    assert times(found) == sorted(times(found))
    assert {pixels(f).shape for s in found for f in s.frames} == {pixels(found[0].frames[0]).shape}


def test_a_bad_packet_in_a_playable_file_is_no_error(tmp_path: Path) -> None:
    path = make(tmp_path / "a.avi", *lavfi("testsrc2=d=4:r=10:s=160x120"), "-c:v", "mpeg4", "-g", "5")
    data = bytearray(path.read_bytes())
    middle = data.index(b"00dc", len(data) // 2) + 8
    data[middle : middle + 60] = b"\xff" * 60
    path.write_bytes(data)
    found, error = decode(path)
    assert error is None
    assert times(found) == pytest.approx([0.0, 1.0, 2.0, 3.0])


def test_a_truncated_file_gives_what_decodes_and_then_fails(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", *lavfi("testsrc2=d=8:r=10:s=160x120"), "-c:v", "mpeg4", "-movflags", "+faststart")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found, error = decode(path, replace(VIDEO, segment_s=2.0))
    assert error.reason == "broken_video"
    assert "truncated" in error.message
    assert len(found) >= 2
    assert found[0].times_s == [0.0, 1.0]
    assert str(tmp_path) not in error.tail + error.message


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_file_without_its_index_is_an_error(tmp_path: Path, share: float) -> None:
    path = make(tmp_path / "a.mp4", *lavfi("testsrc2=d=2:r=10:s=64x48"), "-c:v", "mpeg4")
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    found, error = decode(path)
    assert (found, error.reason) == ([], "broken_video" if share else "empty_file")


def test_sound_alone_is_no_stream(tmp_path: Path) -> None:
    found, error = decode(make(tmp_path / "a.mka", *lavfi("sine=d=1"), "-c:a", "flac"))
    assert (found, error.reason) == ([], "no_stream")


def test_a_huge_frame_is_refused_by_its_header(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mkv", *lavfi("color=red:s=320x200:d=1:r=5"), *MPEG4)
    with pytest.raises(MediaError, match="too_many_pixels: a frame of 320x200, the limit is 60000 pixels"):
        list(decode_video(path, VIDEO, replace(IMAGE, max_pixels=60_000), AUDIO))


def test_stopping_early_ends_both_processes(tmp_path: Path) -> None:
    import psutil

    path = make(
        tmp_path / "a.mkv", *lavfi("testsrc=d=60:r=25:s=320x240"), *lavfi("sine=d=60"), *MPEG4, "-c:a", "pcm_s16le"
    )
    stream = decode_video(path, replace(VIDEO, segment_s=1.0, fps=25.0), IMAGE, AUDIO)
    next(stream)
    children = [c for c in psutil.Process().children() if "ffmpeg" in c.name()]
    assert len(children) == 2
    stream.close()
    assert not any(c.is_running() for c in children)


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", *lavfi("testsrc2=d=3:r=10:s=700x400"), *lavfi("sine=d=3"), *MPEG4, "-c:a", "aac")
    assert decode(path) == decode(path)


@pytest.mark.parametrize(
    ("name", "frames", "size", "seconds", "sound"),
    [
        ("ios9_rotated.mov", 1, (720, 1280), 0.488, True), ("nasa_13013.mp4", 13, (480, 270), 13.056, True),
        ("no_duration.webm", 5, (1280, 720), 4.938, True), ("bitmap_1x1.mp4", 5, (1, 1), 5.0, False),
        ("weird_aspect.mpg", 2, (501, 288), 1.48, True), ("one_frame_minimal.mp4", 1, (320, 240), 0.043, True),
        ("ft_fixture.mov", 1, (268, 156), 0.083, False), ("awesome_movie.mov", 8, (640, 480), 7.56, True),
        ("h265_10bits.mp4", 1, (200, 200), 1.0, False), ("skv_carphone_pristine.mp4", 4, (193, 144), 4.004, False),
        ("ft_fixture.wmv.asf", 1, (640, 356), 0.0, True), ("ft_fixture.flv", 1, (268, 156), 0.717, False),
    ],
)  # fmt: skip
def test_real_videos(shared: Path, name: str, frames: int, size: tuple[int, int], seconds: float, sound: bool) -> None:
    (segment,), error = decode(shared / "video" / name)
    assert error is None
    assert (len(segment.frames), (segment.width, segment.height), segment.has_audio) == (frames, size, sound)
    assert segment.duration_s == pytest.approx(seconds, abs=0.02)


@pytest.mark.parametrize("name", ["var_fps_video.mp4", "awesome_movie.mov", "chaplin.mp4"])
@pytest.mark.parametrize("fps", [1.0, 4.0])
def test_real_times(shared: Path, name: str, fps: float) -> None:
    found, _ = decode(shared / "video" / name, replace(VIDEO, fps=fps))
    assert times(found) == pytest.approx(first_of_each_interval(presented(shared / "video" / name), fps), abs=1e-5)


def test_a_real_minute_becomes_two_rows(shared: Path) -> None:
    found, error = decode(shared / "video/sync_test.mkv")
    assert error is None
    assert [(s.index, len(s.frames), s.start_s) for s in found] == [(0, 60, 0.0), (1, 4, 60.0)]


@pytest.mark.parametrize(
    ("name", "reason", "frames"),
    [
        ("truncated_faststart.mp4", "broken_video", 6), ("truncated_no_moov.mp4", "broken_video", 0),
        ("broken.mp4", "broken_video", 0), ("ft_fixture-isom.mp4", "broken_video", 0),
    ],
)  # fmt: skip
def test_real_broken_videos(shared: Path, name: str, reason: str, frames: int) -> None:
    found, error = decode(shared / "video" / name)
    assert (error.reason, len(times(found))) == (reason, frames)


def test_av1_decodes_or_says_that_this_ffmpeg_cannot(shared: Path) -> None:
    found, error = decode(shared / "video/tiny_av1.mp4")
    if error:
        assert (error.reason, error.message) == ("unsupported_format", "this build of ffmpeg has no decoder for av1")
    else:
        assert (found[0].width, found[0].height) == (64, 64)
