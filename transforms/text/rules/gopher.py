"""Gopher's quality rules (Rae et al. 2021, table A1), in three published readings and our own.

W are all tokens, W′ those with a character outside the punctuation set (see `transforms.text.words`).
The word-length rules hold for spaced scripts only, the stop-word rule only for languages with a list;
elsewhere their values are null and no row fails them.

| variant | word length | ellipses | bullets | stop words | share with a letter, of |
|---|---|---|---|---|---|
| `gradsift` | mean | `...` `…` | • - | distinct | W′: words, not punctuation |
| `datatrove` | mean | `...` `…` | • - | distinct | W: punctuation marks too |
| `dolma` | median | `…` | * - | distinct | text split at white space |
| `dclm` | mean | `...` `. . .` `…` | ● • * - | every occurrence | text split at white space |
"""

from typing import NamedTuple

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import point, trimmed
from transforms.text.rules.config import GopherVariant
from transforms.text.scan import ALPHABETIC, OUTSIDE, Sheet
from transforms.text.tables import ALPHA, BLANK

STOP_WORDS = {"en": ("the", "be", "to", "of", "and", "that", "have", "with")}
VALUES = (
    "nonsymbol_words", "mean_word_length", "hash_ratio", "ellipsis_ratio", "bullet_line_ratio", "ellipsis_line_ratio",
    "alpha_word_ratio", "stop_words",
)  # fmt: skip
WHOLE = ("nonsymbol_words", "stop_words")  # of the values: counts, the rest are ratios and means


_DOTS, _SPACED_DOTS, _ELLIPSIS = 1, 2, 4
_TOKENS, _WORDS, _SPLIT = 0, 1, 2  # W, W′, or what white space separates
_READINGS: dict[str, tuple[bool, int, str, bool, int]] = {
    "gradsift": (False, _DOTS | _ELLIPSIS, "•-", False, _WORDS),
    "datatrove": (False, _DOTS | _ELLIPSIS, "•-", False, _TOKENS),
    "dolma": (True, _ELLIPSIS, "*-", False, _SPLIT),
    "dclm": (False, _DOTS | _SPACED_DOTS | _ELLIPSIS, "●•*-", True, _SPLIT),
}  # variant → median word length, ellipses, bullets, stop words with repeats, of what words the share has a letter


class Reading(NamedTuple):
    """What a variant means to the kernel."""

    median: bool  # the length of a word is the median, not the mean
    ellipses: int  # _DOTS, _SPACED_DOTS, _ELLIPSIS: which count
    bullets: Array  # code points
    repeats: bool  # a stop word counts as often as it occurs
    letters_of: int  # _TOKENS, _WORDS, _SPLIT: of what the share with a letter is


class Counted(NamedTuple):
    """How much of a text lies on the sheet."""

    words: int  # tokens
    distinct: int  # of them, different
    lines: int  # that are not empty
    every_line: int  # empty ones too
    unspaced: bool  # most words are of scripts without spaces


def reading(variant: GopherVariant) -> Reading:
    """Returns what the kernel needs to know of `variant`."""
    median, ellipses, bullets, repeats, letters_of = _READINGS[variant]
    return Reading(median, ellipses, np.array([ord(c) for c in bullets], np.int64), repeats, letters_of)


@kernel
def _ranked_length(lengths: Array, flags: Array, count: int, rank: int) -> int:
    """Returns the `rank`-th smallest length, from 0, of W′."""
    low, high = 0, 0
    for k in range(count):
        high = max(high, lengths[k])
    while low < high:
        middle, below = (low + high) // 2, 0
        for k in range(count):
            below += (flags[k] & OUTSIDE) and lengths[k] <= middle
        low, high = (low, middle) if below > rank else (middle + 1, high)
    return low


@kernel
def _spaced_dots(data: Array, start: int, stop: int) -> int:
    """Returns how often `. . .` occurs, without overlap."""
    found, state = 0, 0
    for at in range(start, stop):
        dot, space = data[at] == 46, data[at] == 32
        if (state % 2 == 0 and dot) or (state % 2 == 1 and space):
            state += 1
        else:
            state = 1 if dot else 0
        if state == 5:
            found, state = found + 1, 0
    return found


@kernel
def _symbols(data: Array, places: Array, count: int, stop: int) -> tuple[int, int, int]:
    """Returns how often `#`, `...` and `…` occur: all are tokens of their own, or runs of them."""
    hashes, dots, ellipses = 0, 0, 0
    for k in range(count):
        first, at = data[places[k]], places[k]
        if first == 35:
            while at < stop and data[at] == 35:
                hashes, at = hashes + 1, at + 1
        elif first == 46:
            while at < stop and data[at] == 46:
                at += 1
            dots += (at - places[k]) // 3
        elif first == 0xE2:
            while at + 2 < stop and data[at] == 0xE2 and data[at + 1] == 0x80 and data[at + 2] == 0xA6:
                ellipses, at = ellipses + 1, at + 3
    return hashes, dots, ellipses


@kernel
def _ends_in_ellipsis(data: Array, start: int, stop: int, ellipses: int) -> bool:
    if stop - start >= 3 and data[stop - 1] == 0xA6:
        return (ellipses & _ELLIPSIS) != 0 and data[stop - 2] == 0x80 and data[stop - 3] == 0xE2
    if stop - start < 3 or data[stop - 1] != 46:
        return False
    if (ellipses & _DOTS) and data[stop - 2] == 46 and data[stop - 3] == 46:
        return True
    spaced = stop - start >= 5 and data[stop - 2] == 32 and data[stop - 3] == 46 and data[stop - 4] == 32
    return (ellipses & _SPACED_DOTS) != 0 and spaced and data[stop - 5] == 46


@kernel
def _marked_lines(
    data: Array, table: Array, ellipses: int, bullets: Array, count: int, starts: Array, stops: Array
) -> tuple[int, int]:
    """Returns how many lines begin with a bullet, and how many end in an ellipsis."""
    bulleted, ended = 0, 0
    for k in range(count):
        start, stop = trimmed(data, starts[k], stops[k], table)
        if start == stop:
            continue
        first, _ = point(data, start)
        for bullet in bullets:
            bulleted += first == bullet
        ended += _ends_in_ellipsis(data, start, stop, ellipses)
    return bulleted, ended


@kernel
def _length(lengths: Array, flags: Array, count: int, outside: int, median: bool) -> float:
    """Returns the mean or median characters of W′; 0 if there is none."""
    if not outside:
        return 0.0
    if median:
        low = _ranked_length(lengths, flags, count, (outside - 1) // 2)
        return (low + _ranked_length(lengths, flags, count, outside // 2)) / 2
    total = 0
    for k in range(count):
        if flags[k] & OUTSIDE:
            total += lengths[k]
    return total / outside


@kernel
def _stop_words(counts: Array, known: Array, distinct: int, stop_words: Array, repeats: bool) -> int:
    found = 0
    for code in range(distinct):
        for word in stop_words:
            if known[code] == word:
                found += counts[code] if repeats else 1
    return found


@kernel
def _split_at_space(data: Array, start: int, stop: int, table: Array) -> tuple[int, int]:
    """Returns how many stretches between white space there are, and how many of them have a letter."""
    found, lettered, at = 0, 0, start
    inside = letter = False
    while at < stop:
        char, at = point(data, at)
        if table[char] & BLANK:
            lettered += letter
            inside = letter = False
            continue
        found += not inside
        inside = True
        letter |= table[char] & ALPHA != 0
    return found, lettered + letter


@kernel
def fill(
    data: Array, start: int, stop: int, table: Array, size: Counted, read: Reading, stop_words: Array,
    sheet: Sheet, out: Array,
) -> None:  # fmt: skip
    """Fills the values of one text, `data[start:stop]`; `stop_words` are the hashes of those of its language."""
    words, ellipses = size.words, read.ellipses
    outside = alphabetic = np.int64(0)
    for flags in sheet.flags[:words]:
        outside += flags & OUTSIDE
        alphabetic += (flags & ALPHABETIC) != 0
    hashes, dots, marks = _symbols(data, sheet.places, words, stop)
    found = (dots if ellipses & _DOTS else 0) + marks
    if ellipses & _SPACED_DOTS:
        found += _spaced_dots(data, start, stop)
    bulleted, ended = _marked_lines(data, table, ellipses, read.bullets, size.lines, sheet.starts, sheet.stops)
    out[0] = outside
    out[1] = np.nan if size.unspaced else _length(sheet.lengths, sheet.flags, words, outside, read.median)
    out[2], out[3] = hashes / words, found / words
    out[4], out[5] = bulleted / size.every_line, ended / size.every_line
    among = outside if read.letters_of == _WORDS else words
    if read.letters_of == _SPLIT:
        among, alphabetic = _split_at_space(data, start, stop, table)
    out[6] = alphabetic / max(among, 1)
    out[7] = (
        _stop_words(sheet.counts, sheet.known, size.distinct, stop_words, read.repeats) if len(stop_words) else np.nan
    )
