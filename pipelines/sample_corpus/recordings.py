"""Computed videos and sounds from ffmpeg's generators, byte for byte the same in every run, and broken ones."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pipelines.sample_corpus.files import MediaFile
from scoring.core.errors import ToolError
from transforms.decode import tool

_TIMEOUT_S = 120.0
# What would make two runs differ: time stamps, library versions, threads.
_EXACT = ("-threads", "1", "-flags", "+bitexact", "-fflags", "+bitexact", "-map_metadata", "-1")
_READ_EXACTLY = ("-nostdin", "-hide_banner", "-loglevel", "error", "-y")
_MPEG4 = ("-c:v", "mpeg4", "-q:v", "6", "-g", "25")


class Film(NamedTuple):
    """A video: generators of its pictures and of its sound, with places for `_filled`."""

    name: str
    picture: str
    sound: str | None
    codecs: tuple[str, ...]
    caption: str


class Sound(NamedTuple):
    """A sound: its generator and its codec."""

    name: str
    source: str
    codecs: tuple[str, ...]
    caption: str


_FILMS = (
    Film(
        "clock.mp4",
        "testsrc=s=128x96:r=2:d={minute}",
        "sine=f=330:r=16000:d={minute}",
        (*_MPEG4, "-c:a", "aac", "-b:a", "24k"),
        "A test pattern whose clock runs for more than a minute, with a steady tone.",
    ),
    Film(
        "fractal.mkv",
        "mandelbrot=s=192x144:r=5:start_scale={scale},trim=duration=6",
        None,
        _MPEG4,
        "A slow flight into the edge of the Mandelbrot set.",
    ),
    Film(
        "life.avi",
        "life=s=160x120:mold=10:r=8:ratio=0.4:seed={seed}:death_color=navy:life_color=lime,trim=duration=5",
        "anoisesrc=color=pink:seed={seed}:amplitude=0.2:r=16000:d=5",
        ("-c:v", "mjpeg", "-c:a", "pcm_s16le"),
        "Green cells of the game of life are born and die, over a soft rushing noise.",
    ),
    Film(
        "bars.mov",
        "smptebars=s=160x120:r=5:d=4",
        "sine=f={tone}:r=16000:d=4",
        ("-c:v", "mjpeg", "-c:a", "pcm_s16le"),
        "Standing television color bars with a test tone.",
    ),
    Film(
        "colors.mp4",
        "nullsrc=s=160x120:r=8:d=5,geq=r='128+127*sin(X/20+{phase}+2*T)':g='128+127*sin(Y/15+3*T)':b='128+127*sin((X+Y)/25-T)'",
        "aevalsrc='0.4*sin(2*PI*(220+60*t)*t)':s=16000:d=5",
        (*_MPEG4, "-c:a", "aac", "-b:a", "32k"),
        "Colors flow into one another while a tone rises.",
    ),
    Film(
        "rule.mkv",
        "cellauto=s=160x120:r=10:rule=110:seed={seed},trim=duration=5",
        None,
        ("-c:v", "ffv1"),
        "The triangles of a cellular automaton scroll by in black and white.",
    ),
)
_SOUNDS = (
    Sound(
        "tone.wav",
        "sine=f={tone}:r=16000:d=3",
        ("-c:a", "pcm_s16le"),
        "A pure steady tone.",
    ),
    Sound(
        "rising.flac",
        "aevalsrc='0.5*sin(2*PI*(200+150*t)*t)':s=22050:d=4",
        ("-c:a", "flac"),
        "A tone that rises like a siren.",
    ),
    Sound(
        "rain.mp3",
        "anoisesrc=color=pink:seed={seed}:amplitude=0.3:r=24000:d=4",
        ("-c:a", "libmp3lame", "-b:a", "48k"),
        "A steady rushing, like rain on a roof.",
    ),
    Sound(
        "chord.m4a",
        "aevalsrc='0.2*(sin(2*PI*262*t)+sin(2*PI*330*t)+sin(2*PI*392*t))':s=32000:d=4",
        ("-c:a", "aac", "-b:a", "48k"),
        "A major chord of three notes, held.",
    ),
    Sound(
        "beeps.aiff",
        "aevalsrc='0.5*sin(2*PI*880*t)*lt(mod(t,0.5),0.12)':s=8000:d=5",
        ("-c:a", "pcm_s16be"),
        "Short beeps, two a second.",
    ),
    Sound(
        "stereo.mka",
        "aevalsrc='0.4*sin(2*PI*220*t)|0.4*sin(2*PI*223*t)':s=44100:d=3",
        ("-c:a", "flac"),
        "Two tones, one to each ear, that beat against each other.",
    ),
)


def videos(count: int, seed: int) -> Iterator[MediaFile]:
    """Yields `count` sound videos, the first longer than a minute, then a broken one."""
    broken = b""
    for number in range(count):
        film = _FILMS[number % len(_FILMS)]
        sources = [film.picture, film.sound] if film.sound else [film.picture]
        path = f"videos/{number:02d}-{film.name}"
        data = _run([_filled(s, number, number // len(_FILMS), seed) for s in sources], film.codecs, Path(path).suffix)
        broken = broken or data
        yield MediaFile(path, data, "video", film.caption)
    # The index of an MP4 is at its end: without it nothing can be played.
    yield MediaFile("videos/no-index.mp4", broken[: len(broken) // 2], "video", None, "no_moov")


def sounds(count: int, seed: int) -> Iterator[MediaFile]:
    """Yields `count` sounds, then a broken one."""
    for number in range(count):
        sound = _SOUNDS[number % len(_SOUNDS)]
        path = f"sounds/{number:02d}-{sound.name}"
        data = _run([_filled(sound.source, number, number // len(_SOUNDS), seed)], sound.codecs, Path(path).suffix)
        yield MediaFile(path, data, "audio", sound.caption)
    yield MediaFile("sounds/header-only.flac", b"fLaC\x00\x00\x00\x22" + bytes(34), "audio", None, "header_only")


def _filled(source: str, number: int, turn: int, seed: int) -> str:
    """Returns the generator with its places filled: each turn through the list makes other recordings."""
    values = {
        "seed": seed + number,
        "tone": 440 + 55 * turn,
        "scale": 3 / (turn + 1),
        "phase": turn,
        "minute": 75 + turn,
    }
    for name, value in values.items():
        source = source.replace(f"{{{name}}}", str(value))
    return source


def _run(sources: Sequence[str], codecs: Sequence[str], suffix: str) -> bytes:
    """Returns what ffmpeg encodes from the generators `sources`.

    Raises:
      ToolError: ffmpeg fails, for instance because it was built without an encoder.
    """
    inputs = [argument for source in sources for argument in ("-f", "lavfi", "-i", source)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"made{suffix}"
        args = [tool.ffmpeg(), *_READ_EXACTLY, *inputs, *codecs, *_EXACT, str(path)]
        done = subprocess.run(args, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        if done.returncode:
            raise ToolError(
                f"ffmpeg could not make a {suffix} file: {done.stderr.strip()[-500:]}",
                where=args[0],
                remedy="install a common build of ffmpeg: pip install 'gradsift[ffmpeg]'",
            )
        return path.read_bytes()
