"""Video: one streaming pass of ffmpeg, frames chosen by presentation time, sound in step beside them."""

import math
import queue
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import ffmpeg
from ffmpeg.nodes import Stream
from PIL import Image

from transforms.decode import tool
from transforms.decode.audio import PcmReader, check_end, open_input, pcm_output, piece, seconds, wav
from transforms.decode.config import PADDING_S, AudioConfig, ImageConfig, VideoConfig
from transforms.decode.errors import MediaError
from transforms.decode.image import encode, fit
from transforms.decode.probe import MediaInfo, VideoStream, probe

# The first frame of each 1/fps interval since the first frame. Containers that count in milliseconds
# show the frame of 2/30 s at 0.066 s, so an interval begins a millisecond early.
_JITTER_S = 0.001
_SELECT = "isnan(prev_selected_t)+gt(floor((t-start_t+{jitter})*{fps}),floor((prev_selected_t-start_t+{jitter})*{fps}))"
_SCALE_FLAGS = "lanczos+accurate_rnd+full_chroma_int+bitexact"
_ALL, _CHOSEN = "showinfo@all", "showinfo@chosen"  # named, to tell their lines apart
_CLOCK = re.compile(r"\[(showinfo@\w+) @ \w+\] \[info\] config in time_base: (\d+)/(\d+)")
_SHOWN = re.compile(r"\[(showinfo@\w+) @ \w+\] \[info\] n: *\d+ pts: *(-?\d+|NOPTS) (?:.*?\bduration: *(\d+) )?")
_NO_DECODER = re.compile(r"Function not implemented|[Dd]ecoder .*not found|no decoder found")
_LOG_WAIT_S = 60.0


@dataclass(frozen=True)
class VideoSegment:
    """One row's worth of a video. Times are seconds since the first frame of the stream.

    `width` and `height` are those of the source, upright, with square pixels. `frames` are encoded
    pictures. A segment without a frame of its own holds the one that is still on the screen.
    """

    index: int
    frames: list[bytes]
    times_s: list[float]
    wav: bytes | None
    start_s: float
    duration_s: float
    width: int
    height: int
    codec: str
    has_audio: bool


@dataclass(frozen=True)
class Frame:
    """A chosen frame, encoded, and its presentation time."""

    time_s: float
    data: bytes


def decode_video(
    path: Path, config: VideoConfig, image: ImageConfig, audio: AudioConfig, *, info: MediaInfo | None = None
) -> Iterator[VideoSegment]:
    """Yields the video at `path` in segments of `segment_s` seconds, in memory of one segment.

    A decoder that fails is an error raised after the segments that did decode; so is sound that fails
    beside pictures that do not. A bad packet in a file that plays on is none.

    Raises:
      MediaError: `broken_video`, `broken_audio`, `no_stream`, `too_many_pixels`, `empty_file`,
        `unreadable_file` or `timeout`.
    """
    info = info or probe(path, config.timeout_s)
    if info.video is None:
        raise MediaError("no_stream", "the file has no video stream")
    if info.video.width * info.video.height > image.max_pixels:
        size = f"{info.video.width}x{info.video.height}"
        raise MediaError("too_many_pixels", f"a frame of {size}, the limit is {image.max_pixels} pixels")
    with ExitStack() as stack:
        frames = stack.enter_context(FrameReader(path, info, config, image))
        source = iter(frames)
        first = next(source, None)
        if first is None:
            raise _nothing(info.video, frames.process.tail)
        sound = None
        if info.audio:
            sound = stack.enter_context(_sound(path, info.video.index, info.audio.index, frames.start_s, audio))
        pcm = PcmReader(sound, audio.sample_rate_hz) if sound else None
        yield from _segments(_Cut(info.video, config.segment_s, frames, pcm), first, source)
        check_end(frames.process, frames.process.finish(), "broken_video", frames.end_s, info.video.duration_s)
        if sound:
            _check_sound(sound, silent=pcm is not None and pcm.samples == 0)


def _nothing(stream: VideoStream, tail: str) -> MediaError:
    if _NO_DECODER.search(tail):
        return MediaError("unsupported_format", f"this build of ffmpeg has no decoder for {stream.codec}", tail)
    return MediaError("broken_video", "no frame was decoded", tail)


class FrameReader:
    """The chosen frames of one stream, in order; a context manager that ends its process.

    Attributes:
      start_s: when the first frame is shown, on the clock of the container; known once it was read.
      end_s: when the last decoded frame, chosen or not, ends, since `start_s`; known after the last.
    """

    def __init__(self, path: Path, info: MediaInfo, config: VideoConfig, image: ImageConfig) -> None:
        self.start_s = 0.0
        assert info.video
        self._size = fit((info.video.width, info.video.height), config.max_side)
        self._fps, self._image = config.fps, image
        self._tick_s: dict[str, float] = {}
        self._latest_s = self._finish_s = float("-inf")
        self._times: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        args = _video_command(path, info, self._size, config.fps, image.max_pixels)
        self.process = tool.Process(args, path=path, timeout_s=config.timeout_s, on_line=self._hear)

    def __enter__(self) -> "FrameReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.close()

    def __iter__(self) -> Iterator[Frame]:
        width, height = self._size
        interval, first = -1, True
        while len(raw := self.process.read(width * height * 3)) == width * height * 3:
            seen_s = self._time()
            if first:
                self.start_s, first = seen_s, False
            # The filter's memory is lost where a stream changes its size; ours is not.
            if (now := _interval(seen_s - self.start_s, self._fps)) > interval:
                interval = now
                time_s = round(seen_s - self.start_s, 6)
                yield Frame(time_s, encode(Image.frombytes("RGB", self._size, raw), self._image))
        self.process.finish()

    @property
    def end_s(self) -> float:
        return max(0.0, self._finish_s - self.start_s)

    def _time(self) -> float:
        """Returns when the frame just read is shown; ffmpeg has told so before it wrote the frame."""
        try:
            found = self._times.get(timeout=_LOG_WAIT_S)
        except queue.Empty:
            raise MediaError("broken_video", "ffmpeg reported a frame without a timestamp", self.process.tail) from None
        return self.start_s if found is None else found

    def _hear(self, line: str) -> None:
        """Takes in one line of the log; runs in the thread that drains it."""
        if clock := _CLOCK.match(line):
            self._tick_s[clock[1]] = int(clock[2]) / int(clock[3])
        elif shown := _SHOWN.match(line):
            name, tick_s = shown[1], self._tick_s[shown[1]]
            seen_s = None if shown[2] == "NOPTS" else int(shown[2]) * tick_s
            if name == _CHOSEN:
                self._times.put(seen_s)
            elif seen_s is not None:
                self._extend(seen_s, int(shown[3] or 0) * tick_s)

    def _extend(self, seen_s: float, duration_s: float) -> None:
        """Moves the end to where this frame ends: after its own duration, else after the step before it."""
        step_s = seen_s - self._latest_s if self._latest_s > float("-inf") else 0.0
        self._latest_s = seen_s
        self._finish_s = max(self._finish_s, seen_s + (duration_s or max(0.0, step_s)))


def _interval(time_s: float, fps: float) -> int:
    return math.floor((time_s + _JITTER_S) * fps)


def _video_command(path: Path, info: MediaInfo, size: tuple[int, int], fps: float, max_pixels: int) -> list[str]:
    assert info.video
    source = open_input(path, max_pixels=max_pixels)
    stream = (
        source[str(info.video.index)]
        .filter(_ALL, checksum=0)
        .filter("select", _SELECT.format(fps=fps, jitter=_JITTER_S))
        .filter(_CHOSEN, checksum=0)
        .filter("scale", *size, flags=_SCALE_FLAGS)
    )
    output = ffmpeg.output(stream, "pipe:1", format="rawvideo", pix_fmt="rgb24", fps_mode="passthrough")
    beside = [info.audio.index] if info.audio else []
    return [tool.ffmpeg(), *tool.QUIET, *_on_one_clock(source, output, beside).get_args()]


def _on_one_clock(source: Stream, output: Stream, beside: Sequence[int]) -> Stream:
    """Returns `output` with the streams `beside` it read and thrown away.

    ffmpeg sets the clock of MPEG streams to zero at the first packet of those streams that are in use,
    so the pass over the pictures and the pass over the sound must use the same ones.
    """
    unused = [ffmpeg.output(source[str(i)], "-", format="null", codec="copy") for i in beside]
    return ffmpeg.merge_outputs(output, *unused)


def _sound(path: Path, video: int, audio: int, start_s: float, config: AudioConfig) -> tool.Process:
    """Returns a process that writes the sound from `start_s` on: silence before it starts and in its gaps."""
    source = open_input(path)
    stream = (
        source[str(audio)]
        .filter("asetpts", f"PTS-({start_s!r})/TB")
        .filter("aresample", **{"async": 1, "first_pts": 0})
    )
    command = _on_one_clock(source, pcm_output(stream, config), [video])
    return tool.Process([tool.ffmpeg(), *tool.QUIET, *command.get_args()], path=path, timeout_s=config.timeout_s)


def _check_sound(process: tool.Process, *, silent: bool) -> None:
    code = process.finish()
    if code or (silent and process.faults):
        raise MediaError("broken_audio", f"the audio track cannot be decoded (exit code {code})", process.tail)


@dataclass(frozen=True)
class _Cut:
    """What segments are cut from."""

    stream: VideoStream
    segment_s: float
    frames: FrameReader
    pcm: PcmReader | None

    def sound(self, index: int, *, last: bool) -> bytes:
        """Returns the samples of segment `index`; the last one takes a codec's padding along."""
        if self.pcm is None:
            return b""
        _, samples = piece(index, self.segment_s, self.pcm.rate_hz)
        return self.pcm.take(samples, slack=round(PADDING_S * self.pcm.rate_hz) if last else 0)

    def segment(self, index: int, frames: list[Frame], pcm: bytes, *, last: bool) -> VideoSegment:
        start_s = index * self.segment_s
        rate_hz = self.pcm.rate_hz if self.pcm else 1
        rest_s = max(min(self.frames.end_s - start_s, self.segment_s), seconds(pcm, rate_hz))
        return VideoSegment(
            index=index,
            frames=[f.data for f in frames],
            times_s=[f.time_s for f in frames],
            wav=wav(pcm, rate_hz) if pcm else None,
            start_s=start_s,
            duration_s=rest_s if last else self.segment_s,
            width=self.stream.width,
            height=self.stream.height,
            codec=self.stream.codec,
            has_audio=bool(pcm),
        )


def _segments(cut: _Cut, first: Frame, rest: Iterator[Frame]) -> Iterator[VideoSegment]:
    """Yields the segments that hold a frame or a sound; neither is in a leap of the time stamps."""
    pending: Frame | None = first
    shown, index = first, 0
    while True:
        own = []
        while pending and pending.time_s + _JITTER_S < (index + 1) * cut.segment_s:
            own.append(pending)
            shown, pending = pending, next(rest, None)
        pcm = cut.sound(index, last=pending is None)
        if own or pcm:
            frames = own or [Frame(index * cut.segment_s, shown.data)]
            yield cut.segment(index, frames, pcm, last=pending is None)
        elif pending is None:
            return
        index += 1
