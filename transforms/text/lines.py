"""Lines and paragraphs as 64-bit hashes over Arrow buffers, and texts without some of their lines.

A line ends at `\\n`, `\\r\\n` or `\\r`. Its normal form is `" ".join(line.split())`: no white space around it, one
space for each run inside. A line whose normal form is empty is blank: it parts paragraphs and counts as nothing
else. A paragraph is a run of lines between blank ones; it is the sequence of their normal forms. Characters are
code points of the normal form.

Hashes are the same on every machine. Of a billion distinct lines a given one shares its hash with another with
probability 5e-11.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import avalanche
from transforms.text.search import lower_bound
from transforms.text.utf8 import own_buffers

_K1 = np.uint64(0x9E3779B97F4A7C15)
_DOCUMENT, _PARAGRAPH = np.uint64(0x13198A2E03707344), np.uint64(0x243F6A8885A308D3)  # seeds: other hashes than lines'
_LINE, _ZERO, _SPACE = np.uint64(0x452821E638D01377), np.uint64(0), np.uint64(32)


Triple = tuple[Array, Array, Array]  # of `Segments`


class Segments(NamedTuple):
    """The lines or paragraphs of n texts: those of text k are [starts[k], starts[k + 1])."""

    hashes: Array  # (s,) uint64
    chars: Array  # (s,) int32, of the normal form
    starts: Array  # (n + 1,) int64


class Hashed(NamedTuple):
    """What `hash_lines` finds; null texts have no lines."""

    lines: Segments
    paragraphs: Segments
    documents: Array  # (n,) uint64: of the sequence of a text's lines; 0 where there is none


@kernel
def _folded(state: np.uint64, value: np.uint64) -> np.uint64:
    """Returns the hash of a sequence from the hash of what came before and the next value (FNV-1a's step)."""
    return (state ^ value) * _K1


# What a byte can begin: 0 nothing special, 1 a line end, 2 a space, 3 a space or a letter of two or three bytes.
_PLAIN, _ENDS, _BLANK, _MAY_BE_BLANK = 0, 1, 2, 3
_KINDS = np.zeros(256, np.uint8)
_KINDS[[9, 11, 12, 28, 29, 30, 31, 32]] = _BLANK
_KINDS[[10, 13]] = _ENDS
_KINDS[[0xC2, 0xE1, 0xE2, 0xE3]] = _MAY_BE_BLANK


@kernel
def _blank_bytes(data: Array, at: int) -> int:
    """Returns the bytes of the white space beyond ASCII at `at`, as `str.split` knows it; 0 if there is none."""
    first, second = data[at], data[at + 1]
    if first == 0xC2:
        return 2 if second in (0x85, 0xA0) else 0
    third = data[at + 2]
    if first == 0xE1:
        return 3 if second == 0x9A and third == 0x80 else 0  # U+1680
    if first == 0xE3:
        return 3 if second == 0x80 and third == 0x80 else 0  # U+3000
    if second == 0x81:
        return 3 if third == 0x9F else 0  # U+205F
    known = third <= 0x8A or third in (0xA8, 0xA9, 0xAF)  # U+2000 to U+200A, U+2028, U+2029, U+202F
    return 3 if second == 0x80 and known else 0


@kernel
def _line(data: Array, at: int, stop: int) -> tuple[np.uint64, int, int]:
    """Returns (hash, characters, end) of the line that begins at `at`; 0 characters if it is blank."""
    state, chars, gap = _LINE, 0, False
    while at < stop:
        kind = _KINDS[data[at]]
        if kind == _ENDS:
            break
        blank = 1 if kind == _BLANK else _blank_bytes(data, at) if kind == _MAY_BE_BLANK else 0
        if blank:
            gap = chars > 0
            at += blank
            continue
        if gap:
            state, chars, gap = _folded(state, _SPACE), chars + 1, False
        while True:  # to the end of the word, or to a byte that may be its end
            state = _folded(state, np.uint64(data[at]))
            chars += (data[at] & 0xC0) != 0x80
            at += 1
            if at >= stop or _KINDS[data[at]]:
                break
    return avalanche(state), chars, at


@kernel
def _after(data: Array, end: int, stop: int) -> int:
    """Returns where the line behind the one that ends at `end` begins: `end` itself at the end of the text."""
    if end >= stop:
        return end
    return end + 2 if data[end] == 13 and end + 1 < stop and data[end + 1] == 10 else end + 1


@kernel
def _hash_all(data: Array, offsets: Array, live: Array, lines: Triple, paragraphs: Triple, documents: Array) -> None:
    hashes, chars, starts = lines
    found, sizes, begins = paragraphs
    n = m = 0
    for row in range(len(live)):
        at, stop = offsets[row], offsets[row + 1] if live[row] else offsets[row]
        state, paragraph, size = _DOCUMENT, _PARAGRAPH, 0
        while at < stop:
            value, count, end = _line(data, at, stop)
            if count:
                hashes[n], chars[n] = value, count
                state, paragraph, size = _folded(state, value), _folded(paragraph, value), size + count
                n += 1
            at = _after(data, end, stop)
            if size and (not count or at >= stop):
                found[m], sizes[m] = avalanche(paragraph), size
                paragraph, size = _PARAGRAPH, 0
                m += 1
        starts[row + 1], begins[row + 1] = n, m
        documents[row] = avalanche(state) if n > starts[row] else _ZERO


def hash_lines(texts: pa.LargeStringArray) -> Hashed:
    """Returns the hashes of every line, paragraph and text of `texts`."""
    data, offsets, live = own_buffers(texts)
    most = int(np.count_nonzero(data == 10) + np.count_nonzero(data == 13)) + len(texts)
    lines, paragraphs = _room(most, len(texts)), _room(most, len(texts))
    documents = np.zeros(len(texts), np.uint64)
    _hash_all(data, offsets, live, tuple(lines), tuple(paragraphs), documents)
    return Hashed(_cut(lines), _cut(paragraphs), documents)


def _room(most: int, texts: int) -> Segments:
    return Segments(np.empty(most, np.uint64), np.empty(most, np.int32), np.zeros(texts + 1, np.int64))


def _cut(segments: Segments) -> Segments:
    """Returns `segments` without the room behind the last."""
    size = segments.starts[-1]
    return Segments(segments.hashes[:size].copy(), segments.chars[:size].copy(), segments.starts)


@kernel
def holds(values: Array, low: int, high: int, wanted: np.uint64) -> bool:
    """Returns whether the ascending `values[low:high]` hold `wanted`."""
    at = lower_bound(values, low, high, wanted)
    return at < high and values[at] == wanted


@kernel
def _copied(data: Array, start: int, stop: int, out: Array, size: int) -> int:
    """Copies bytes behind the `size` that `out` holds; returns its new size. A loop compiles faster than a slice."""
    for k in range(stop - start):
        out[size + k] = data[start + k]
    return size + stop - start


@kernel
def _remove(
    data: Array, offsets: Array, live: Array, values: Array, bounds: Array, removed: Array, out: Array, ends: Array
) -> None:
    size = 0
    for row in range(len(live)):
        at, stop = offsets[row], offsets[row + 1]
        low, high, begin, kept, last = bounds[row, 0], bounds[row, 1], size, at, 0
        while at < stop and low < high and live[row]:
            value, count, end = _line(data, at, stop)
            after = _after(data, end, stop)
            if count and holds(values, low, high, value):
                size, kept = _copied(data, kept, at, out, size), after
                removed[row] += 1
                if after == end and size > begin:  # the last line takes the line end before it along
                    size -= last
            else:
                last = after - end
            at = after
        size = _copied(data, kept, stop, out, size)
        ends[row + 1] = size


def remove_lines(
    texts: pa.LargeStringArray, hashes: Array, bounds: Array | None = None
) -> tuple[pa.LargeStringArray, Array]:
    """Returns `texts` without the lines whose hash is in `hashes`, and (n,) int32 how many each lost.

    `hashes` (h,) uint64 ascend. With `bounds` (n, 2) int64, text k loses only lines in `hashes[low:high]`, which
    ascend. What stays keeps its bytes, line ends included; without a line to remove the texts come back as they are.
    """
    data, offsets, live = own_buffers(texts)
    removed, ends = np.zeros(len(texts), np.int32), np.zeros(len(texts) + 1, np.int64)
    if bounds is None:
        bounds = np.tile(np.array([0, len(hashes)], np.int64), (len(texts), 1))
    if not len(hashes) or not len(data):
        return texts, removed
    out = np.empty(len(data), np.uint8)
    _remove(data, offsets, live, hashes, bounds, removed, out, ends)
    if not removed.any():
        return texts, removed
    validity = None if live.all() else pa.array(live).buffers()[1]
    pieces = [validity, pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]])]
    return pa.Array.from_buffers(pa.large_string(), len(texts), pieces), removed
