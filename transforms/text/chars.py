"""Kernels on the bytes of one text: its code points, their number, the hash of a stretch of them."""

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.tables import BLANK

_PRIME = np.uint64(0x9E3779B97F4A7C15)
SEED = np.uint64(0x243F6A8885A308D3)


@kernel
def point(data: Array, at: int) -> tuple[int, int]:
    """Returns the code point that begins at byte `at`, and where the next one begins."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, at + 1
    if first < 0xE0:
        return ((first & 0x1F) << 6) | (data[at + 1] & 0x3F), at + 2
    if first < 0xF0:
        return ((first & 0x0F) << 12) | ((data[at + 1] & 0x3F) << 6) | (data[at + 2] & 0x3F), at + 3
    high = ((first & 0x07) << 18) | ((data[at + 1] & 0x3F) << 12)
    return high | ((data[at + 2] & 0x3F) << 6) | (data[at + 3] & 0x3F), at + 4


@kernel
def mixed(state: int, value: int) -> int:
    """Returns the hash of a sequence from the hash of what came before and the next value."""
    folded = (state ^ np.uint64(value)) * _PRIME
    return folded ^ (folded >> np.uint64(29))


@kernel
def avalanche(state: np.uint64) -> np.uint64:
    """Returns a uint64 in which every bit depends on every bit of `state` (the last step of SplitMix64)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@kernel
def word64(data: Array, at: int) -> int:
    """Returns eight bytes as one number; unsigned places let the compiler make a single load of it."""
    word, first = np.uint64(0), np.uint64(at)
    for k in range(8):
        word |= np.uint64(data[first + np.uint64(k)]) << np.uint64(8 * k)
    return word


@kernel
def hashed(data: Array, start: int, stop: int) -> int:
    """Returns the uint64 hash of the bytes `data[start:stop]`, eight at a time."""
    state, at = SEED ^ np.uint64(stop - start), start
    while at + 8 <= stop:
        state = mixed(state, word64(data, at))
        at += 8
    if at < stop and at + 8 <= len(data):
        state = mixed(state, word64(data, at) & ((np.uint64(1) << np.uint64(8 * (stop - at))) - np.uint64(1)))
    elif at < stop:
        word = np.uint64(0)
        for k in range(stop - at):
            word |= np.uint64(data[at + k]) << np.uint64(8 * k)
        state = mixed(state, word)
    return state ^ (state >> np.uint64(32))


@kernel
def characters(data: Array, start: int, stop: int) -> int:
    """Returns how many code points begin in `data[start:stop]`."""
    found = 0
    for byte in data[start:stop]:
        found += (byte & 0xC0) != 0x80
    return found


@kernel
def few_characters(data: Array, start: int, stop: int) -> int:
    """Returns what `characters` does, faster for the length of a word."""
    found = 0
    while start < stop:
        _, start = point(data, start)
        found += 1
    return found


@kernel
def trimmed(data: Array, start: int, stop: int, table: Array) -> tuple[int, int]:
    """Returns (start, stop) without white space at both ends."""
    while start < stop:
        char, after = point(data, start)
        if not table[char] & BLANK:
            break
        start = after
    while start < stop:
        last = stop - 1
        while last > start and (data[last] & 0xC0) == 0x80:
            last -= 1
        char, _ = point(data, last)
        if not table[char] & BLANK:
            break
        stop = last
    return start, stop
