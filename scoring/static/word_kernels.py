"""Compiled loops over distinct words: their bits, syllables and hashes."""

import numpy as np
import numpy.typing as npt

from scoring.core.jit import kernel
from scoring.static.kernels import DIGIT, UPPER, Classes, Ints, Places, Points

# Bits of a word.
TERM, CAPITAL, NAME = 1, 2, 4

LETTER_E, LETTER_I = 101, 73
APOSTROPHES = (39, 0x2019)
VOWELS = (97, 101, 105, 111, 117, 121)  # a e i o u y
NOT_SILENT = (101, 108, 121)  # e l y: before a final e that is heard


@kernel
def word_bits(
    points: Points, starts: Places, stops: Places, classes: Classes, long_chars: int
) -> npt.NDArray[np.uint8]:
    """Returns the bits of each word (m,): a number or one of `long_chars` characters, in capitals, a name."""
    found = np.zeros(len(starts), np.uint8)
    for word in range(len(starts)):
        start, size = starts[word], stops[word] - starts[word]
        kind = classes[points[start]]
        if kind & DIGIT or size >= long_chars:
            found[word] |= TERM
        if kind & UPPER:
            found[word] |= CAPITAL
            if size > 1 and not (points[start] == LETTER_I and points[start + 1] in APOSTROPHES):
                found[word] |= NAME
    return found


@kernel
def syllables(points: Points, starts: Places, stops: Places) -> npt.NDArray[np.float64]:
    """Returns the syllables of each lower-case word (m,), as `static_text.syllables` counts them."""
    found = np.empty(len(starts))
    for word in range(len(starts)):
        groups, inside = 0, False
        for k in range(starts[word], stops[word]):
            vowel = points[k] in VOWELS
            groups += vowel and not inside
            inside = vowel
        if groups > 1 and points[stops[word] - 1] == LETTER_E:
            before = points[stops[word] - 2]
            groups -= before not in NOT_SILENT
        found[word] = max(1, groups)
    return found


@kernel
def crc32(data: npt.NDArray[np.uint8], sizes: Ints, table: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Returns the CRC-32 (m,) of words that lie one behind another in `data`, `sizes` (m,) bytes each."""
    found, k = np.empty(len(sizes), np.int64), 0
    for word in range(len(sizes)):
        code = np.uint32(0xFFFFFFFF)
        for _ in range(sizes[word]):
            code = np.uint32(table[(code ^ data[k]) & np.uint32(255)] ^ (code >> np.uint32(8)))
            k += 1
        found[word] = np.int64(code ^ np.uint32(0xFFFFFFFF))
    return found


@kernel
def utf8_sizes(points: Points, starts: Places, stops: Places) -> Ints:
    """Returns the bytes of each word in UTF-8, (m,)."""
    found = np.zeros(len(starts), np.int64)
    for word in range(len(starts)):
        for k in range(starts[word], stops[word]):
            p = points[k]
            found[word] += 1 + (p > 0x7F) + (p > 0x7FF) + (p > 0xFFFF)
    return found
