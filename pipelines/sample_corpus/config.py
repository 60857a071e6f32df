"""Section `sample` of params."""

from scoring.core.config import config


@config
class SampleConfig:
    """How large the corpus is."""

    seed: int
    texts: int  # clean texts, before the planted faults
    faults: int  # rows of each planted kind that comes in numbers
    pictures: int
    videos: int
    sounds: int

    def __post_init__(self) -> None:
        for name in ("texts", "faults", "pictures", "videos", "sounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)} must be at least 1")
