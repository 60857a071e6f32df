"""Sound: any format that ffmpeg reads, streamed as 16-bit mono PCM and cut into WAV pieces."""

import io
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ffmpeg
from ffmpeg.nodes import Stream

from transforms.decode import tool
from transforms.decode.config import PADDING_S, AudioConfig
from transforms.decode.errors import MediaError
from transforms.decode.probe import MediaInfo, probe

SAMPLE_BYTES = 2
# A decoder that complains and stops this far (or 2 %) before the header's end was cut short.
_SHORTFALL_S = 0.5


@dataclass(frozen=True)
class AudioSegment:
    """One piece: a whole WAV file, mono, 16 bits."""

    index: int
    wav: bytes
    start_s: float
    duration_s: float


class PcmReader:
    """Mono 16-bit samples of a process's stdout, taken piece by piece."""

    def __init__(self, process: tool.Process, rate_hz: int) -> None:
        self.rate_hz, self.samples = rate_hz, 0  # samples: how many were taken
        self._process, self._held = process, b""

    def take(self, samples: int, *, slack: int = 0) -> bytes:
        """Returns the next `samples` samples; up to `slack` more where the stream ends with them."""
        wanted, most = samples * SAMPLE_BYTES, (samples + slack) * SAMPLE_BYTES
        found = self._held + self._process.read(max(0, most + SAMPLE_BYTES - len(self._held)))
        cut = wanted if len(found) > most else len(found)
        self._held = found[cut:]
        self.samples += cut // SAMPLE_BYTES
        return found[: cut - cut % SAMPLE_BYTES]


def decode_audio(path: Path, config: AudioConfig, *, info: MediaInfo | None = None) -> Iterator[AudioSegment]:
    """Yields the sound of `path` in pieces of `segment_s` seconds, in memory of one piece.

    A header that promises more than decodes is no error; a decoder that fails is one, raised after
    the pieces that did decode.

    Raises:
      MediaError: `broken_audio`, `no_stream`, `empty_file`, `unreadable_file` or `timeout`.
    """
    info = info or probe(path, config.timeout_s)
    if info.audio is None:
        raise MediaError("no_stream", "the file has no audio stream")
    with tool.Process(_command(path, info.audio.index, config), path=path, timeout_s=config.timeout_s) as process:
        end_s = 0.0
        for segment in _segments(PcmReader(process, config.sample_rate_hz), config.segment_s):
            yield segment
            end_s = segment.start_s + segment.duration_s
        code = process.finish()
        if not end_s:
            raise MediaError("broken_audio", "no audio was decoded", process.tail)
        check_end(process, code, "broken_audio", end_s, info.audio.duration_s or info.duration_s)


def _segments(pcm: PcmReader, segment_s: float) -> Iterator[AudioSegment]:
    index = 0
    while True:
        start, samples = piece(index, segment_s, pcm.rate_hz)
        taken = pcm.take(samples, slack=round(PADDING_S * pcm.rate_hz))
        if not taken:
            return
        yield AudioSegment(index, wav(taken, pcm.rate_hz), start / pcm.rate_hz, seconds(taken, pcm.rate_hz))
        index += 1


def piece(index: int, segment_s: float, rate_hz: int) -> tuple[int, int]:
    """Returns the first sample and the number of samples of piece `index`; the pieces leave no gap."""
    start = round(index * segment_s * rate_hz)
    return start, round((index + 1) * segment_s * rate_hz) - start


def seconds(pcm: bytes, rate_hz: int) -> float:
    """Returns how long mono 16-bit `pcm` lasts."""
    return len(pcm) / SAMPLE_BYTES / rate_hz


def wav(pcm: bytes, rate_hz: int) -> bytes:
    """Returns mono 16-bit `pcm` as a WAV file."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(SAMPLE_BYTES)
        file.setframerate(rate_hz)
        file.writeframes(pcm)
    return buffer.getvalue()


def check_end(process: tool.Process, code: int, reason: str, end_s: float, promised_s: float | None) -> None:
    """Raises MediaError `reason` where decoding broke off at `end_s`.

    A bad packet on the way is no reason, nor is a header that promises too much: only a decoder that
    ends in failure, or that complains and stops well before the promised end.
    """
    if code:
        raise MediaError(reason, f"the decoder failed after {end_s:.3f} s (exit code {code})", process.tail)
    if process.faults and promised_s and end_s < promised_s - max(_SHORTFALL_S, 0.02 * promised_s):
        raise MediaError(reason, f"truncated: {end_s:.3f} of {promised_s:.3f} s could be decoded", process.tail)


def open_input(path: Path, **options: str | float) -> Stream:
    """Returns `path` as an input of ffmpeg-python: no network, one thread, so that faults come in one order."""
    return ffmpeg.input(
        f"file:{path}",
        protocol_whitelist="file",
        max_alloc=tool.MAX_ALLOC_BYTES,
        threads=1,
        flags="+bitexact",
        **options,
    )


def _command(path: Path, index: int, config: AudioConfig) -> list[str]:
    stream = open_input(path)[str(index)]
    return [tool.ffmpeg(), *tool.QUIET, *pcm_output(stream, config).get_args()]


def pcm_output(stream: Stream, config: AudioConfig) -> Stream:
    """Returns `stream` as raw mono 16-bit samples on stdout."""
    return ffmpeg.output(stream, "pipe:1", format="s16le", acodec="pcm_s16le", ac=1, ar=config.sample_rate_hz)
