"""What a model could learn from a picture's structure, and how much one frame looks like the next (docs/scoring.md)."""

import math
from functools import cache

import numpy as np
import numpy.typing as npt

NEIGHBOURS = tuple((y, x) for y in (0, 1, 2) for x in (0, 1, 2) if (y, x) != (1, 1))
MIN_PIXELS = 64  # inner ones: fewer say little about eight weights
FLAT = 1e-3  # grey levels squared: a variance below it holds nothing to predict
SSIM_SIDE = 11  # pixels
SSIM_SIGMA = 1.5
SSIM_K = (0.01, 0.03)
GREY_LEVELS = 255.0

Floats = npt.NDArray[np.float64]


def learnability(grey: Floats) -> float:
    """Returns the share of the variance of the inner pixels that their eight neighbours predict, in [0, 1].

    The adjusted R² of the least-squares linear prediction (a two-dimensional autoregressive model, Jain 1989, ch. 6):
    0 for noise, near 1 for smooth or regular structure. NaN for a flat picture and one under 10 × 10 pixels.
    """
    inner = grey[1:-1, 1:-1]
    height, width = inner.shape
    if inner.size < MIN_PIXELS or float(inner.var()) < FLAT:
        return math.nan
    columns = [grey[y : y + height, x : x + width].ravel() for y, x in NEIGHBOURS]
    near = np.stack(columns) - np.array([c.mean() for c in columns])[:, None]
    target = inner.ravel() - inner.mean()
    weights = np.linalg.lstsq(near @ near.T, near @ target, rcond=1e-10)[0]
    left = float(((target - weights @ near) ** 2).sum()) / float((target**2).sum())
    adjusted = 1.0 - left * (inner.size - 1) / (inner.size - 1 - len(NEIGHBOURS))
    return min(1.0, max(0.0, adjusted))


def ssim(a: Floats, b: Floats) -> float:
    """Returns the mean structural similarity of two grey pictures (h, w) in [0, 255], in [−1, 1]; 1 is the same.

    Wang et al. 2004, eq. 13, in a Gaussian window of 11 × 11 pixels, σ 1.5, wherever it fits whole. NaN for pictures of
    two sizes or under 11 pixels per side.
    """
    if a.shape != b.shape or min(a.shape) < SSIM_SIDE:
        return math.nan
    c1, c2 = ((k * GREY_LEVELS) ** 2 for k in SSIM_K)
    mean_a, mean_b = _smooth(a), _smooth(b)
    var_a, var_b = _smooth(a * a) - mean_a**2, _smooth(b * b) - mean_b**2
    cov = _smooth(a * b) - mean_a * mean_b
    means = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
    return float((means * (2 * cov + c2) / (var_a + var_b + c2)).mean())


def _smooth(values: Floats) -> Floats:
    """Returns the Gaussian-weighted means of the windows of (h, w) that fit whole, (h − 10, w − 10)."""
    windows = np.lib.stride_tricks.sliding_window_view
    return windows(windows(values, SSIM_SIDE, axis=0) @ _gaussian(), SSIM_SIDE, axis=1) @ _gaussian()


@cache
def _gaussian() -> Floats:
    """Returns the window's weights along a side, (11,); they sum to 1."""
    steps = np.arange(SSIM_SIDE) - SSIM_SIDE // 2
    weights = np.exp(-(steps**2) / (2 * SSIM_SIGMA**2))
    return np.asarray(weights / weights.sum(), np.float64)
