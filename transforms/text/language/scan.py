"""The kernel that finds the paragraphs of a text and says what script their letters are of."""

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel

LATIN, CASED, SYLLABIC, IDEOGRAPHIC, NO_LETTER = range(5)  # kinds of script; CASED: from Greek to Arabic
SCRIPTS = 4

# Columns of what `paragraphs` returns. STOP is the byte at which reading ends, CHARS counts the whole paragraph.
OWNER, START, STOP, CHARS, SCRIPT, LETTERS, SHOUTED = range(7)


def _lead_bytes() -> Array:
    """Returns (256,) uint8: the kind of script that a character's first byte speaks for."""
    found = np.full(256, NO_LETTER, np.uint8)
    found[ord("A") : ord("Z") + 1] = found[ord("a") : ord("z") + 1] = LATIN
    found[0xC3:0xCB], found[0xCD:0xE0] = LATIN, CASED
    found[0xE0:0xE2], found[0xE3:0xEE], found[0xF0] = SYLLABIC, IDEOGRAPHIC, SYLLABIC
    return found


_LEADS = _lead_bytes()


@kernel
def _after_e1(following: int) -> int:
    if following >= 0xB8:  # Latin and Greek with several accents
        return LATIN if following < 0xBC else CASED
    return CASED if following in (0x8E, 0x8F, 0xB2) else SYLLABIC  # Cherokee, and capitals of Georgian


@kernel
def _after_f0(following: int) -> int:
    if following >= 0xA0:
        return IDEOGRAPHIC
    return NO_LETTER if following == 0x9F else CASED  # pictures; Deseret, Osage, Adlam and others have capitals


@kernel
def _kind(byte: int, following: int) -> int:
    """Returns the kind of script of the character that begins with these two bytes."""
    if byte == 0xE1:
        return _after_e1(following)
    if byte == 0xF0:
        return _after_f0(following)
    if byte == 0xE3 and following == 0x80:  # punctuation of ideographs
        return NO_LETTER
    if byte == 0xEF and 0xA4 <= following <= 0xAB:
        return IDEOGRAPHIC
    return int(_LEADS[byte])


@kernel
def _next_paragraph(data: Array, at: int, end: int) -> tuple[int, int]:
    """Returns where the next line that is not blank begins and ends, `(end, end)` if there is none."""
    while at < end and (data[at] == 32 or 9 <= data[at] <= 13):
        at += 1
    first = at
    while at < end and data[at] != 10:
        at += 1
    return first, at


@kernel
def _measure(data: Array, start: int, end: int, max_chars: int, kinds: Array, row: Array) -> None:
    """Fills the columns of `row` from START for the paragraph `data[start:end]`; `kinds` is room to work in."""
    for k in range(SCRIPTS + 1):
        kinds[k] = 0
    chars, upper, lower, stop = 0, 0, 0, end
    for at in range(start, end):
        byte = data[at]
        if byte & 0xC0 == 0x80:
            continue
        if chars == max_chars:
            stop = at
        chars += 1
        if byte >= 0x80:
            kinds[_kind(byte, data[at + 1])] += 1
        elif 65 <= byte <= 90:
            upper += 1
        elif 97 <= byte <= 122:
            lower += 1
    row[SHOUTED] = upper > 4 * lower or (lower == 0 and kinds[LATIN] + kinds[CASED] > 0)
    kinds[LATIN] += upper + lower
    row[START], row[STOP], row[CHARS], row[SCRIPT], row[LETTERS] = start, stop, chars, 0, 0
    for k in range(SCRIPTS):
        row[LETTERS] += kinds[k]
        if kinds[k] > kinds[row[SCRIPT]]:
            row[SCRIPT] = k


@kernel
def paragraphs(data: Array, offsets: Array, max_paragraphs: int, max_chars: int) -> Array:
    """Returns (p, 7) int64, the columns above, of the paragraphs of the texts between `offsets` (n + 1,).

    Of a text of more than `max_paragraphs`, that many, evenly spaced from the first. SHOUTED says that the letters may
    all be capitals, as far as their first bytes tell.
    """
    texts, total = len(offsets) - 1, 0
    counts, kinds = np.zeros(texts, np.int64), np.zeros(SCRIPTS + 1, np.int64)
    for n in range(texts):
        first, at = _next_paragraph(data, offsets[n], offsets[n + 1])
        while first < at:
            counts[n] += 1
            first, at = _next_paragraph(data, at, offsets[n + 1])
        total += min(counts[n], max_paragraphs)
    found, row = np.zeros((total, 7), np.int64), 0
    for n in range(texts):
        at, wanted, taken = offsets[n], min(counts[n], max_paragraphs), 0
        for k in range(counts[n]):
            first, at = _next_paragraph(data, at, offsets[n + 1])
            if taken < wanted and k == taken * counts[n] // wanted:
                found[row, OWNER] = n
                _measure(data, first, at, max_chars, kinds, found[row])
                row, taken = row + 1, taken + 1
    return found
