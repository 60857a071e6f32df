"""Section `ingest` of params."""

from scoring.core.config import config
from transforms.decode.config import AudioConfig, ImageConfig, VideoConfig
from transforms.readers.source import SourceConfig


@config
class IngestConfig:
    """What is read, and how it is stored."""

    sources: tuple[SourceConfig, ...]
    rows_per_part: int
    bytes_per_part: int  # decoded
    max_row_bytes: int
    max_reject_ratio: float  # of a source's inputs
    image: ImageConfig
    video: VideoConfig
    audio: AudioConfig

    def __post_init__(self) -> None:
        names = [s.name for s in self.sources]
        twice = sorted({n for n in names if names.count(n) > 1})
        if not names or twice:
            raise ValueError(
                f"at least one source is needed, each with a unique name; duplicates: {', '.join(twice) or 'none'}"
            )
        if not 1 <= self.rows_per_part <= 4096 or not 1 <= self.bytes_per_part <= 1 << 30:
            raise ValueError(
                f"rows_per_part {self.rows_per_part} must be in [1, 4096], "
                f"bytes_per_part {self.bytes_per_part} in [1, 1073741824]"
            )
        if not 1 <= self.max_row_bytes <= 1 << 30:
            raise ValueError(f"max_row_bytes {self.max_row_bytes} must be in [1, 1073741824]")
        if not 0 <= self.max_reject_ratio <= 1:
            raise ValueError(f"max_reject_ratio {self.max_reject_ratio} must be in [0, 1]")

    def source(self, name: str) -> SourceConfig:
        """Returns the source called `name`."""
        return next(s for s in self.sources if s.name == name)
