"""Stored pictures, frames and sounds, decoded small for the static score."""

import io
import math
import wave
from collections.abc import Sequence

import numpy as np
from PIL import Image

from scoring.static.pictures import MAX_FRAMES, MAX_SIDE, Pixels, picture_readings, video_readings
from scoring.static.sound import sound_readings
from transforms.core.features import Blob

Payload = Blob | None


def media_readings(modality: str, images: Sequence[Payload] | None, audio: Payload) -> dict[str, float]:
    """Returns the raw dimensions of a picture, video or sound; none if its payload cannot be decoded."""
    if modality == "audio":
        return _sound(audio)
    pictures = [p for p in map(small_picture, spread(images or [], MAX_FRAMES)) if p]
    if not pictures:
        return {}
    if modality == "video":
        return video_readings([p for p, _ in pictures], bytes_per_pixel=[b for _, b in pictures])
    pixels, weight = pictures[0]
    return picture_readings(pixels, bytes_per_pixel=weight)


def media_length(modality: str, *, width: int | None, height: int | None, duration_s: float | None) -> float:
    """Returns log(1 + pixels) of a picture, log(1 + seconds) of video and sound; NaN where unknown."""
    if modality == "image":
        return math.log1p(width * height) if width and height else math.nan
    return math.log1p(duration_s) if duration_s is not None and duration_s >= 0 else math.nan


def spread(items: Sequence[Payload], count: int) -> list[Payload]:
    """Returns at most `count` of `items`, evenly spaced, the first included."""
    step = max(1.0, len(items) / count)
    return [items[int(k * step)] for k in range(min(count, len(items)))]


def small_picture(payload: Payload) -> tuple[Pixels, float] | None:
    """Returns the pixels (h, w, 3), at most 128 a side, and the stored bytes a stored pixel; None if unreadable."""
    data = payload["bytes"] if payload else None
    if not data:
        return None
    try:
        with Image.open(io.BytesIO(data)) as picture:
            area = picture.width * picture.height
            picture.draft("RGB", (MAX_SIDE, MAX_SIDE))  # a JPEG is decoded at a fraction of its size
            small = picture.convert("RGB")
    except (OSError, Image.DecompressionBombError):
        return None
    small.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.BOX)
    return np.asarray(small, np.uint8), len(data) / area


def _sound(payload: Payload) -> dict[str, float]:
    data = payload["bytes"] if payload else None
    if not data:
        return {}
    try:
        with wave.open(io.BytesIO(data)) as sound:
            if (sound.getnchannels(), sound.getsampwidth()) != (1, 2):
                return {}
            samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
            return sound_readings(samples, rate_hz=sound.getframerate())
    except (wave.Error, EOFError):
        return {}
