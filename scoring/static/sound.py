"""The static score's reading of a sound, from the spectra of its first half minute (docs/scoring.md)."""

import numpy as np
import numpy.typing as npt

from scoring.static import windows as static_windows
from scoring.static.pictures import entropy

MAX_SECONDS = 30.0
FRAME_S = 0.025
FRAMES_PER_WINDOW = 40  # one second
BANDS = 20
FLOOR = 1e-10  # power of −100 dB: digital silence has a loudness too
SILENCE_DB = -60.0
CLIPPED = 32_700  # of 32 767
LEVEL_DB = 3.0
ONSET_DB = 6.0

Floats = npt.NDArray[np.float64]


def sound_readings(samples: npt.NDArray[np.int16], *, rate_hz: int) -> dict[str, float]:
    """Returns the dimensions that a mono sound (n,) has a reading of; none for one shorter than a frame."""
    samples = samples[: int(MAX_SECONDS * rate_hz)]
    size = max(1, int(FRAME_S * rate_hz))
    frames = samples[: len(samples) // size * size].reshape(-1, size).astype(np.float64) / 32768.0
    if not len(frames):
        return {}
    loudness = 10.0 * np.log10(np.maximum((frames**2).mean(axis=1), FLOOR))
    spectra = np.abs(np.fft.rfft(frames * np.hanning(size), axis=1)) ** 2
    breadth, coherence = _windows(spectra)
    return {
        "lexical_diversity": entropy(spectra.sum(axis=0)),
        "syntactic_variety": entropy(np.unique(np.floor(loudness / LEVEL_DB), return_counts=True)[1]),
        "reading_difficulty": float(np.quantile(loudness, 0.95) - np.quantile(loudness, 0.05)),
        "compression": _compression(samples),
        "knowledge_density": 100.0 * float((np.diff(loudness) > ONSET_DB).sum()) / len(loudness),
        "semantic_breadth": breadth,
        "coherence": coherence,
        "cleanliness": _cleanliness(loudness, samples),
    }


def _windows(spectra: Floats) -> tuple[float, float]:
    """Returns breadth and coherence of the spectral shapes of the one-second windows that are not silent.

    A shape (w, 20) is the log energy of the bands less its mean, so loudness does not count. NaN for
    fewer than two windows.
    """
    bands = np.stack([b.sum(axis=1) for b in np.array_split(spectra, BANDS, axis=1)], axis=1)
    count = len(bands) // FRAMES_PER_WINDOW
    energies = bands[: count * FRAMES_PER_WINDOW].reshape(count, FRAMES_PER_WINDOW, BANDS).sum(axis=1)
    levels = np.log10(np.maximum(energies[energies.sum(axis=1) > FLOOR], FLOOR))
    shapes = levels - levels.mean(axis=1, keepdims=True)
    owners = np.zeros(len(shapes), np.int64)
    return float(static_windows.breadth(shapes, owners, 1)[0]), float(static_windows.coherence(shapes, owners, 1)[0])


def _compression(samples: npt.NDArray[np.int16]) -> float:
    """Returns compressed over plain bytes (zstd, level 3) of the samples' differences."""
    import zstandard

    data = np.diff(samples, prepend=samples[:1]).tobytes()
    return len(zstandard.ZstdCompressor(level=3).compress(data)) / len(data)


def _cleanliness(loudness: Floats, samples: npt.NDArray[np.int16]) -> float:
    """Returns 1 − the share of silent frames − the share of clipped samples, at least 0."""
    silent = float((loudness < SILENCE_DB).mean())
    clipped = float((np.abs(samples.astype(np.int32)) >= CLIPPED).mean())
    return max(0.0, 1.0 - silent - clipped)
