"""Section `tokens` of params."""

import math
from typing import Literal

from scoring.core.config import config


@config
class ImageTokens:
    """Tokens of a picture: `fixed` says `per_image`; `patch` counts square patches, merged `merge` × `merge`."""

    scheme: Literal["fixed", "patch"]
    per_image: int
    patch: int  # pixels
    merge: int

    def __post_init__(self) -> None:
        if self.per_image < 0 or self.patch < 1 or self.merge < 1:
            raise ValueError(
                "per_image must be at least 0, patch and merge at least 1, "
                f"not {self.per_image}, {self.patch}, {self.merge}"
            )


@config
class VideoTokens:
    """Tokens of a video: `per_frame` for each stored frame, `temporal_merge` frames sharing theirs."""

    per_frame: int
    temporal_merge: int

    def __post_init__(self) -> None:
        if self.per_frame < 0 or self.temporal_merge < 1:
            raise ValueError(
                f"per_frame must be at least 0, temporal_merge at least 1, not {self.per_frame}, {self.temporal_merge}"
            )


@config
class AudioTokens:
    """Tokens of a second of sound."""

    per_second: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.per_second) and self.per_second >= 0):
            raise ValueError(f"per_second must be a number of at least 0, not {self.per_second}")


@config
class Target:
    """The model whose training FLOPs are counted."""

    parameters: float
    layers: int
    width: int
    causal: bool  # its kernels skip the masked half of attention

    def __post_init__(self) -> None:
        if not (math.isfinite(self.parameters) and self.parameters > 0) or self.layers < 0 or self.width < 0:
            raise ValueError(
                "parameters must be above 0, layers and width at least 0, "
                f"not {self.parameters}, {self.layers}, {self.width}"
            )


@config
class TokensConfig:
    """Section `tokens` of the params."""

    tokenizer: str
    image: ImageTokens
    video: VideoTokens
    audio: AudioTokens
    target: Target
