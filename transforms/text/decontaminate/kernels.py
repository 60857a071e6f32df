"""Kernels that hash the word n-grams of texts and look them up in an index of benchmark items.

The hash of an n-gram is a polynomial in the hashes of its words, so with the polynomials of all prefixes of a text an
n-gram of any length costs one multiplication.
"""

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import avalanche, point
from transforms.text.search import lower_bound
from transforms.text.tables import MARK, UNSPACED, WORD

_K1 = np.uint64(0x9E3779B97F4A7C15)
_BASE = np.uint64(0xD6E8FEB86659FD93)  # odd
_ZERO, _ONE, _THREE, _SEVEN = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(7)
CASED = 0x20000  # no letter above it has case

Letters = tuple[Array, Array]  # kind and lower case by code point
Searched = tuple[Array, Array, Array, Array, Array, Array, np.uint64]  # the arrays of an `Index`, and its shift
Triple = tuple[Array, Array, Array]


@kernel
def _prefixes(data: Array, at: int, stop: int, letters: Letters, out: Array) -> int:
    """Fills `out` with the polynomial of the first k words, k = 0, 1, …; returns how many words there are."""
    table, lower = letters
    words, state, alone = 0, _ZERO, False
    out[0] = _ZERO
    while at < stop:
        char = data[at]
        if char < 0x80:
            at += 1
        else:
            char, at = point(data, at)
        kind = table[char]
        if kind == WORD and not alone:
            state = _letter(state, lower[char])
            continue
        if kind == MARK:
            continue
        if not kind & MARK:
            if state:
                out[words + 1] = out[words] * _BASE + avalanche(state)
                words, state = words + 1, _ZERO
            alone = kind == UNSPACED
        if kind:
            state = _letter(state, lower[char] if char < CASED else char)
    if state:
        out[words + 1] = out[words] * _BASE + avalanche(state)
        words += 1
    return words


@kernel
def _letter(state: np.uint64, char: int) -> np.uint64:
    """Returns the hash of a word from that of its beginning, which is 0 for none, and the next letter."""
    return (state ^ np.uint64(char)) * _K1 + _ONE


@kernel
def _power(words: int) -> np.uint64:
    found = _ONE
    for _ in range(words):
        found *= _BASE
    return found


@kernel
def _ngram(prefixes: Array, at: int, words: int, power: np.uint64) -> np.uint64:
    """Returns the hash of the `words` words from `at`; `power` is the base to that power."""
    return avalanche((prefixes[at + words] - prefixes[at] * power) ^ (np.uint64(words) * _K1))


@kernel
def _room(offsets: Array) -> int:
    """Returns how many prefixes the longest text may have: a word takes two bytes with what parts it from the next."""
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    return longest // 2 + 2


@kernel
def hash_items(
    data: Array, offsets: Array, letters: Letters, n: int, least: int, found: Array, starts: Array, words: Array
) -> None:
    """Fills `found` with the n-grams of each text, those of text k from starts[k] on, and `words` with its words.

    A text of fewer than n words is one n-gram, one of fewer than `least` has none.
    """
    prefixes = np.empty(_room(offsets), np.uint64)
    size = 0
    for row in range(len(offsets) - 1):
        count = _prefixes(data, offsets[row], offsets[row + 1], letters, prefixes)
        words[row] = count
        length = min(n, count)
        power = _power(length)
        for at in range(count - length + 1 if count >= least else 0):
            found[size] = _ngram(prefixes, at, length, power)
            size += 1
        starts[row + 1] = size


@kernel
def _find(hashes: Array, wanted: np.uint64) -> int:
    """Returns where the ascending `hashes` hold `wanted`, or -1."""
    at = lower_bound(hashes, np.int64(0), len(hashes), wanted)
    return at if at < len(hashes) and hashes[at] == wanted else -1


@kernel
def search(
    data: Array, offsets: Array, live: Array, letters: Letters, index: Searched, seen: Triple, found: Triple
) -> None:
    """Fills `found`, (n,) each, for every live text: best item or -1, its n-grams there, share of covered words.

    `letters` are the tables of `_prefixes`, `index` the arrays of an `Index`; `seen` is room, filled with -1.
    """
    hashes, starts, postings, sizes, lengths, bits, shift = index
    ngram_seen, item_seen, item_count = seen  # the last text that had it; how many n-grams of the item it had
    best, counts, ratios = found
    prefixes = np.empty(_room(offsets), np.uint64)
    powers = np.empty(len(lengths), np.uint64)
    for k in range(len(lengths)):
        powers[k] = _power(lengths[k])
    for row in range(len(live)):
        if not live[row]:
            continue
        words = _prefixes(data, offsets[row], offsets[row + 1], letters, prefixes)
        covered = until = 0
        for at in range(words):
            for k in range(len(lengths)):
                length = lengths[k]
                if at + length > words:
                    break
                wanted = _ngram(prefixes, at, length, powers[k])
                place = wanted >> shift
                if not bits[place >> _THREE] >> np.uint8(place & _SEVEN) & 1:
                    continue
                ngram = _find(hashes, wanted)
                if ngram < 0:
                    continue
                if at + length > until:
                    covered += at + length - max(until, at)
                    until = at + length
                if ngram_seen[ngram] == row:
                    continue
                ngram_seen[ngram] = row
                for item in postings[starts[ngram] : starts[ngram + 1]]:
                    if item_seen[item] != row:
                        item_seen[item], item_count[item] = row, 0
                    item_count[item] += 1
                    # an item's count only grows, so the best of all prefixes is compared at its last step too
                    best[row] = _better(item, best[row], item_count, sizes)
        counts[row] = item_count[best[row]] if best[row] >= 0 else 0
        ratios[row] = covered / max(1, words)


@kernel
def _better(item: int, best: int, counts: Array, sizes: Array) -> int:
    """Returns the item with the higher overlap, the first of two that tie; -1 is none."""
    if best < 0:
        return item
    left, right = counts[item] * np.int64(sizes[best]), counts[best] * np.int64(sizes[item])
    return item if left > right or (left == right and item < best) else best
