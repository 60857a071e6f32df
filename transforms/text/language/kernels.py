"""Kernels of the language model over UTF-8 bytes: vectors of spans of text, and the language of a vector."""

import math

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.language.model import BUCKETS, DIM, SLOTS, Tables

_OFFSET, _PRIME = np.uint32(2166136261), np.uint32(16777619)
_BUCKETS = np.uint64(BUCKETS)
_MEMO = 1 << 15  # words whose sums are kept at hand during one call, at most; a power of two
_MEMO_BYTES = 32  # of a word that is kept


@kernel
def _mix(found: np.uint32, byte: np.uint8) -> np.uint32:
    """Returns the hash `found` after one more byte; one above 127 counts as a negative number."""
    return np.uint32((found ^ np.uint32(np.int32(np.int8(byte)))) * _PRIME)


@kernel
def _is_space(byte: np.uint8) -> bool:
    """Whether fastText ends a word here."""
    return byte == 32 or byte == 0 or 9 <= byte <= 13  # noqa: PLR1714 (a set is slow here)


@kernel
def _equal(left: Array, at: int, right: Array, other: int, size: int) -> bool:
    """Whether `size` bytes of `left` from `at` are those of `right` from `other`."""
    k = 0
    while k < size and left[at + k] == right[other + k]:
        k += 1
    return k == size


@kernel
def _find(data: Array, start: int, end: int, found: np.uint32, slots: Array, spelling: Array, bounds: Array) -> int:
    """Returns the index of the word `data[start:end]`, whose hash is `found`, or -1."""
    slot = int(found) & (SLOTS - 1)
    while slots[slot] >= 0:
        index = slots[slot]
        size = bounds[index + 1] - bounds[index]
        if size == end - start and _equal(data, start, spelling, bounds[index], size):
            return int(index)
        slot = (slot + 1) & (SLOTS - 1)
    return -1


@kernel
def _note(found: np.uint32, known: Array, room: Array, count: int) -> int:
    """Puts the n-gram of hash `found` at `room[count]`; returns `count`, one more if the model knows it."""
    bucket = np.uint64(found) % _BUCKETS
    room[count] = bucket
    return count + int((known[bucket >> np.uint64(3)] >> (bucket & np.uint64(7))) & np.uint8(1))


@kernel
def _ngrams(data: Array, at: int, end: int, hashes: Array, known: Array, room: Array) -> tuple[int, int]:
    """Notes in `room` the n-grams of a word, until it is full or the word ends; returns how many, and where it ended.

    `hashes` (4,) are those of the n-grams that began one to three characters before `at`, and how many of the
    three there are. No branch depends on whether an n-gram is known, which halves the time.
    """
    a, b, c, chars = hashes[0], hashes[1], hashes[2], hashes[3]
    count = 0
    while at <= end and count <= room.size - 3:
        d = _OFFSET
        while True:
            byte = data[at] if at < end else np.uint8(62)
            a, b, c, d = _mix(a, byte), _mix(b, byte), _mix(c, byte), _mix(d, byte)
            at += 1
            if at >= end or data[at] & 0xC0 != 0x80:
                break
        count = _note(a, known, room, count)
        if chars >= 2:
            count = _note(b, known, room, count)
        if chars >= 3:
            count = _note(c, known, room, count)
        a, b, c, chars = d, a, b, np.uint32(chars + 1)
    hashes[0], hashes[1], hashes[2], hashes[3] = a, b, c, chars
    return count, at


@kernel
def _add(count: int, room: Array, rows: Array, grams: Array, total: Array) -> None:
    """Adds the vectors of the n-grams `room[:count]` to `total` (DIM,)."""
    for n in range(count):
        row = rows[room[n]]
        for k in range(total.size):
            total[k] += grams[row, k]


@kernel
def _sum_ngrams(
    data: Array, start: int, end: int, known: Array, rows: Array, grams: Array, room: Array, hashes: Array, total: Array
) -> int:
    """Sets `total` (DIM,) to the sum of the vectors of the n-grams of `<word>`; returns how many there were."""
    for k in range(DIM):
        total[k] = 0
    hashes[0], hashes[3] = _mix(_OFFSET, np.uint8(60)), 1
    added, at = 0, start
    while at <= end:
        count, at = _ngrams(data, at, end, hashes, known, room)
        _add(count, room, rows, grams, total)
        added += count
    return added


@kernel
def embed(data: Array, starts: Array, ends: Array, tables: Tables) -> tuple[Array, Array]:
    """Returns (s, DIM) float32 sums of vectors, and (s,) int64 how many, of the words in `data[start:end]`.

    A word's own sum is remembered, so that a frequent word costs one look-up; it never depends on what came before.
    """
    slots, spelling, bounds = tables.slots, tables.spelling, tables.bounds
    known, rows, grams = tables.known, tables.rows, tables.grams
    word_sums, word_counts = tables.word_sums, tables.word_counts
    sums = np.zeros((len(starts), DIM), np.float32)
    counts = np.zeros(len(starts), np.int64)
    kept = 64
    while kept < min(_MEMO, len(data) // 8):
        kept *= 2
    memo = np.empty((kept + 1, DIM), np.float32)  # the last one is for words too long to keep
    places = np.zeros((kept + 1, 3), np.int64)  # start, size and count of the word in this slot
    room, hashes = np.empty(256, np.int64), np.zeros(4, np.uint32)
    for s in range(len(starts)):
        at, end = starts[s], ends[s]
        while at < end:
            if _is_space(data[at]):
                at += 1
                continue
            first, found = at, _OFFSET
            while at < end and not _is_space(data[at]):
                found = _mix(found, data[at])
                at += 1
            size = at - first
            slot = int(found) & (kept - 1) if size <= _MEMO_BYTES else kept
            if slot == kept or places[slot, 1] != size or not _equal(data, first, data, places[slot, 0], size):
                index = _find(data, first, at, found, slots, spelling, bounds)
                places[slot, 0], places[slot, 1] = first, size
                if index >= 0:
                    places[slot, 2] = word_counts[index]
                    for k in range(DIM):
                        memo[slot, k] = word_sums[index, k]
                else:
                    places[slot, 2] = _sum_ngrams(data, first, at, known, rows, grams, room, hashes, memo[slot])
            counts[s] += places[slot, 2]
            for k in range(DIM):
                sums[s, k] += memo[slot, k]
    return sums, counts


@kernel
def add_up(values: Array, groups: Array, size: int) -> Array:
    """Returns (size, DIM) float32: the rows of `values` (n, DIM) added up by group (n,), in their order."""
    found = np.zeros((size, DIM), np.float32)
    for n in range(len(groups)):
        for k in range(DIM):
            found[groups[n], k] += values[n, k]
    return found


@kernel
def judge(sums: Array, counts: Array, tables: Tables) -> tuple[Array, Array]:
    """Returns (t,) int64 likeliest languages, and (t,) float64 their probabilities, of texts.

    The `counts` (t,) vectors of a text add up to its row of `sums` (t, DIM); its end is one vector more. The tree is
    walked down the likelier side first, and the other side is left out once it cannot win.
    """
    children, planes, end = tables.children, tables.planes, tables.end
    leaves = len(children) + 1
    languages, scores = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.float64)
    stack, logs = np.zeros(leaves + 1, np.int64), np.zeros(leaves + 1, np.float64)
    for t in range(len(counts)):
        best, best_log, depth = 0, -np.inf, 1
        stack[0], logs[0] = 2 * leaves - 2, 0.0
        while depth > 0:
            depth -= 1
            node, log = stack[depth] - leaves, logs[depth]
            if log < best_log:
                continue
            if node < 0:
                best, best_log = node + leaves, log
                continue
            dot = np.float32(0)
            for k in range(DIM):
                dot += planes[node, k] * (sums[t, k] + end[k])
            right = 1 / (1 + math.exp(-dot / (counts[t] + 1)))
            side, chance = (1, right) if right > 0.5 else (0, 1 - right)
            stack[depth], logs[depth] = children[node, 1 - side], log + math.log(1 - chance + 1e-5)
            stack[depth + 1], logs[depth + 1] = children[node, side], log + math.log(chance + 1e-5)
            depth += 2
        languages[t], scores[t] = best, min(math.exp(best_log), 1.0)
    return languages, scores
