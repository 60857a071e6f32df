"""Semantic breadth and coherence of a text, read without a model from the words of its windows."""

from functools import cache

import numpy as np
import numpy.typing as npt

from scoring.static import word_kernels as static_word_kernels
from scoring.static.block import Lower

WIDTH = 256  # a window's vector: signed feature hashing (Weinberger et al. 2009) of its word counts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def hash_words(words: Lower) -> tuple[Ints, Floats]:
    """Returns the bucket (v,) in [0, 256) and the sign (v,) of each word, by the CRC-32 of its UTF-8."""
    data = np.frombuffer("".join(words.vocabulary).encode("utf-8", "surrogatepass"), np.uint8)
    sizes = static_word_kernels.utf8_sizes(words.points, words.starts, words.stops)
    hashes = static_word_kernels.crc32(data, sizes, _crc_table())
    return hashes % WIDTH, np.where(hashes & WIDTH, -1.0, 1.0)


@cache
def _crc_table() -> npt.NDArray[np.uint32]:
    """Returns the table of CRC-32, (256,)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    return table


def window_vectors(windows: Ints, buckets: Ints, signs: Floats, count: int) -> Floats:
    """Returns (count, 256) hashed word counts: word k of window `windows[k]` adds its sign to its bucket.

    The entries are integers, so dot products of them are exact in whatever order they are summed.
    """
    flat = np.bincount(windows * WIDTH + buckets, weights=signs, minlength=count * WIDTH)
    return np.asarray(flat, np.float64).reshape(count, WIDTH)


def coherence(vectors: Floats, owners: Ints, texts: int) -> Floats:
    """Returns (texts,) the mean cosine of neighbouring windows; NaN for a text with fewer than two.

    `owners` (w,) ascending: the text of each window.
    """
    squares = (vectors**2).sum(axis=1)
    same = owners[:-1] == owners[1:]
    dots = (vectors[:-1] * vectors[1:]).sum(axis=1)[same]
    scale = np.sqrt(squares[:-1] * squares[1:])[same]
    cosines = np.divide(dots, scale, out=np.zeros(len(dots)), where=scale > 0)
    pairs = np.bincount(owners[1:][same], minlength=texts).astype(np.float64)
    sums = np.bincount(owners[1:][same], weights=cosines, minlength=texts)
    return np.asarray(np.divide(sums, pairs, out=np.full(texts, np.nan), where=pairs > 0))


def breadth(vectors: Floats, owners: Ints, texts: int) -> Floats:
    """Returns (texts,) 1 − the mean cosine over all pairs of windows, in [0, 2]; NaN for fewer than two.

    With unit vectors u_1 … u_k the mean over pairs is (‖Σu‖² − k)/(k² − k).
    """
    norms = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    units = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    counts = np.bincount(owners, minlength=texts)
    result = np.full(texts, np.nan)
    ends = np.cumsum(counts)
    for text in np.flatnonzero(counts > 1):
        k = int(counts[text])
        rows = units[ends[text] - k : ends[text]]
        total = rows.sum(axis=0)
        result[text] = 1.0 - (float((total**2).sum()) - float((rows**2).sum())) / (k * k - k)
    return result
