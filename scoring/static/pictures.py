"""The static score's reading of a picture and of a video's frames (docs/scoring.md).

Pictures come decoded and at most 128 pixels on the long side, so a reading costs about a millisecond.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from scoring.static import windows as static_windows
from scoring.static.structure import learnability, ssim

MAX_SIDE = 128  # pixels
MAX_FRAMES = 8
COLOUR_LEVELS = 8  # a channel, for the entropy
HISTOGRAM_LEVELS = 4  # a channel, for the vectors of cells and frames
ORIENTATIONS = 16
GRID = 4  # cells a side
EDGE = 32.0  # grey levels between the two neighbours of a pixel
STILL = 1.0  # mean grey levels between two frames that show the same

Floats = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint8]  # (h, w, 3)


def luminance(pixels: Pixels) -> Floats:
    """Returns (h, w) grey levels in [0, 255] (ITU-R BT.601)."""
    return np.asarray(0.299 * pixels[..., 0] + 0.587 * pixels[..., 1] + 0.114 * pixels[..., 2])


def entropy(weights: npt.NDArray[np.number]) -> float:
    """Returns the entropy in bits of non-negative `weights`, 0 where all are 0."""
    total = float(weights.sum())
    if total <= 0:
        return 0.0
    share = weights[weights > 0] / total
    return max(0.0, -float((share * np.log2(share)).sum()))


def colours(pixels: Pixels, levels: int) -> npt.NDArray[np.int64]:
    """Returns (levels³,) how many pixels have each quantised colour."""
    step = pixels.astype(np.int64) * levels // 256
    index = (step[..., 0] * levels + step[..., 1]) * levels + step[..., 2]
    return np.bincount(index.ravel(), minlength=levels**3)


def picture_readings(pixels: Pixels, *, bytes_per_pixel: float) -> dict[str, float]:
    """Returns what a picture (h, w, 3) has a reading of, by column; NaN where it is too small for one."""
    grey = luminance(pixels)
    strength, angle = _edges(grey)
    return {
        "lexical_diversity": entropy(colours(pixels, COLOUR_LEVELS)),
        "syntactic_variety": entropy(np.bincount(angle, weights=strength, minlength=ORIENTATIONS)),
        "reading_difficulty": float(grey.std()),
        "compression": bytes_per_pixel,
        "knowledge_density": 100.0 * float((strength > EDGE).mean()) if len(strength) else math.nan,
        "semantic_breadth": _cell_breadth(pixels),
        "coherence": _mean([correlation(grey[:, 1:], grey[:, :-1]), correlation(grey[1:], grey[:-1])]),
        "cleanliness": _sharpness(grey),
        "visual_learnability": learnability(grey),
    }


def video_readings(frames: Sequence[Pixels], *, bytes_per_pixel: Sequence[float]) -> dict[str, float]:
    """Returns the mean of the frames' readings, with breadth, coherence, originality and SSIM read between frames."""
    readings = [picture_readings(f, bytes_per_pixel=b) for f, b in zip(frames, bytes_per_pixel, strict=True)]
    found = {d: _mean([r[d] for r in readings]) for d in (readings[0] if readings else ())}
    greys = [luminance(f) for f in frames]
    pairs = [(a, b) for a, b in pairwise(greys) if a.shape == b.shape]
    return {
        **found,
        "semantic_breadth": breadth([colours(f, HISTOGRAM_LEVELS) for f in frames]),
        "coherence": _mean([correlation(a, b) for a, b in pairs]),
        "originality": _mean([float(np.abs(a - b).mean() > STILL) for a, b in pairs]),
        "frame_ssim": _mean([ssim(a, b) for a, b in pairs]),
    }


def correlation(a: Floats, b: Floats) -> float:
    """Returns Pearson's correlation of two arrays of one shape; NaN where one of them is constant or empty."""
    if not a.size:
        return math.nan
    x, y = a - a.mean(), b - b.mean()
    scale = math.sqrt(float((x * x).sum()) * float((y * y).sum()))
    return float((x * y).sum()) / scale if scale > 1e-9 * a.size else math.nan


def breadth(vectors: Sequence[npt.NDArray[np.number]]) -> float:
    """Returns 1 − the mean cosine over all pairs of `vectors`; NaN for fewer than two."""
    if not vectors:
        return math.nan
    stacked = np.stack(vectors).astype(np.float64)
    return float(static_windows.breadth(stacked, np.zeros(len(stacked), np.int64), 1)[0])


def _edges(grey: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Returns the strength (k,) and the orientation bin (k,) of the inner pixels, by central differences."""
    if min(grey.shape) < 3:
        return np.zeros(0), np.zeros(0, np.int64)
    across, down = grey[1:-1, 2:] - grey[1:-1, :-2], grey[2:, 1:-1] - grey[:-2, 1:-1]
    turn = np.arctan2(down, across) % math.pi / math.pi
    bins = np.minimum((turn * ORIENTATIONS).astype(np.int64), ORIENTATIONS - 1)
    return np.hypot(across, down).ravel(), bins.ravel()


def _sharpness(grey: Floats) -> float:
    """Returns log(1 + variance of the Laplacian): blur takes it away; NaN for a picture under 3 pixels."""
    if min(grey.shape) < 3:
        return math.nan
    inner = grey[1:-1, 1:-1]
    laplacian = grey[1:-1, 2:] + grey[1:-1, :-2] + grey[2:, 1:-1] + grey[:-2, 1:-1] - 4.0 * inner
    return math.log1p(float(laplacian.var()))


def _cell_breadth(pixels: Pixels) -> float:
    """Returns the spread of the colour histograms of a 4 × 4 grid of cells; NaN for a picture under 4 pixels."""
    if min(pixels.shape[:2]) < GRID:
        return math.nan
    cells = [cell for band in np.array_split(pixels, GRID) for cell in np.array_split(band, GRID, axis=1)]
    return breadth([colours(cell, HISTOGRAM_LEVELS) for cell in cells])


def _mean(values: Sequence[float]) -> float:
    known = [v for v in values if not math.isnan(v)]
    return math.fsum(known) / len(known) if known else math.nan
