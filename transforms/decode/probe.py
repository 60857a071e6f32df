"""What a file is, from its content: its kind from the first bytes, its streams from ffprobe."""

import codecs
import json
import re
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

from scoring.core.types import JsonObject
from transforms.decode import tool
from transforms.decode.errors import MediaError

# `video` is an audio-video container: only `probe` knows whether there are pictures in it.
Kind = Literal[
    "image", "audio", "video", "parquet", "warc", "tar", "jsonl", "json", "html", "text", "gzip", "zstd", "empty",
    "unknown",
]  # fmt: skip

HEAD_BYTES = 4096
_PROBE_BYTES = 16 << 20

# Regular expressions over the first bytes, the first that matches wins.
_MAGIC: tuple[tuple[bytes, Kind], ...] = (
    (rb".{257}ustar(\x00|  \x00)", "tar"),  # first: the name of its first member may look like anything
    (rb"WARC/\d\.\d\s", "warc"),
    (rb"PAR1", "parquet"),
    (rb"\x1f\x8b", "gzip"),
    (rb"\x28\xb5\x2f\xfd", "zstd"),
    (rb"\xff\xfe|\xfe\xff", "text"),  # UTF-16 byte order marks
    (rb"\xff\xd8\xff", "image"),  # JPEG, MPO
    (rb"\x89PNG\r\n\x1a\n", "image"),
    (rb"GIF8[79]a", "image"),
    (rb"BM.{4}\x00\x00\x00\x00|BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\x00\x00\x00", "image"),
    (rb"II[\x2a\x2b]\x00|MM\x00[\x2a\x2b]", "image"),  # TIFF, BigTIFF
    (rb"RIFF.{4}WEBP", "image"),
    (rb"\x00\x00\x01\x00[^\x00]\x00", "image"),  # ICO
    (rb"8BPS\x00[\x01\x02]", "image"),
    (rb"\x00\x00\x00\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51", "image"),  # JPEG 2000
    (rb"P[1-6]\s+(#[^\n]*\n\s*)*\d+\s+\d+\s", "image"),  # PNM
    (rb"qoif\x00", "image"),
    (rb"\x00\x00.{2}ftyp(avif|avis|heic|heix|hevc|hevx|heim|heis|mif1|msf1)", "image"),
    (rb"(RIFF|RF64|RIFX).{4}WAVE", "audio"),
    (rb"fLaC|ID3[\x02-\x04]|#!AMR|wvpk|\.snd\x00|MAC .[\x0e\x0f]|caff\x00|TTA1|MPCK|MP\+[\x07\x17\x27]", "audio"),
    (rb"FORM.{4}AIF[FC]", "audio"),
    (rb"\xff[\xf0\xf1\xf8\xf9]", "audio"),  # AAC in ADTS
    (rb"\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff][\x10-\xef]", "audio"),  # MPEG audio layers I to III
    (rb"\x00\x00.{2}ftyp|\x00.{3}(moov|wide|free|skip|pnot)|.{4}mdat", "video"),  # MP4, MOV, M4A, 3GP
    (rb"\x1a\x45\xdf\xa3", "video"),  # Matroska, WebM
    (rb"RIFF.{4}AVI |OggS\x00|FLV\x01|\x30\x26\xb2\x75\x8e\x66\xcf\x11|\.RMF\x00|DKIF\x00|YUV4MPEG2 ", "video"),
    (rb"\x00\x00\x01[\xba\xb3]", "video"),  # MPEG program and elementary streams
    (rb"\x47.{187}\x47|.{4}\x47.{191}\x47", "video"),  # MPEG transport streams
)
_SIGNATURES = tuple((re.compile(pattern, re.S), kind) for pattern, kind in _MAGIC)
_TEXT_SUFFIXES = (".txt", ".text", ".md", ".rst", ".csv", ".tsv", ".html", ".htm", ".xml")
_HTML = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)[\s>]", re.I | re.S
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True)
class VideoStream:
    """`width` and `height` are those of the upright picture with square pixels."""

    index: int
    codec: str
    width: int
    height: int
    duration_s: float | None


@dataclass(frozen=True)
class AudioStream:
    """One stream of sound, by its absolute index in the file."""

    index: int
    codec: str
    duration_s: float | None


@dataclass(frozen=True)
class MediaInfo:
    """The best streams of a file. Durations come from the header and may differ from what decodes."""

    video: VideoStream | None
    audio: AudioStream | None
    duration_s: float | None
    rotation: int  # degrees clockwise that turn the stored picture upright

    @property
    def kind(self) -> Literal["audio", "video"]:
        """Whether there are moving pictures; cover art is none."""
        return "video" if self.video else "audio"

    @property
    def codec(self) -> str:
        """The codec of the pictures, else of the sound."""
        stream = self.video or self.audio
        return stream.codec if stream else ""

    @property
    def has_audio(self) -> bool:
        return self.audio is not None


def sniff(head: bytes, name: str) -> Kind:
    """Returns what a file that begins with `head` is; `name` only tells kinds of text apart."""
    if not head:
        return "empty"
    for signature, kind in _SIGNATURES:
        if signature.match(head):
            return kind
    return _sniff_text(head[:HEAD_BYTES], PurePath(name).suffix.lower())


def _sniff_text(head: bytes, suffix: str) -> Kind:
    if _CONTROL.search(head):
        return "unknown"
    if suffix in (".jsonl", ".ndjson"):
        return "jsonl"
    if suffix == ".json":
        return "jsonl" if _is_lines(head) else "json"
    if _HTML.match(head):
        return "html"
    if _is_utf8(head):
        return _sniff_json(head)
    return "text" if suffix in _TEXT_SUFFIXES else "unknown"


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a character that the head cuts is no fault
    except UnicodeDecodeError:
        return False
    return True


def _is_lines(head: bytes) -> bool:
    """Returns whether the first line is a whole object and another begins after it."""
    line, _, rest = head.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")
    return rest.lstrip().startswith(b"{") and _is_object(line)


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _sniff_json(head: bytes) -> Kind:
    """Returns `jsonl` for an object that ends with its line, `json` for one that does not, else `text`."""
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    line, newline, _ = start.partition(b"\n")
    if start.startswith(b"{") and _is_object(line):
        return "jsonl"
    if re.match(rb'\{\s*("|$)', start):
        return "json" if newline else "jsonl"
    return "text"


def probe(path: Path, timeout_s: float) -> MediaInfo:
    """Returns the best streams of the file at `path`.

    Video: the largest picture that is not cover art, then the default one, then the first. Sound: the
    default one, then the most channels, then the highest rate, then the first.

    Raises:
      MediaError: `empty_file`, `unreadable_file`, `broken_audio`, `broken_video`, `no_stream` or `timeout`.
    """
    broken = "broken_audio" if sniff(_head(path), path.name) == "audio" else "broken_video"
    args = [tool.ffprobe(), "-hide_banner", "-loglevel", "level+error", "-max_alloc", str(tool.MAX_ALLOC_BYTES)]
    args += ["-protocol_whitelist", "file", "-show_format", "-show_streams", "-of", "json", f"file:{path}"]
    with tool.Process(args, path=path, timeout_s=timeout_s) as process:
        text = process.read(_PROBE_BYTES)
        if process.finish():
            raise MediaError(broken, "the container cannot be opened", process.tail)
    try:
        return _info(json.loads(text))
    except ValueError as error:
        raise MediaError(broken, f"cannot parse ffprobe's output: {error}") from error


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise MediaError("unreadable_file", f"the file cannot be opened: {error.strerror}") from error
    if not head:
        raise MediaError("empty_file", "the file is empty")
    return head


def _info(found: JsonObject) -> MediaInfo:
    streams = [s for s in found.get("streams", []) if s.get("codec_name", "unknown") not in ("unknown", "none")]
    videos = [s for s in streams if s.get("codec_type") == "video" and not _flag(s, "attached_pic") and s.get("width")]
    audios = [s for s in streams if s.get("codec_type") == "audio"]
    if not videos and not audios:
        raise MediaError("no_stream", "ffmpeg finds neither video nor audio in the file")
    video = min(videos, key=lambda s: (-s["width"] * s["height"], -_flag(s, "default"), s["index"]), default=None)
    audio = min(audios, key=_audio_rank, default=None)
    return MediaInfo(
        video=_video(video) if video else None,
        audio=AudioStream(audio["index"], audio["codec_name"], _seconds(audio)) if audio else None,
        duration_s=_seconds(found.get("format", {})),
        rotation=_rotation(video) if video else 0,
    )


def _flag(stream: JsonObject, name: str) -> int:
    return int(stream.get("disposition", {}).get(name, 0))


def _audio_rank(stream: JsonObject) -> tuple[int, ...]:
    return (
        -_flag(stream, "default"), -int(stream.get("channels", 0)), -int(stream.get("sample_rate", 0)), stream["index"]
    )  # fmt: skip


def _seconds(section: JsonObject) -> float | None:
    try:
        value = float(section["duration"])
    except (KeyError, ValueError):
        return None
    return value if value > 0 else None


def _rotation(stream: JsonObject) -> int:
    turns = [d["rotation"] for d in stream.get("side_data_list", []) if "rotation" in d]
    return -int(turns[0]) % 360 if turns else 0


def _video(stream: JsonObject) -> VideoStream:
    width, height = max(1, round(stream["width"] * _pixel_aspect(stream))), stream["height"]
    if _rotation(stream) % 180 == 90:
        width, height = height, width
    return VideoStream(stream["index"], stream["codec_name"], width, height, _seconds(stream))


def _pixel_aspect(stream: JsonObject) -> float:
    match = re.fullmatch(r"(\d+):(\d+)", stream.get("sample_aspect_ratio", ""))
    width, height = (int(match[1]), int(match[2])) if match else (0, 0)
    return width / height if width and height else 1.0
