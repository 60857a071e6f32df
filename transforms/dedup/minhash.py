"""Shingles and their MinHash signatures, by kernels over the bytes of key texts.

A shingle is `ngram` tokens in a row, as a 64-bit hash; a token is a word, or one letter (with its marks) of a
script without spaces, so Chinese text has character shingles. Row k of band b keeps the least of
`high + a · low` (mod 2^32) over all shingles, `high` and `low` the halves of the hash and `a` an odd factor of its
own: a permutation of the shingles by all 64 bits of their hashes, in arithmetic that a CPU does eight at a time.
A band is the 64-bit hash of its rows. Broder 1997; Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, 3.4.
"""

import numpy as np
import pyarrow as pa

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import point as decode
from transforms.text.keys import tables as key_tables
from transforms.text.keys.kernels import ONES, Bits, bytes_before, load, mixed
from transforms.text.keys.tables import MARK, UNSPACED
from transforms.text.utf8 import buffers

_STEP = np.uint64(0x9E3779B97F4A7C15)
_SPACE = 32


def factors(count: int, seed: int) -> Array:
    """Returns (count,) uint32: seeded odd factors, one per row of the signature."""
    return np.random.default_rng(seed).integers(0, 1 << 32, count, np.uint32) | np.uint32(1)


def signatures(keys: pa.LargeStringArray, ngram: int, bands: int, rows: int, seed: int) -> tuple[Array, Array]:
    """Returns (n, bands) uint64 band hashes and (n,) int64 shingles, repeats counted; 0 bands where there is none."""
    data, offsets, _ = buffers(keys)
    found, counts = np.zeros((len(keys), bands), np.uint64), np.zeros(len(keys), np.int64)
    scratch = np.empty(_longest(offsets) + 1, np.uint64)
    least = np.empty(bands * rows, np.uint32)
    sign(data, offsets, key_tables.properties(), ngram, factors(bands * rows, seed), scratch, least, found, counts)
    return found, counts


def shingles(keys: pa.LargeStringArray, ngram: int) -> pa.LargeListArray:
    """Returns the set of each key's shingles, as sorted distinct uint64 hashes."""
    data, offsets, _ = buffers(keys)
    ends = np.zeros(len(keys) + 1, np.int64)
    out = np.empty(int(offsets[-1] - offsets[0]) + 1, np.uint64)
    collect(data, offsets, key_tables.properties(), ngram, out, ends)
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(out[: ends[-1]]))


def _longest(offsets: Array) -> int:
    return int(np.diff(offsets).max(initial=0))


@kernel
def sign(
    data: Array, offsets: Array, properties: Array, ngram: int, factors: Array, scratch: Array, least: Array,
    found: Array, counts: Array,
) -> None:  # fmt: skip
    """Writes the bands of each key to `found` (n, bands), and how many shingles it has to `counts`."""
    rows = least.shape[0] // found.shape[1]
    for row in range(found.shape[0]):
        count = hash_shingles(data, offsets[row], offsets[row + 1], properties, ngram, scratch)
        counts[row] = count
        if count:
            _minimise(scratch[:count], factors, least)
            for band in range(found.shape[1]):
                found[row, band] = _band(least, band * rows, rows, np.uint64(band))


@kernel
def _minimise(hashes: Array, factors: Array, least: Array) -> None:
    """Writes the least of all permuted hashes to `least`, one per factor."""
    least[:] = np.uint32(0xFFFFFFFF)
    for k in range(hashes.shape[0]):
        _permute(np.uint32(hashes[k]), np.uint32(hashes[k] >> np.uint64(32)), factors, least)


@kernel
def _permute(low: Bits, high: Bits, factors: Array, least: Array) -> None:
    for k in range(factors.shape[0]):
        value = np.uint32(high + factors[k] * low)
        least[k] = min(least[k], value)


@kernel
def _band(least: Array, start: int, rows: int, state: Bits) -> Bits:
    for k in range(start, start + rows):
        state = mixed((state ^ np.uint64(least[k])) * _STEP)
    return state


@kernel
def collect(data: Array, offsets: Array, properties: Array, ngram: int, out: Array, ends: Array) -> None:
    """Writes the sorted distinct shingles of each key to `out`, and where they end to `ends` (n + 1,)."""
    to = 0
    for row in range(offsets.shape[0] - 1):
        count = hash_shingles(data, offsets[row], offsets[row + 1], properties, ngram, out[to:])
        found = np.sort(out[to : to + count])
        for k in range(count):
            if k == 0 or found[k] != found[k - 1]:
                out[to] = found[k]
                to += 1
        ends[row + 1] = to


@kernel
def hash_shingles(data: Array, at: int, end: int, properties: Array, ngram: int, out: Array) -> int:
    """Writes the hash of every shingle of the key `data[at:end]` to `out`, in order; returns how many there are."""
    count = hash_tokens(data, at, end, properties, out) - ngram + 1
    for k in range(count):
        state = np.uint64(0)
        for j in range(k, k + ngram):
            state = (state + out[j]) * _STEP
        out[k] = mixed(state)
    return max(count, 0)


@kernel
def hash_tokens(data: Array, at: int, end: int, properties: Array, out: Array) -> int:
    """Writes the hash of every token of the key `data[at:end]` to `out`, in order; returns how many there are."""
    count, state, alone, empty = 0, np.uint64(0), False, True
    while at < end:
        while at < end and not alone and data[at] > _SPACE and data[at] < 0x80:
            chunk, size = ascii_chunk(data, at, end)
            state = (state ^ chunk) * _STEP
            empty = False
            at += size
        if at == end:
            break
        point, at = decode(data, at)
        kind = properties[point] & np.uint32(UNSPACED | MARK) if point >= 0x80 else np.uint32(0)
        starts = (alone and not kind & np.uint32(MARK)) or kind & np.uint32(UNSPACED)
        if (starts or point == _SPACE) and not empty:
            out[count] = mixed(state)
            count += 1
            state, empty = np.uint64(0), True
        if starts and _SPACE < point < 0x80:  # a word after an unspaced letter is hashed like any other, by chunks
            alone, at = False, at - 1
            continue
        if point != _SPACE:
            state = (state ^ np.uint64(point)) * _STEP
            empty = False
        if starts or point == _SPACE:
            alone = kind & np.uint32(UNSPACED) != 0
    if not empty:
        out[count] = mixed(state)
        count += 1
    return count


@kernel
def ascii_chunk(data: Array, at: int, end: int) -> tuple[Bits, int]:
    """Returns up to 8 bytes from `at` on, as far as they are ASCII and no space, and how many they are."""
    word = load(data, at, min(8, end - at))
    stops = ((((word - ONES * np.uint64(_SPACE + 1)) & ~word) | word) >> np.uint64(7)) & ONES
    size = bytes_before(stops)
    if size == 8:
        return word, size
    return word & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)), size
