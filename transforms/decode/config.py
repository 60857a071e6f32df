"""How pictures, video and sound are stored: parts of section `ingest` of params."""

from typing import Literal

from scoring.core.config import config


@config
class ImageConfig:
    """How pictures are stored."""

    max_side: int  # pixels on the long side
    max_pixels: int  # refuse to decode more
    format: Literal["jpeg", "png"]
    quality: int  # of jpeg
    background: str  # under transparent pixels: a name or #rrggbb

    def __post_init__(self) -> None:
        if self.max_side < 1 or self.max_pixels < 1:
            raise ValueError(f"max_side {self.max_side} and max_pixels {self.max_pixels} must be at least 1")
        if not 1 <= self.quality <= 100:
            raise ValueError(f"quality {self.quality} must be in [1, 100]")
        from PIL import ImageColor

        try:
            ImageColor.getrgb(self.background)
        except ValueError:
            raise ValueError(f"background {self.background!r} must be a color name or #rrggbb") from None


# What a codec adds at the end (up to two MP3 or AAC frames): too little to be a piece of its own.
PADDING_S = 0.1


@config
class AudioConfig:
    """How sound is stored."""

    sample_rate_hz: int
    segment_s: float  # longer sound becomes several pieces
    timeout_s: float  # of one file

    def __post_init__(self) -> None:
        if not 1000 <= self.sample_rate_hz <= 192_000:
            raise ValueError(f"sample_rate_hz {self.sample_rate_hz} must be in [1000, 192000]")
        if not self.segment_s > 2 * PADDING_S or not self.timeout_s > 0:
            raise ValueError(f"segment_s {self.segment_s} must be above 0.2, timeout_s {self.timeout_s} above 0")


@config
class VideoConfig:
    """Which frames of a video are kept, and how large."""

    fps: float  # frames per second, chosen by presentation time
    segment_s: float  # a longer video becomes several rows
    max_side: int
    timeout_s: float  # of one file

    def __post_init__(self) -> None:
        if not 0 < self.fps <= 1000:
            raise ValueError(f"fps {self.fps} must be in (0, 1000]")
        if not self.segment_s > 2 * PADDING_S or not self.timeout_s > 0:
            raise ValueError(f"segment_s {self.segment_s} must be above 0.2, timeout_s {self.timeout_s} above 0")
        if self.max_side < 1:
            raise ValueError(f"max_side {self.max_side} must be at least 1")
