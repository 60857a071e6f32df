"""Hashes of small values that decide samples, folds and orders."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def hash64(*values: object) -> int:
    """Returns a 64-bit hash of `values`, the same on every machine."""
    text = "\x1f".join(map(str, values))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def chosen(ids: Sequence[str], ratio: float, seed: int, purpose: str) -> npt.NDArray[np.bool_]:
    """Returns (n,) whether a row belongs to the share `ratio` that a hash of its id draws for `purpose`."""
    limit = ratio * 2.0**64
    return np.fromiter((hash64(seed, purpose, i) < limit for i in ids), bool, len(ids))
