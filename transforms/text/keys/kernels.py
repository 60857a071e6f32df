"""Kernels that write key texts, and hash them, over the bytes of Arrow's strings."""

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import point as decode
from transforms.text.keys.tables import CLASS_SHIFT, DIGIT, GAP, JOINS, LETTER, ODD, PLUS, REMOVED, TAKES, WORD

Bits = np.uint32 | np.uint64  # an unsigned number: np.uint32 of properties, np.uint64 of hashes

MAX_MARKS = 30  # in a run; `normalize` breaks longer ones

_PLAIN, _NUMBER, _KEPT, _DROPPED = 0, 1, 2, 3  # inside what: the last two are runs of + and #
_SPACE, _ZERO = 32, 48
ONES = np.uint64(0x0101010101010101)  # a one in each byte


@kernel
def write_keys(
    data: Array, offsets: Array, simple: Array, lower: Array, properties: Array,
    strict: bool, out: Array, ends: Array, odd: Array,
) -> None:  # fmt: skip
    """Writes the key of each text `data[offsets[k]:offsets[k + 1]]` to `out`, and where it ends to `ends`.

    `out` has room for 3 bytes for 2 of the texts (lower case takes no more). Where `strict`, a row that only
    `normalize` can bring to its normal form gets `odd` and no key.
    """
    to = 0
    for row in range(offsets.shape[0] - 1):
        stop = _write_key(data, offsets[row], offsets[row + 1], simple, lower, properties, strict, out, to)
        odd[row] = stop < 0
        to = max(to, stop)
        ends[row + 1] = to


@kernel
def _write_key(
    data: Array, at: int, end: int, simple: Array, lower: Array, properties: Array,
    strict: bool, out: Array, start: int,
) -> int:  # fmt: skip
    """Returns where the key of one text ends in `out`; -1 for an odd one.

    A number, or a run of `+` and `#`, is written as it stands, and taken back where what follows says so.
    """
    to, mark, mode, gap, marks = start, start, _PLAIN, False, 0
    before = starter = properties[0] & np.uint32(0)
    while at < end:
        if mode == _PLAIN and simple[data[at]]:
            at, to, gap, last = _write_easy(data, at, end, simple, gap, out, start, to)
            before = starter = properties[last]
            marks = 0
            continue
        point, at = decode(data, at)
        if properties[point] & np.uint32(REMOVED):
            continue
        here = properties[point] & np.uint32(ODD)
        point = lower[point]
        here |= properties[point]
        marks = marks + 1 if here >> np.uint32(CLASS_SHIFT) else 0
        if strict and (marks or here & np.uint32(ODD | JOINS)) and _is_odd(here, before, starter, marks):
            return -1
        starter = starter if marks else here
        if mode != _PLAIN:
            mode, to, gap = _go_on(mode, mark, here, to, gap, out)
        if here & np.uint32(PLUS) and mode == _PLAIN:
            mode, mark = _KEPT if before & np.uint32(WORD) else _DROPPED, to
        if here & np.uint32(GAP) or mode == _DROPPED:
            gap, before = True, here
            continue
        to = _space(gap, out, start, to)
        if here & np.uint32(DIGIT) and mode == _PLAIN and not before & np.uint32(LETTER):
            mode, mark = _NUMBER, to
        gap, before = False, here
        to = _encode(point, out, to)
    if mode == _NUMBER:
        out[mark] = _ZERO
        to = mark + 1
    return to


@kernel
def _write_easy(
    data: Array, at: int, end: int, simple: Array, gap: bool, out: Array, start: int, to: int
) -> tuple[int, int, bool, Bits]:
    """Copies ASCII letters and gaps up to something else; returns (at, to, whether a gap is due, last character)."""
    byte = simple[data[at]]
    while byte:
        if byte == 1:
            gap = True
            at += 1
            byte = simple[data[at]] if at < end else np.uint8(0)
            continue
        to = _space(gap, out, start, to)
        gap, size = False, 8
        while size == 8 and at + 8 <= end:
            size = _copy_letters(data, at, out, to)
            at, to = at + size, to + size
        byte = simple[data[at]] if at < end else np.uint8(0)
        while byte > 1 and at + 8 > end:
            out[to] = byte
            at, to = at + 1, to + 1
            byte = simple[data[at]] if at < end else np.uint8(0)
    return at, to, gap, np.int64(data[at - 1])


@kernel
def _copy_letters(data: Array, at: int, out: Array, to: int) -> Bits:
    """Copies 8 bytes in lower case; returns how many of them, up to the first that is none, are ASCII letters."""
    word = load(data, at, 8)
    small = word | (ONES << np.uint64(5))
    bare = small & (ONES * np.uint64(0x7F))  # so that no sum of two bytes carries into the next
    above_z, from_a = bare + ONES * np.uint64(0x7F - 122), bare + ONES * np.uint64(0x80 - 97)
    first = np.uint64(to)
    for k in range(8):
        out[first + np.uint64(k)] = np.uint8(small >> np.uint64(8 * k))
    return bytes_before((~from_a | above_z | word) >> np.uint64(7) & ONES)


@kernel
def bytes_before(stops: Bits) -> Bits:
    """Returns how many of 8 bytes, the lowest first, come before the first of which the lowest bit is set."""
    if not stops:
        return 8
    inside = ((stops & (~stops + np.uint64(1))) - np.uint64(1)) & ONES
    return np.int64((inside * ONES) >> np.uint64(56))


@kernel
def _space(gap: bool, out: Array, start: int, to: int) -> int:
    """Writes the space that is due before a word, unless it is the first; returns where the word goes."""
    if gap and to > start:
        out[to] = _SPACE
        return to + 1
    return to


@kernel
def _is_odd(here: Bits, before: Bits, starter: Bits, marks: int) -> bool:
    """Returns whether a character may not be in its normal form after the one before it and the last starter."""
    order, last = here >> np.uint32(CLASS_SHIFT), before >> np.uint32(CLASS_SHIFT)
    unordered = order != 0 and order < last
    joined = here & np.uint32(JOINS) != 0 and starter & np.uint32(TAKES) != 0
    return here & np.uint32(ODD) != 0 or joined or unordered or marks > MAX_MARKS


@kernel
def _go_on(mode: int, mark: int, here: Bits, to: int, gap: bool, out: Array) -> tuple[int, int, bool]:
    """Returns (mode, to, gap) after one more character: what began at `mark` may end, and be taken back."""
    if here & np.uint32(DIGIT if mode == _NUMBER else PLUS):
        return mode, to, gap
    if mode == _NUMBER and not here & np.uint32(LETTER):
        out[mark] = _ZERO
        return _PLAIN, mark + 1, gap
    if mode == _KEPT and here & np.uint32(WORD):
        return _PLAIN, mark, True
    return _PLAIN, to, gap


@kernel
def _encode(point: int, out: Array, to: int) -> int:
    """Writes a code point as UTF-8; returns where the next one goes."""
    if point < 0x80:
        out[to] = point
        return to + 1
    if point < 0x800:
        out[to] = 0xC0 | point >> 6
        out[to + 1] = 0x80 | point & 0x3F
        return to + 2
    if point < 0x10000:
        out[to] = 0xE0 | point >> 12
        out[to + 1] = 0x80 | point >> 6 & 0x3F
        out[to + 2] = 0x80 | point & 0x3F
        return to + 3
    out[to] = 0xF0 | point >> 18
    out[to + 1] = 0x80 | point >> 12 & 0x3F
    out[to + 2] = 0x80 | point >> 6 & 0x3F
    out[to + 3] = 0x80 | point & 0x3F
    return to + 4


_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_F1, _F2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


@kernel
def hash_keys(data: Array, offsets: Array, out: Array) -> None:
    """Writes MurmurHash3 (x64, 128 bits, seed 0) of each string to the rows of `out` (n, 2) uint64."""
    for row in range(offsets.shape[0] - 1):
        at, end = offsets[row], offsets[row + 1]
        one: Bits = np.uint64(0)
        two: Bits = np.uint64(0)
        while at + 16 <= end:
            one = _rotated(one ^ _first(load(data, at, 8)), 27) + two
            one = one * np.uint64(5) + np.uint64(0x52DCE729)
            two = _rotated(two ^ _second(load(data, at + 8, 8)), 31) + one
            two = two * np.uint64(5) + np.uint64(0x38495AB5)
            at += 16
        if end - at > 8:
            two ^= _second(load(data, at + 8, end - at - 8))
        one ^= _first(load(data, at, min(8, end - at)))
        length = np.uint64(end - offsets[row])
        one, two = one ^ length, two ^ length
        one += two
        two += one
        one, two = mixed(one), mixed(two)
        one += two
        out[row, 0] = one
        out[row, 1] = two + one


@kernel
def load(data: Array, at: int, size: int) -> Bits:
    """Returns `size` (at most 8) bytes as a little-endian number."""
    found, first = np.uint64(0), np.uint64(at)  # an index that has no sign needs no check for it
    if size == 8:
        for k in range(8):
            found |= np.uint64(data[first + np.uint64(k)]) << np.uint64(8 * k)
        return found
    for k in range(size):
        found |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return found


@kernel
def _rotated(value: Bits, bits: int) -> Bits:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@kernel
def _first(word: Bits) -> Bits:
    return _rotated(word * _C1, 31) * _C2


@kernel
def _second(word: Bits) -> Bits:
    return _rotated(word * _C2, 33) * _C1


@kernel
def mixed(value: Bits) -> Bits:
    """Returns `value` with each of its 64 bits spread over all of them (MurmurHash3's finaliser)."""
    value = (value ^ (value >> np.uint64(33))) * _F1
    value = (value ^ (value >> np.uint64(33))) * _F2
    return value ^ (value >> np.uint64(33))
