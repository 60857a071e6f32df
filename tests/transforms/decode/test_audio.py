"""Sound: exact pieces, whole or broken files, no process left behind."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clips import AUDIO, lavfi, make, samples

from transforms.decode import audio
from transforms.decode.audio import AudioSegment, decode_audio
from transforms.decode.config import AudioConfig
from transforms.decode.errors import MediaError


def decode(path: Path, config: AudioConfig = AUDIO) -> tuple[list[AudioSegment], MediaError | None]:
    """Returns the pieces, and the error that came after them."""
    found: list[AudioSegment] = []
    try:
        for segment in decode_audio(path, config):
            found.append(segment)
    except MediaError as error:
        return found, error
    return found, None


def tone(path: Path, seconds: float, *args: str, rate: int = 16_000) -> Path:
    return make(path, *lavfi(f"sine=frequency=440:sample_rate={rate}:duration={seconds}"), *args)


@pytest.mark.parametrize("change", [{"sample_rate_hz": 10}, {"segment_s": 0.1}, {"timeout_s": 0.0}])
def test_config_names_what_is_wrong(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(AUDIO, **change)


def test_sixteen_kilohertz_mono_comes_through_untouched(tmp_path: Path) -> None:
    values = np.random.default_rng(7).integers(-(2**15), 2**15, 16_000).astype(np.int16)
    (tmp_path / "a.wav").write_bytes(audio.wav(values.tobytes(), 16_000))
    (segment,), error = decode(tmp_path / "a.wav")
    assert error is None
    assert samples(segment.wav).tolist() == values.tolist()
    assert (segment.index, segment.start_s, segment.duration_s) == (0, 0.0, 1.0)


def test_pieces_join_to_the_whole(tmp_path: Path) -> None:
    path = tone(tmp_path / "a.wav", 2.5)
    (whole,), _ = decode(path)
    pieces, error = decode(path, replace(AUDIO, segment_s=1.0))
    assert error is None
    assert [(p.index, p.start_s, p.duration_s) for p in pieces] == [(0, 0.0, 1.0), (1, 1.0, 1.0), (2, 2.0, 0.5)]
    assert np.concatenate([samples(p.wav) for p in pieces]).tolist() == samples(whole.wav).tolist()


@pytest.mark.parametrize(("seconds", "wanted"), [(2.0, [1.0, 1.0]), (2.06, [1.0, 1.06]), (2.2, [1.0, 1.0, 0.2])])
def test_a_codecs_padding_is_no_piece_of_its_own(tmp_path: Path, seconds: float, wanted: list[float]) -> None:
    pieces, _ = decode(tone(tmp_path / "a.wav", seconds), replace(AUDIO, segment_s=1.0))
    assert [p.duration_s for p in pieces] == pytest.approx(wanted)


def test_pieces_of_a_length_that_is_no_whole_sample_leave_no_gap(tmp_path: Path) -> None:
    path = tone(tmp_path / "a.wav", 1.0)
    pieces, _ = decode(path, replace(AUDIO, segment_s=0.33333))
    assert sum(len(samples(p.wav)) for p in pieces) == 16_000
    assert pieces[1].start_s == pytest.approx(0.33333, abs=1 / 16_000)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.wav", ["-c:a", "pcm_u8"]), ("a.wav", ["-c:a", "pcm_f32le", "-ac", "2"]), ("a.flac", ["-ar", "44100"]),
        ("a.m4a", ["-c:a", "aac"]), ("a.mka", ["-c:a", "mp2", "-ar", "48000"]),
    ],
)  # fmt: skip
def test_any_codec_sounds_the_same(tmp_path: Path, name: str, options: list[str]) -> None:
    (segment,), error = decode(tone(tmp_path / name, 1.0, *options))
    heard = samples(segment.wav)[2000:14_000].astype(float)
    assert error is None
    assert segment.duration_s == pytest.approx(1.0, abs=0.1)
    peak = np.argmax(np.abs(np.fft.rfft(heard))) * 16_000 / len(heard)
    assert peak == pytest.approx(440, abs=2)


def test_channels_are_mixed(tmp_path: Path) -> None:
    source = "aevalsrc='0.5*sin(2*PI*440*t)|0':d=1:s=16000"  # the right one is silent
    (segment,), _ = decode(make(tmp_path / "a.wav", *lavfi(source)))
    assert np.abs(samples(segment.wav)).max() == pytest.approx(0.25 * 2**15, rel=0.05)


def test_sound_is_found_behind_pictures(tmp_path: Path) -> None:
    clip = make(tmp_path / "a.mkv", *lavfi("testsrc=d=1:s=32x24"), *lavfi("sine=d=1"), "-c:v", "mpeg4", "-c:a", "flac")
    (segment,), error = decode(clip)
    assert (segment.duration_s, error) == (1.0, None)


def test_pictures_alone_are_no_stream(tmp_path: Path) -> None:
    found, error = decode(make(tmp_path / "a.mkv", *lavfi("testsrc=d=1:s=32x24"), "-c:v", "mpeg4"))
    assert (found, error.reason) == ([], "no_stream")


def test_a_truncated_file_gives_what_decodes_and_then_fails(tmp_path: Path) -> None:
    path = make(tmp_path / "a.flac", *lavfi("anoisesrc=d=4:r=16000:seed=7"), "-c:a", "flac")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found, error = decode(path, replace(AUDIO, segment_s=1.0))
    assert error.reason == "broken_audio"
    assert "truncated" in error.message
    assert error.tail.startswith("[flac] [error]")
    assert 1.5 < sum(s.duration_s for s in found) < 2.5
    assert "@ 0x" not in error.tail
    assert str(tmp_path) not in error.tail


def test_a_header_that_promises_too_much_is_no_error(tmp_path: Path) -> None:
    path = tone(tmp_path / "a.wav", 4.0)
    path.write_bytes(path.read_bytes()[:64_044])
    (segment,), error = decode(path)
    assert (segment.duration_s, error) == (pytest.approx(2.0, abs=0.01), None)


@pytest.mark.parametrize("data", [b"", b"RIFF\x24\x00\x00\x00WAVE", b"ID3\x03" + bytes(500), b"\xff\xfb\x90\x64" * 20])
def test_what_is_no_sound(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.mp3").write_bytes(data)
    found, error = decode(tmp_path / "a.mp3")
    assert (found, error.reason) == ([], "broken_audio" if data else "empty_file")


def test_an_empty_track_is_broken(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(audio.wav(b"", 16_000))
    found, error = decode(tmp_path / "a.wav")
    assert (found, error.reason) == ([], "broken_audio")


def test_the_timeout_is_told(tmp_path: Path) -> None:
    path = tone(tmp_path / "a.wav", 1.0)
    info = audio.probe(path, 30.0)
    with pytest.raises(MediaError) as error:
        list(decode_audio(path, replace(AUDIO, timeout_s=1e-9), info=info))
    assert error.value.reason == "timeout"


def test_stopping_early_ends_the_process(tmp_path: Path) -> None:
    import psutil

    path = tone(tmp_path / "a.wav", 600.0)
    stream = decode_audio(path, replace(AUDIO, segment_s=1.0))
    next(stream)
    children = [c for c in psutil.Process().children() if "ffmpeg" in c.name()]
    assert len(children) == 1
    stream.close()
    assert not children[0].is_running()


def test_an_awkward_name_is_only_a_name(tmp_path: Path) -> None:
    path = tone(tmp_path / "a.wav", 1.0).rename(tmp_path / "-f %d ü 'q' http:x.wav")
    assert len(decode(path)[0]) == 1


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    path = tone(tmp_path / "a.m4a", 1.0, "-c:a", "aac", rate=44_100)
    assert decode(path) == decode(path)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("sine_mono_s32_8000.wav", 4.0), ("mut_silence-44-s.flac", 3.685), ("ft_fixture.amr", 0.84),
        ("scipy_test-44100Hz-le-1ch-4bytes-early-eof.wav", 0.0054), ("captions/1000268201_693b08cb0e.wav", 5.376),
        ("nasa_audio_8k.mp3", 13.056), ("dj_audio3.ogg", 119.876),
    ],
)  # fmt: skip
def test_real_sound(shared: Path, name: str, seconds: float) -> None:
    (segment,), error = decode(shared / "audio" / name)
    assert error is None
    assert segment.duration_s == pytest.approx(seconds, abs=0.01)


@pytest.mark.parametrize("name", ["mut_silence-44-s.flac", "mut_silence-2s-PCM-16000-08-notags.wav"])
def test_real_silence_is_silent(shared: Path, name: str) -> None:
    (segment,), _ = decode(shared / "audio" / name)
    assert np.abs(samples(segment.wav)).max() <= 2


@pytest.mark.parametrize(
    ("name", "reason", "seconds"),
    [
        ("truncated.flac", "broken_audio", 3.888), ("mut_variable-block.flac", "broken_audio", 0.906),
        ("mut_ooming-header.flac", "broken_audio", 0.0), ("mut_too-short.mp3", "broken_audio", 0.0),
        ("mut_emptyfile.mp3", "empty_file", 0.0),
    ],
)  # fmt: skip
def test_real_broken_sound(shared: Path, name: str, reason: str, seconds: float) -> None:
    found, error = decode(shared / "audio" / name)
    assert error.reason == reason
    assert sum(s.duration_s for s in found) == pytest.approx(seconds, abs=0.01)
