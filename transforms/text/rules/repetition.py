"""Gopher's repetition rules (Rae et al. 2021, table A1), in three published readings.

| | `datatrove` | `dclm` | `rpv2` |
|---|---|---|---|
| words | W | W′ | W′, in lower case |
| paragraphs, lines | parted by `\\n\\n+`, `\\n+` after the text is stripped | the same, each stripped | none: null |
| a duplicate is | every occurrence after the first | every copy | – |
| over | all; characters of the text | all that are not empty; their characters | – |
| top n-gram | length with spaces × count, first of ties | length without × count, longest of ties, 0 if it occurs once | the first of ties, else as dclm |
| duplicate n-grams | greedy scan that jumps over a repeat; length without spaces | all words in a repeated n-gram, first copy included | as dclm |
| over | characters of the text | characters of the words | characters of the words |

N-grams are equal when their words are: unlike datatrove, `no where` and `nowhere` stay two.
"""  # noqa: E501 (a table)

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import SEED, characters, hashed, mixed, point, trimmed
from transforms.text.ngrams import covered, greedy, longer, top
from transforms.text.rules.listed import DUP, TOP
from transforms.text.scan import OUTSIDE, Sheet, intern, repeats

VALUES = (
    "dup_line_ratio", "dup_paragraph_ratio", "dup_line_char_ratio", "dup_paragraph_char_ratio",
    *(f"top_{n}_gram_char_ratio" for n in TOP),
    *(f"dup_{n}_gram_char_ratio" for n in DUP),
)  # fmt: skip

VARIANTS = ("datatrove", "dclm", "rpv2")
_DATATROVE, _DCLM, _RPV2 = range(3)


@kernel
def _line(data: Array, begin: int, end: int, left: bool, right: bool, table: Array) -> tuple[int, int]:
    """Returns (hash, characters) of a line, stripped on the sides named."""
    first, last = trimmed(data, begin, end, table)
    begin, end = (first if left else begin), (last if right else end)
    return hashed(data, begin, end), characters(data, begin, end)


@kernel
def _inner(data: Array, starts: Array, stops: Array, first: int, last: int, table: Array) -> tuple[int, int]:
    """Returns the lines from `first` to `last` without the blank ones at both ends."""
    while first <= last:
        begin, end = trimmed(data, starts[first], stops[first], table)
        if begin < end:
            break
        first += 1
    while first <= last:
        begin, end = trimmed(data, starts[last], stops[last], table)
        if begin < end:
            break
        last -= 1
    return first, last


@kernel
def _pieces(data: Array, lines: int, gap: int, each: bool, table: Array, sheet: Sheet) -> tuple[int, int]:
    """Fills hash and characters of the pieces between `gap` newlines; returns how many, and their characters.

    The text is stripped, and with `each` every piece is; empty ones do not count.
    """
    starts, stops, keys, chars = sheet.starts, sheet.stops, sheet.keys, sheet.chars
    piece_keys, piece_chars = sheet.piece_keys, sheet.piece_chars
    begin, end = _inner(data, starts, stops, np.int64(0), lines - 1, table)
    count, total, after = np.int64(0), 0, begin
    while after <= end:
        first, last = after, after
        while last < end and starts[last + 1] - stops[last] < gap:
            last += 1
        after = last + 1
        if each:
            first, last = _inner(data, starts, stops, first, last, table)
        state, length = SEED, last - first
        for k in range(first, last + 1):
            left, right = k == begin or (each and k == first), k == end or (each and k == last)
            key, more = keys[k], np.int64(chars[k])
            if left or right:
                key, more = _line(data, starts[k], stops[k], left, right, table)
            state, length = mixed(state, key), length + more
        if length > 0:
            piece_keys[count], piece_chars[count] = state, length
            count, total = count + 1, total + length
    return count, total


@kernel
def _fill_pieces(
    data: Array, lines: int, gap: int, chars: int, variant: int, table: Array, sheet: Sheet, out: Array
) -> None:
    """Fills `out[0]`, the share of pieces that are duplicates, and `out[2]`, that of characters."""
    if variant == _RPV2:
        out[0] = out[2] = np.nan
        return
    count, total = _pieces(data, lines, gap, variant == _DCLM, table, sheet)
    again, repeated_chars = repeats(count, sheet, np.int64(variant == _DCLM))
    out[0] = again / count
    out[2] = repeated_chars / (total if variant == _DCLM else chars)


@kernel
def _only_words(words: int, sheet: Sheet) -> int:
    """Drops the tokens that are not in W′, in place; returns how many are left."""
    kept = np.int64(0)
    for k in range(words):
        if sheet.flags[k] & OUTSIDE:
            sheet.hashes[kept], sheet.lengths[kept] = sheet.hashes[k], sheet.lengths[k]
            kept += 1
    return kept


@kernel
def _lower(data: Array, words: int, lower: Array, sheet: Sheet) -> None:
    """Replaces the hash of each token by that of its lower-case form."""
    for k in range(words):
        state, at = SEED, sheet.places[k]
        for _ in range(sheet.lengths[k]):
            char, at = point(data, at)
            state = mixed(state, np.uint64(lower[char]))
        sheet.hashes[k] = state


@kernel
def _begin(words: int, sheet: Sheet) -> int:
    """Fills the repeated tokens and the characters before each token; returns how many are repeated."""
    ends, lengths, codes, counts, at, ids = sheet.ends, sheet.lengths, sheet.codes, sheet.counts, sheet.at, sheet.ids
    ends[0] = size = np.int64(0)
    for k in range(words):
        ends[k + 1] = ends[k] + lengths[k]
        if counts[codes[k]] > 1:
            at[size], ids[size] = k, codes[k]
            size += 1
    return size


@kernel
def _top_chars(n: int, size: int, words: int, variant: int, sheet: Sheet) -> int:
    """Returns the characters that the most frequent n-gram accounts for."""
    chars, count = top(sheet.at, sheet.ids, sheet.tallies, size, n, sheet.ends, variant == _DCLM)
    if variant != _DATATROVE:
        return chars * count
    if not count:
        return sheet.ends[n] + n - 1 if words >= n else 0
    return (chars + n - 1) * count


@kernel
def _fill_grams(words: int, chars: int, variant: int, sheet: Sheet, out: Array) -> None:
    """Fills the ratios of top and duplicate n-grams; `codes` and `counts` hold the interned tokens."""
    size = _begin(words, sheet)
    total = max(chars if variant == _DATATROVE else sheet.ends[words], 1)
    for n in range(2, 11):
        size = longer(sheet.at, sheet.ids, sheet.tallies, size, n, sheet.codes, sheet.pairs, sheet.slots)
        if n <= 4:
            found = _top_chars(n, size, words, variant, sheet)
        elif variant == _DATATROVE:
            found = greedy(sheet.at, sheet.ids, size, n, sheet.ends, sheet.seen)
        else:
            found = covered(sheet.at, size, n, sheet.ends)
        out[n + 2] = found / total


@kernel
def fill(
    data: Array, table: Array, lower: Array, words: int, lines: int, chars: int, variant: int, sheet: Sheet, out: Array
) -> None:
    """Fills the values of one text of `words` tokens and `lines` lines, which the sheet holds."""
    if variant == _RPV2:
        _lower(data, words, lower, sheet)
    if variant != _DATATROVE:
        words = _only_words(words, sheet)
    intern(sheet.hashes, words, sheet)
    _fill_grams(words, chars, variant, sheet, out)
    _fill_pieces(data, lines, np.int64(1), chars, variant, table, sheet, out)
    _fill_pieces(data, lines, np.int64(2), chars, variant, table, sheet, out[1:])
