"""Where personal data can stand: the skeletons of texts, and kernels that mark windows in them."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.normal.normalize_kernel import Bytes, Offsets
from transforms.text.pii.fold import LETTER, fold, folds
from transforms.text.utf8 import buffers

EMAIL, NUMBER, IBAN, IPV6, TOKEN, KEY_BLOCK, ASSIGNMENT = range(7)  # groups: what may begin inside a window
MAX_LOCAL, MAX_DOMAIN, MAX_KEYWORD, MAX_IPV6 = 64, 255, 24, 40

_DIGIT, _LOCAL, _DOMAIN, _GAP, _HEX, _ALNUM, _UPPER, _PIVOT = (1 << k for k in range(8))
_AT, _COLON, _EQUALS = 0x40, 0x3A, 0x3D
_ENDINGS = tuple(int.from_bytes(word, "big") for word in (b"key", b"ken", b"ret", b"ord", b"swd", b"pwd"))
_PREFIXES = (  # of tokens and key blocks, and the place of their rarest byte, the pivot, above 0
    (b"-----BEGIN", 1),
    *((prefix, 2) for prefix in (b"AKIA", b"ASIA", b"AIza", b"eyJ", b"sk-", b"sk_", b"rk_", b"hf_")),
    *((prefix, 3) for prefix in (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_")),
    *((b"xox", 2), (b"glpat-", 5), (b"github_pat_", 10)),
)


class Windows(NamedTuple):
    """(w,) each: a row, a group, and the skeleton positions start ≤ p < stop at which a match may begin."""

    row: Offsets
    group: Offsets
    start: Offsets
    stop: Offsets


class Skeletons:
    """The skeletons of all rows of a batch, and the way back to character offsets."""

    def __init__(self, texts: pa.LargeStringArray) -> None:
        data, offsets, valid = buffers(texts)
        size = int(offsets[-1] - offsets[0])
        self._bytes, self._starts = np.empty(size, np.uint8), np.zeros(len(offsets), np.int64)
        dropped, self._drop_starts = np.empty(size // 2 + 1, np.int64), np.zeros(len(offsets), np.int64)
        count = fold(data, offsets, valid, folds(), self._bytes, self._starts, dropped, self._drop_starts)
        self._dropped = dropped[:count].copy()

    def windows(self) -> Windows:
        """Returns every window of the batch, by row and then by start; overlapping ones of a group are one."""
        found = np.empty((4, 1024), np.int64)
        count = _scan(self._bytes, self._starts, _classes(), _prefixes(), found)
        if count > found.shape[1]:
            found = np.empty((4, count), np.int64)
            count = _scan(self._bytes, self._starts, _classes(), _prefixes(), found)
        return Windows(*found[:, :count])

    def row(self, row: int) -> bytearray:
        """Returns a copy of one skeleton."""
        return bytearray(self._bytes[self._starts[row] : self._starts[row + 1]].data)

    def char(self, row: int, at: int) -> int:
        """Returns the index in the text of the character at skeleton position `at`."""
        dropped = self._dropped[self._drop_starts[row] : self._drop_starts[row + 1]]
        return at + int(np.searchsorted(dropped, at, side="right"))


@cache
def _classes() -> Bytes:
    """Returns (256,) the flags of each skeleton byte."""
    digits, letters = b"0123456789", bytes(range(65, 91)) + bytes(range(97, 123))
    table = np.zeros(256, np.uint8)
    for flag, members in (
        (_DIGIT, digits),
        (_LOCAL, digits + letters + b"._%+'-" + bytes([LETTER])),
        (_DOMAIN, digits + letters + b".-" + bytes([LETTER])),
        (_GAP, b" .-()+"),
        (_HEX, digits + b"abcdefABCDEF:"),
        (_ALNUM, digits + letters + bytes([LETTER])),
        (_UPPER, bytes(range(65, 91))),
        (_PIVOT, digits + b"@:=IzJx_-"),
    ):
        table[list(members)] |= flag
    return table


class _Prefixes(NamedTuple):
    """Known prefixes, ordered by their pivot: of byte b they are rows `first[b]` to `first[b + 1]`."""

    rows: Bytes  # (p, 16): place of the pivot, length, group, then the prefix
    first: Offsets  # (257,)
    pairs: Bytes  # (256, 256): 1 for a pivot after the byte that stands before it in some prefix


@cache
def _prefixes() -> _Prefixes:
    ordered = sorted(_PREFIXES, key=lambda item: item[0][item[1]])
    table = np.zeros((len(ordered), 16), np.uint8)
    for row, (prefix, pivot) in enumerate(ordered):
        table[row, :3] = pivot, len(prefix), KEY_BLOCK if prefix == b"-----BEGIN" else TOKEN
        table[row, 3 : 3 + len(prefix)] = list(prefix)
    pairs = np.zeros((256, 256), np.uint8)
    for prefix, pivot in ordered:
        pairs[prefix[pivot - 1], prefix[pivot]] = 1
    return _Prefixes(table, np.searchsorted([prefix[pivot] for prefix, pivot in ordered], np.arange(257)), pairs)


@kernel
def _add(found: Array, count: int, row: int, group: int, start: int, stop: int, last: Array) -> int:
    """Adds a window, or widens the last one of its group and row if they touch; returns how many there are."""
    before = last[group]
    if before >= 0 and before < found.shape[1] and found[0, before] == row and start <= found[3, before]:
        found[2, before], found[3, before] = min(start, found[2, before]), max(stop, found[3, before])
        return count
    if count < found.shape[1]:
        found[0, count], found[1, count], found[2, count], found[3, count] = row, group, start, stop
    last[group] = count
    return count + 1


@kernel
def _scan(data: Bytes, starts: Offsets, classes: Bytes, prefixes: _Prefixes, found: Array) -> int:
    """Fills windows as far as `found` (4, w) holds them; returns how many it should hold."""
    count, last, seen = 0, np.full(7, -1, np.int64), np.zeros(2, np.int64)
    for row in range(len(starts) - 1):
        begin, stop = starts[row], starts[row + 1]
        last[:], seen[:] = -1, begin
        for at in range(begin, stop):
            kind = classes[data[at]]
            if not kind & _PIVOT:
                continue
            if kind & _DIGIT:
                if at >= seen[0]:
                    count = _at_digit(data, begin, at, stop, classes, found, count, row, last, seen)
            elif data[at] == _AT:
                first = _email_start(data, begin, at, stop, classes)
                if first < at:
                    count = _add(found, count, row, EMAIL, first - begin, at - begin, last)
            elif data[at] == _COLON or data[at] == _EQUALS:
                count = _at_colon(data, begin, at, stop, classes, found, count, row, last, seen)
            elif at > begin and prefixes.pairs[data[at - 1], data[at]]:
                group, first = _token_start(data, begin, at, stop, prefixes)
                if first >= 0:
                    count = _add(found, count, row, group, first - begin, first + 1 - begin, last)
    return count


@kernel
def _at_digit(
    data: Bytes,
    begin: int,
    at: int,
    stop: int,
    classes: Bytes,
    found: Array,
    count: int,
    row: int,
    last: Array,
    seen: Array,
) -> int:
    """Adds the windows around a number that begins at `at`; keeps its end in `seen[0]`."""
    if _is_iban(data, begin, at, stop, classes):
        count = _add(found, count, row, IBAN, at - 2 - begin, at - 1 - begin, last)
    first = _number_start(data, begin, at)
    seen[0], enough = _number_end(data, first, stop, classes)
    if enough:
        count = _add(found, count, row, NUMBER, first - begin, seen[0] - begin, last)
    return count


@kernel
def _at_colon(
    data: Bytes,
    begin: int,
    at: int,
    stop: int,
    classes: Bytes,
    found: Array,
    count: int,
    row: int,
    last: Array,
    seen: Array,
) -> int:
    """Adds the windows around the `:` or `=` at `at`; keeps the end of hexadecimal digits in `seen[1]`."""
    if data[at] == _COLON and at >= seen[1]:
        first, seen[1], enough = _hexes(data, begin, at, stop, classes)
        if enough:
            count = _add(found, count, row, IPV6, first - begin, seen[1] - begin, last)
    if _is_keyword(data, begin, at):
        count = _add(found, count, row, ASSIGNMENT, max(at - MAX_KEYWORD, begin) - begin, at - begin, last)
    return count


@kernel
def _is_iban(data: Bytes, begin: int, at: int, stop: int, classes: Bytes) -> bool:
    """Whether two capitals that begin a word stand before the digits at `at`."""
    if at - 2 < begin or at + 1 >= stop or not classes[data[at + 1]] & _DIGIT:
        return False
    capitals = classes[data[at - 1]] & classes[data[at - 2]] & _UPPER
    return capitals != 0 and (at - 2 == begin or not classes[data[at - 3]] & _ALNUM)


@kernel
def _number_start(data: Bytes, begin: int, at: int) -> int:
    """Returns where the signs `+` and `(` before a number begin."""
    first = at
    while first > begin and at - first < 2 and (data[first - 1] == 43 or data[first - 1] == 40):
        first -= 1
    return first


@kernel
def _number_end(data: Bytes, at: int, stop: int, classes: Bytes) -> tuple[int, bool]:
    """Returns where a run of digits, with at most three signs between them, ends; whether it may hold a match."""
    digits, dots, plus, gap = 0, 0, False, 0
    while at < stop and gap < 4:
        kind = classes[data[at]]
        if kind & _DIGIT:
            digits += 1
            gap = 0
        elif kind & _GAP:
            dots += data[at] == 46
            plus |= data[at] == 43
            gap += 1
        else:
            break
        at += 1
    return at, digits >= 10 or dots >= 3 or (plus and digits >= 8)


@kernel
def _email_start(data: Bytes, begin: int, at: int, stop: int, classes: Bytes) -> int:
    """Returns where the local part before the `@` at `at` may begin; `at` if this cannot be an address."""
    after = at + 1
    while after < stop and after - at <= MAX_DOMAIN and classes[data[after]] & _DOMAIN and data[after] != 46:
        after += 1
    if after == at + 1 or after >= stop or data[after] != 46:
        return at
    first = at
    while first > begin and at - first < MAX_LOCAL and classes[data[first - 1]] & _LOCAL:
        first -= 1
    return first


@kernel
def _hexes(data: Bytes, begin: int, at: int, stop: int, classes: Bytes) -> tuple[int, int, bool]:
    """Returns (start, stop) of hexadecimal digits and colons around the colon at `at`; whether they may be IPv6."""
    first, colons, double = at, 0, False
    while first > begin and at - first < MAX_IPV6 and classes[data[first - 1]] & _HEX:
        first -= 1
    while at < stop and classes[data[at]] & _HEX:
        if data[at] == 58:
            colons += 1
            double |= at > begin and data[at - 1] == 58
        at += 1
    return first, at, double or colons >= 6


@kernel
def _is_keyword(data: Bytes, begin: int, at: int) -> bool:
    """Whether the word before the sign at `at` ends as the keywords of `pii_patterns` do."""
    end, signs = at - 1, 0
    while end > begin and signs < 3 and (data[end] == 32 or data[end] == 34 or data[end] == 39):
        end -= 1
        signs += 1
    if end - 2 < begin:
        return False
    code = (data[end - 2] | 32) << 16 | (data[end - 1] | 32) << 8 | (data[end] | 32)
    return code in _ENDINGS


@kernel
def _token_start(data: Bytes, begin: int, at: int, stop: int, prefixes: _Prefixes) -> tuple[int, int]:
    """Returns the group and the start of the known prefix whose pivot is at `at`; start -1 if there is none."""
    for k in range(prefixes.first[data[at]], prefixes.first[data[at] + 1]):
        first, same, length = at - prefixes.rows[k, 0], 0, prefixes.rows[k, 1]
        if first < begin or first + length > stop:
            continue
        while same < length and prefixes.rows[k, 3 + same] == data[first + same]:
            same += 1
        if same == length:
            return prefixes.rows[k, 2], first
    return TOKEN, -1
