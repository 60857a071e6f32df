"""A file of the corpus, before it is on disk."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MediaFile:
    """A picture or recording: its place in the corpus, its bytes, and what it shows or what is wrong with it."""

    path: str  # e.g. "pictures/rings-04.png"
    data: bytes
    kind: Literal["image", "video", "audio"]
    caption: str | None  # null: no caption row
    fault: str | None = None
