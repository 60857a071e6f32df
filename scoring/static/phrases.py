"""Which texts hold one of the phrases of boilerplate: one pass over their characters, whatever the case."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from scoring.core.jit import kernel
from scoring.static.chars import code_points
from scoring.static.kernels import Ints, Points

PHRASES = (
    "cookie", "privacy policy", "terms of use", "terms of service", "terms and conditions", "all rights reserved",
    "javascript", "lorem ipsum", "click here", "read more", "sign up", "log in", "subscribe to", "newsletter",
    "add to cart", "share on facebook", "powered by", "skip to content", "版权所有", "点击这里",
)  # fmt: skip

KELVIN = 0x212A  # K, whose lower case is k: the only character beyond ASCII that becomes a letter of a phrase
_BEGINNING = 4  # characters that are looked up: no phrase has fewer
_KEYS = 1 << 16


def hold_phrases(texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Returns (n,) whether the lower case of a text has one of `PHRASES` in it."""
    sizes = np.array([len(t) for t in texts], np.int64)
    return _search(code_points("".join(texts)), sizes, *_tables())


@cache
def _tables() -> tuple[Points, Ints, npt.NDArray[np.bool_]]:
    """Returns the phrases one behind another, where each begins and the last ends, and the keys of their beginnings."""
    points, keys = code_points("".join(PHRASES)).copy(), np.zeros(_KEYS, bool)
    starts = np.cumsum([0, *map(len, PHRASES)], dtype=np.int64)
    for start in starts[:-1]:
        key = 0
        for point in points[start : start + _BEGINNING].tolist():
            key = _next(key, point)
        keys[key] = True
    return points, starts, keys


@kernel
def _next(key: int, point: int) -> int:
    """Returns the key of the last four characters, one of them new: each is shifted out after four steps."""
    return ((key << 4) ^ (point * 40503)) & 0xFFFF


@kernel
def _fold(point: int) -> int:
    if 65 <= point <= 90:
        return point + 32
    return 107 if point == KELVIN else point


@kernel
def _search(
    points: Points, sizes: Ints, phrases: Points, starts: Ints, keys: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    found, begin = np.zeros(len(sizes), np.bool_), 0
    for text in range(len(sizes)):
        end, key = begin + sizes[text], 0
        for k in range(begin, end):
            key = _next(key, _fold(np.int64(points[k])))
            if keys[key] and k - begin >= 3 and _is_at(points, k - 3, end, phrases, starts):
                found[text] = True
                break
        begin = end
    return found


@kernel
def _is_at(points: Points, at: int, end: int, phrases: Points, starts: Ints) -> bool:
    """Returns whether a phrase begins at `at` and ends by `end`."""
    for phrase in range(len(starts) - 1):
        size = starts[phrase + 1] - starts[phrase]
        if at + size > end:
            continue
        same = 0
        while same < size and _fold(np.int64(points[at + same])) == phrases[starts[phrase] + same]:
            same += 1
        if same == size:
            return True
    return False
