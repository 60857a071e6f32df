"""What a sample costs to train on: its tokens by modality, and their FLOPs on a target model.

Definitions: docs/quality.md.
"""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from scoring.core.config import config

_EPSILON = 1e-6  # a product of floats this close above a whole number is that number


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


def image_tokens(config: ImageTokens, width: int, height: int) -> int:
    """Returns the tokens of a picture of `width` × `height` pixels."""
    if config.scheme == "fixed":
        return config.per_image
    patches = -(-width // config.patch) * -(-height // config.patch)
    return -(-patches // config.merge**2)


def video_tokens(config: VideoTokens, frames: int) -> int:
    """Returns the tokens of `frames` frames."""
    return -(-config.per_frame * frames // config.temporal_merge)


def audio_tokens(config: AudioTokens, duration_s: float) -> int:
    """Returns the tokens of `duration_s` seconds of sound, a begun one counted."""
    return math.ceil(config.per_second * duration_s - _EPSILON)


def flops(target: Target, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Returns (n,) training FLOPs of sequences of `tokens` (n,) tokens: 6·N·T + 12·L·d·T².

    The second term is attention (Narayanan et al. 2021, appendix); causal kernels do half of it.
    """
    length = tokens.astype(np.float64)
    attention = (6.0 if target.causal else 12.0) * target.layers * target.width
    return 6.0 * target.parameters * length + attention * length**2


def complexity(flops: npt.NDArray[np.float64], median: float | None) -> npt.NDArray[np.float64]:
    """Returns (n,) the cost of each row over the median cost; 0 for all when no row costs anything."""
    return flops / median if median else np.zeros_like(flops)
