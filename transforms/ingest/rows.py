"""A record becomes sample rows: media found and decoded, ids given, what fails a reject with its reason."""

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from transforms.core.features import Blob
from transforms.decode.audio import decode_audio
from transforms.decode.config import AudioConfig, ImageConfig, VideoConfig
from transforms.decode.errors import MediaError
from transforms.decode.image import Picture, decode_image
from transforms.decode.probe import probe
from transforms.decode.video import VideoSegment, decode_video
from transforms.readers.base import too_large
from transforms.readers.fields import Fields, Media

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:(//|.*;base64,)")
_LIKE_SEGMENT = re.compile(r"-s\d{4,}$")
_ROW_BYTES = 256  # of a row's ids, numbers and lists, beside text and payloads


Values = dict[str, Any]  # column → value


class SampleRow(NamedTuple):
    """A row of `samples`, its fields in the order of the schema."""

    sample_id: str
    source: str
    uri: str
    source_digest: str
    position: int
    segment: int
    modality: str
    text: str | None
    images: list[Blob] | None
    image_times_s: list[float | None] | None
    audio: Blob | None
    width: int | None
    height: int | None
    duration_s: float | None
    frames: int | None
    has_audio: bool | None
    codec: str | None
    label: str | None
    domain: str | None
    repaired_chars: int
    meta: str | None

    @property
    def size(self) -> int:
        """Decoded bytes, near enough to bound a part."""
        payload = sum(len(i["bytes"]) for i in self.images or ()) + (len(self.audio["bytes"]) if self.audio else 0)
        return _ROW_BYTES + payload + _utf8_size(self.text) + _utf8_size(self.meta)


class RejectRow(NamedTuple):
    """A row of `rejects`, its fields in the order of the schema."""

    sample_id: str | None
    source: str
    uri: str
    source_digest: str
    position: int
    stage: str
    reason: str
    error: str
    tail: str
    excerpt: str
    partial: bool


@dataclass(frozen=True)
class Origin:
    """The file that rows come from."""

    source: str
    uri: str  # relative to the project, so that no byte depends on where the project lies
    digest: str

    def sample_id(self, own_id: str | None, position: int) -> str:
        """Returns the id of segment 0: the row's own, or one made of the file's content and the position."""
        if own_id is None:
            return f"{self.digest[:16]}-{position}"
        return f"{self.source}/{own_id}{'-s0000' if _LIKE_SEGMENT.search(own_id) else ''}"

    def reject(
        self, position: int, reason: str, error: str, *,
        sample_id: str | None = None, tail: str = "", excerpt: str = "", partial: bool = False,
    ) -> RejectRow:  # fmt: skip
        """Returns the reject of the row at `position`."""
        return RejectRow(
            sample_id, self.source, self.uri, self.digest, position, "ingest", reason, storable(error),
            storable(tail), storable(excerpt), partial,
        )  # fmt: skip


def storable(text: str) -> str:
    """Returns `text` without what UTF-8 or a database cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "")


def _utf8_size(text: str | None) -> int:
    if text is None:
        return 0
    return len(text) if text.isascii() else len(text.encode())


@dataclass(frozen=True)
class MakeRows:
    """Makes the sample rows of the records of one source. `alone`: a record is a media file of its own."""

    root: Path
    media_root: str | None
    image: ImageConfig
    video: VideoConfig
    audio: AudioConfig
    max_image_bytes: int
    alone: bool

    def rows(self, origin: Origin, position: int, fields: Fields) -> Iterator[SampleRow | RejectRow]:
        """Yields the rows of one record; where its media fail, what did decode, then a reject."""
        done = False
        try:
            for row in self._rows(_blank(origin, position, fields), origin, fields):
                yield row
                done = True
        except MediaError as error:
            yield origin.reject(position, error.reason, error.message, tail=error.tail, partial=done)
            return
        if not done:
            yield origin.reject(position, "no_stream", "nothing was decoded, and the decoder printed no error")

    def _rows(self, blank: SampleRow, origin: Origin, fields: Fields) -> Iterator[SampleRow]:
        if not fields.media:
            yield blank
            return
        mixed = len(fields.media) > 1 or fields.in_messages
        pictures = [self._picture(origin, m) for m in fields.media if m.kind == "image"]
        timed = [m for m in fields.media if m.kind != "image"]
        if not timed:
            yield blank._replace(**_still(pictures, mixed))
        following = 0
        for medium in timed:
            first = following
            for index, columns in self._segments(origin, medium):
                row = blank._replace(segment=first + index, **columns)
                following = row.segment + 1
                if row.segment:
                    row = row._replace(sample_id=f"{blank.sample_id}-s{row.segment:04d}")
                elif pictures:
                    row = _with_pictures(row, [blob for blob, _ in pictures])
                yield row._replace(modality="interleaved") if mixed else row

    def _picture(self, origin: Origin, medium: Media) -> tuple[Blob, Picture]:
        data = self._read(self._find(origin, medium)) if medium.data is None else medium.data
        picture = decode_image(data, self.image)
        return self._blob(picture.data, medium), picture

    def _read(self, path: Path) -> bytes:
        try:
            size = path.stat().st_size
            if size > self.max_image_bytes:
                raise MediaError("too_large", too_large(size, self.max_image_bytes))
            return path.read_bytes()
        except OSError as error:
            raise MediaError("unreadable_file", error.strerror or str(error)) from error

    def _segments(self, origin: Origin, medium: Media) -> Iterator[tuple[int, Values]]:
        """Yields (index, columns) of each segment of a video or sound; an index may be left out by a gap in it."""
        with self._file(origin, medium) as path:
            info = probe(path, self.video.timeout_s)
            if (info.kind if self.alone else medium.kind) == "video":
                for shot in decode_video(path, self.video, self.image, self.audio, info=info):
                    yield shot.index, self._shot(shot, medium)
            else:
                for sound in decode_audio(path, self.audio, info=info):
                    codec = info.audio.codec if info.audio else None
                    facts = {"duration_s": sound.duration_s, "has_audio": True, "codec": codec}
                    yield sound.index, {"modality": "audio", "audio": self._blob(sound.wav, medium), **facts}

    def _shot(self, shot: VideoSegment, medium: Media) -> Values:
        return {
            "modality": "video",
            "images": [self._blob(frame, medium) for frame in shot.frames],
            "image_times_s": list(shot.times_s),
            "audio": self._blob(shot.wav, medium) if shot.wav else None,
            "width": shot.width,
            "height": shot.height,
            "duration_s": shot.duration_s,
            "frames": len(shot.frames),
            "has_audio": shot.has_audio,
            "codec": shot.codec,
        }

    def _blob(self, data: bytes, medium: Media) -> Blob:
        path = medium.path
        if path and os.path.isabs(path):
            path = os.path.relpath(path, self.root)
        return {"bytes": data, "path": storable(path) if path else None}

    @contextmanager
    def _file(self, origin: Origin, medium: Media) -> Iterator[Path]:
        """Gives the path of a medium; embedded bytes become a file for the while."""
        if medium.data is None:
            yield self._find(origin, medium)
            return
        with tempfile.NamedTemporaryFile(prefix="gradsift-", suffix=Path(medium.path or "").suffix) as file:
            file.write(medium.data)
            file.flush()
            yield Path(file.name)

    def _find(self, origin: Origin, medium: Media) -> Path:
        return locate(self.root, self.media_root, origin.uri, medium.path or "")


def _blank(origin: Origin, position: int, fields: Fields) -> SampleRow:
    """Returns the row of a record without its media."""
    return SampleRow(
        sample_id=origin.sample_id(fields.own_id, position), source=origin.source, uri=origin.uri,
        source_digest=origin.digest, position=position, segment=0, modality="text", text=fields.text, images=None,
        image_times_s=None, audio=None, width=None, height=None, duration_s=None, frames=None, has_audio=None,
        codec=None, label=fields.label, domain=fields.domain, repaired_chars=fields.repaired, meta=fields.meta,
    )  # fmt: skip


def _still(pictures: list[tuple[Blob, Picture]], mixed: bool) -> Values:
    """Returns the columns of a row of pictures; facts of a picture only where there is one."""
    columns: Values = {"modality": "image", "images": [blob for blob, _ in pictures]}
    if len(pictures) == 1:
        _, one = pictures[0]
        columns |= {"width": one.width, "height": one.height, "codec": one.codec}
    return columns | ({"modality": "interleaved"} if mixed else {})


def _with_pictures(row: SampleRow, pictures: list[Blob]) -> SampleRow:
    """Returns the row with `pictures`, which have no time, before its frames."""
    times: list[float | None] = [None] * len(pictures)
    return row._replace(images=[*pictures, *(row.images or ())], image_times_s=[*times, *(row.image_times_s or ())])


def locate(root: Path, media_root: str | None, uri: str, name: str) -> Path:
    """Returns the file that a row of `uri` calls `name`: below `media_root`, else beside the row's file.

    Raises:
      MediaError: `missing_media` or `unreadable_file`.
    """
    if _URL.match(name):
        raise MediaError("missing_media", f"{name[:200]}: URLs are not downloaded; use a local file")
    home = root / uri
    base = root / media_root if media_root is not None else home if home.is_dir() else home.parent
    try:
        found = (base / name).stat()
    except PermissionError:
        raise MediaError("unreadable_file", f"{name[:200]}: permission denied") from None
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise MediaError("missing_media", f"{name[:200]}: {words}") from None
    if not stat.S_ISREG(found.st_mode):
        raise MediaError("missing_media", f"{name[:200]}: not a file")
    if not os.access(base / name, os.R_OK):
        raise MediaError("unreadable_file", f"{name[:200]}: permission denied")
    return base / name
