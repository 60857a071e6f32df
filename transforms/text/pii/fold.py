"""Skeletons: texts folded to one byte a character, which all patterns for personal data read.

ASCII stands as it is; full-width forms, odd hyphens and odd spaces as the ASCII they look like; LETTER for other
letters of the alphabets of Europe, OTHER for all else. Zero-width characters and soft hyphens have no byte, so that
they cannot hide a number.
"""

from functools import cache

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import point
from transforms.text.normal.normalize_kernel import Bytes, Offsets

LETTER, OTHER, DROP = 0x80, 0x81, 0x82  # DROP never gets into a skeleton
_FOLDED_END = 0x2213  # of the table; above it only full-width forms are folded


@cache
def folds() -> Bytes:
    """Returns (_FOLDED_END,) the skeleton byte of each code point below the full-width forms."""
    table = np.full(_FOLDED_END, OTHER, np.uint8)
    table[:0x80] = np.arange(0x80)
    table[[c for c in range(0xC0, 0x530) if chr(c).isalpha()]] = LETTER
    table[[0xA0, 0x2007, 0x2009, 0x202F]] = ord(" ")
    table[[0x2010, 0x2011, 0x2012, 0x2013, 0x2212]] = ord("-")
    table[[0xAD, 0x200B, 0x200C, 0x200D, 0x2060]] = DROP
    return table


@kernel
def fold(
    data: Bytes,
    offsets: Offsets,
    valid: Array,
    folds: Bytes,
    out: Bytes,
    starts: Array,
    drops: Array,
    drop_starts: Array,
) -> int:
    """Fills the skeletons and the positions before which characters were dropped; returns how many were."""
    to, dropped = 0, 0
    for row in range(len(offsets) - 1):
        at, stop, begin = offsets[row], offsets[row + 1] if valid[row] else offsets[row], to
        while at < stop:
            byte = data[at]
            if byte < 0x80:
                out[to] = byte
                to += 1
                at += 1
                continue
            char, at = point(data, at)
            folded = OTHER
            if char < _FOLDED_END:
                folded = folds[char]
            elif 0xFF01 <= char <= 0xFF5E:
                folded = char - 0xFEE0
            if folded == DROP:
                drops[dropped] = to - begin
                dropped += 1
                continue
            out[to] = folded
            to += 1
        starts[row + 1], drop_starts[row + 1] = to, dropped
    return dropped
