"""Training cost of a sample: its tokens by modality, and their FLOPs on a target model.

Definitions: docs/quality.md.
"""

import math

import numpy as np
import numpy.typing as npt

from scoring.order.cost_config import AudioTokens, ImageTokens, Target, VideoTokens

_EPSILON = 1e-6  # a product of floats this close above a whole number is that number


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
