"""Kernels that find the repeated n-grams of one text.

An n-gram that occurs twice is made of two (n−1)-grams that do, so each n looks only at places that the n before
left over: `at` (k,), ascending; `ids` (k,) names the n-gram that begins there, `counts[id]` says how often.
`ends` (w + 1,) are the characters before each token. The arrays are those of a `Sheet`; `tallies` are the counts.
"""

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.scan import table_size

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def repeated(at: Array, ids: Array, counts: Array, size: int) -> int:
    """Drops, in place, the n-grams that occur once; returns how many of `size` are left."""
    kept = 0
    for k in range(size):
        if counts[ids[k]] > 1:
            at[kept], ids[kept] = at[k], ids[k]
            kept += 1
    return kept


@kernel
def longer(at: Array, ids: Array, counts: Array, size: int, n: int, codes: Array, pairs: Array, slots: Array) -> int:
    """Turns the repeated (n−1)-grams, in place, into the repeated n-grams; returns how many there are."""
    table = table_size(size)
    slots[:table] = 0
    mask, distinct, found = table - 1, 0, np.int64(0)
    for k in range(size - 1):
        if at[k + 1] != at[k] + 1:
            continue
        pair = (np.uint64(ids[k]) << np.uint64(32)) | np.uint64(codes[at[k] + n - 1])
        slot = np.int64(((pair * _GOLDEN) >> np.uint64(31)) & np.uint64(mask))
        while slots[slot] and pairs[slots[slot] - 1] != pair:
            slot = (slot + 1) & mask
        gram = slots[slot] - 1
        if gram < 0:
            gram = distinct
            distinct += 1
            slots[slot], pairs[gram], counts[gram] = gram + 1, pair, 0
        counts[gram] += 1
        at[found], ids[found] = at[k], gram
        found += 1
    return repeated(at, ids, counts, found)


@kernel
def top(at: Array, ids: Array, counts: Array, size: int, n: int, ends: Array, longest: bool) -> tuple[int, int]:
    """Returns (characters without spaces, count) of the most frequent n-gram; of ties the first or the longest."""
    most, chars = 0, 0
    for k in range(size):
        count, length = counts[ids[k]], ends[at[k] + n] - ends[at[k]]
        if count > most or (longest and count == most and length > chars):
            most, chars = count, length
    return chars, most


@kernel
def greedy(at: Array, ids: Array, size: int, n: int, ends: Array, seen: Array) -> int:
    """Returns the characters of repeats met by a scan that jumps over each repeat."""
    chars, free = 0, 0
    for k in range(size):
        seen[ids[k]] = 0
    for k in range(size):
        if at[k] < free:
            continue
        if seen[ids[k]]:
            chars += ends[at[k] + n] - ends[at[k]]
            free = at[k] + n
        seen[ids[k]] = 1
    return chars


@kernel
def covered(at: Array, size: int, n: int, ends: Array) -> int:
    """Returns the characters of all tokens in a repeated n-gram, including first copies."""
    chars, free = 0, 0
    for k in range(size):
        begin = max(at[k], free)
        free = at[k] + n
        chars += ends[free] - ends[begin]
    return chars
