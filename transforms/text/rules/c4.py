"""C4's rules (Raffel et al. 2020): the only ones that edit the text, line by line; the edit is a column of its own.

A line is stripped; one with a word of more than 1000 characters is dropped; `[1]`, `[edit]` and
`[citation needed]` are deleted; a line stays if it ends in a terminal mark but not in `...`, has enough words,
and does not speak of javascript, cookies, privacy or terms of use. Of the lines that got so far, one with
"lorem ipsum" or `{` condemns the page; so do too few sentences. A sentence begins at the first word, and at
each word after a mark that ends sentences.

| variant | terminal marks | words per line | sentences per page |
|---|---|---|---|
| `tfds` | `.` `?` `!` `"` | counted after the deletions | as params say (3 in the source) |
| `datatrove` | also `'` | counted before | as params say (5 in the source) |

The rules hold for spaced scripts only; elsewhere their values are null and the text is not edited.
"""

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import point, trimmed
from transforms.text.scan import ENDS, OUTSIDE, Sheet
from transforms.text.tables import BLANK, DIGIT

VALUES = (
    "c4_sentences", "c4_lorem_ipsum_lines", "c4_brace_lines", "c4_long_word_lines", "c4_open_lines", "c4_short_lines",
    "c4_script_lines", "c4_policy_lines", "c4_citations",
)  # fmt: skip
MAX_WORD_CHARS = 1000


_PHRASES = (
    "lorem ipsum", "javascript", "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies",
    "use cookies",
)  # fmt: skip
_ANCHORS = (("e", "m"), ("", "j"), ("r", "m"), ("i", "v"), ("o", "k"), ("o", "k"), ("o", "k"), ("o", "k"))
# two letters of each phrase that are rare side by side: where they stand, the search looks closer
_DELETED = ("edit]", "citation needed]")
_LOREM, _SCRIPT = 1, 2


def _bytes(words: tuple[str, ...]) -> Array:
    """Returns (w, longest + 1) uint8 of ASCII words, padded with 0."""
    found = np.zeros((len(words), max(map(len, words)) + 1), np.uint8)
    for row, word in zip(found, words, strict=True):
        row[: len(word)] = np.frombuffer(word.encode(), np.uint8)
    return found


_PHRASE = _bytes(_PHRASES)
_DELETION = _bytes(_DELETED)
_OFFSET = np.array([p.index(a + b) + len(a) for p, (a, b) in zip(_PHRASES, _ANCHORS, strict=True)], np.int64)
_J, _M, _V, _K, _GAP, _WIDE, _OPEN, _BRACE = (1 << k for k in range(8))
_LOOK = np.zeros(256, np.uint8)  # what a byte may end or begin: two rare letters, white space, a citation, a brace
_AFTER = np.full(256, _J | _GAP | _WIDE | _OPEN | _BRACE, np.uint8)  # and what it then must follow
for _letter, _bit in zip("jmvk", (_J, _M, _V, _K), strict=True):
    _LOOK[[ord(_letter), ord(_letter.upper())]] = _bit
for _letter, _bit in zip("erio", (_M, _M, _V, _K), strict=True):
    _AFTER[[ord(_letter), ord(_letter.upper())]] |= _bit
_LOOK[[9, 32]] = _GAP
_LOOK[[0xC2, 0xE1, 0xE2, 0xE3]] = _WIDE  # first bytes of all other white space
_LOOK[ord("[")], _LOOK[ord("{")] = _OPEN, _BRACE


@kernel
def _is_word(data: Array, at: int, stop: int, word: Array, case: int) -> bool:
    """Returns whether `word` (padded with 0) is at `at`; `case` 0x20 ignores case."""
    k = 0
    while word[k]:
        if at + k >= stop or (data[at + k] | case) != word[k]:
            return False
        k += 1
    return True


@kernel
def _phrases(data: Array, at: int, start: int, stop: int) -> int:
    """Returns which phrases have their rare letters at `at`, in any case, as bits."""
    found = 0
    for k in range(len(_OFFSET)):
        begin = at - _OFFSET[k]
        if begin >= start and _is_word(data, begin, stop, _PHRASE[k], np.int64(0x20)):
            found |= 1 << k
    return found


@kernel
def _look(data: Array, start: int, stop: int, table: Array) -> tuple[int, int, int]:
    """Returns (words between white space, phrases as bits, what else there is to see: `_OPEN`, `_BRACE`) of a line."""
    words, phrases, seen, was, before = 0, 0, 0, 1, np.uint8(0)
    for at in range(start, stop):
        byte = data[at]
        look = _LOOK[byte] & _AFTER[before]
        before = byte
        gap = (look >> 4) & 1
        words += was & (gap ^ 1)
        was = gap
        if look & ~_GAP:
            if look & (_J | _M | _V | _K):
                phrases |= _phrases(data, at, start, stop)
            elif look != _WIDE or table[point(data, at)[0]] & BLANK:
                seen |= look
    return (_word_count(data, start, stop, table) if seen & _WIDE else words), phrases, seen


@kernel
def _word_count(data: Array, start: int, stop: int, table: Array) -> int:
    """Returns how many words any white space parts."""
    words, gap, at = 0, True, start
    while at < stop:
        char, at = point(data, at)
        blank = (table[char] & BLANK) != 0
        words += gap and not blank
        gap = blank
    return words


@kernel
def _citation_end(data: Array, at: int, stop: int, table: Array) -> int:
    """Returns where the citation that begins with the `[` at `at` ends, or `at` if it is none."""
    inner = at + 1
    while inner < stop:
        char, after = point(data, inner)
        if not table[char] & DIGIT:
            break
        inner = after
    if inner < stop and data[inner] == 93:
        return inner + 1
    for k in range(len(_DELETED)):
        if _is_word(data, at + 1, stop, _DELETION[k], np.int64(0)):
            return at + 1 + len(_DELETED[k])
    return at


@kernel
def _copied(data: Array, start: int, stop: int, table: Array, target: Array, to: int) -> tuple[int, int]:
    """Copies a line without its citations to `target[to:]`; returns (end of the copy, citations)."""
    citations, at = 0, start
    while at < stop:
        if data[at] == 91:
            after = _citation_end(data, at, stop, table)
            if after > at:
                citations, at = citations + 1, after
                continue
        target[to] = data[at]
        to, at = to + 1, at + 1
    return to, citations


@kernel
def _longest_word(data: Array, start: int, stop: int, table: Array) -> int:
    """Returns the characters of the longest word between white space."""
    length, longest, at = 0, 0, start
    while at < stop:
        char, at = point(data, at)
        length = 0 if table[char] & BLANK else length + 1
        longest = max(longest, length)
    return longest


@kernel
def _is_closed(data: Array, start: int, stop: int, apostrophe: bool) -> bool:
    """Returns whether a line ends in a terminal mark, but not in `...`."""
    if stop == start:
        return False
    last = data[stop - 1]
    if last == 46:
        return not (stop - start >= 3 and data[stop - 2] == 46 and data[stop - 3] == 46)
    return last in (63, 33, 34) or (apostrophe and last == 39)


@kernel
def _sentences(data: Array, first: int, stop: int, table: Array, words: int, places: Array, kinds: Array) -> int:
    """Returns how many sentences the tokens from `first` up to byte `stop` make, citations aside."""
    found, begins, skip = 0, True, 0
    for k in range(first, words):
        place, flags = places[k], kinds[k]
        if place >= stop:
            break
        if data[place] == 91:
            skip = max(skip, _citation_end(data, place, stop, table))
        if place < skip:
            continue
        found += begins and (flags & OUTSIDE) != 0
        begins = (flags & ENDS) != 0 or (begins and not flags & OUTSIDE)
    return found


@kernel
def _stripped(target: Array, start: int, stop: int, table: Array) -> int:
    """Strips the text at `target[start:stop]` in place; returns its new end."""
    begin, end = trimmed(target, start, stop, table)
    for k in range(end - begin):
        target[start + k] = target[begin + k]
    return start + end - begin


@kernel
def _judge_line(
    data: Array, start: int, stop: int, table: Array, datatrove: bool, least: int, target: Array, to: int, out: Array
) -> int:
    """Copies a line and counts, in `out`, what it fails; returns the end of the copy, or -1 for a dropped line."""
    if stop - start > MAX_WORD_CHARS and _longest_word(data, start, stop, table) > MAX_WORD_CHARS:
        out[3] += 1
        return -1
    words, phrases, seen = _look(data, start, stop, table)
    end, citations = to + stop - start, 0
    if seen & _OPEN:
        end, citations = _copied(data, start, stop, table, target, to)
        left, phrases, seen = _look(target, to, end, table)
        words = words if datatrove else left
    else:
        target[to:end] = data[start:stop]
    if not _is_closed(target, to, end, datatrove):
        out[4] += 1
        return -1
    if words < least:
        out[5] += 1
        return -1
    out[1] += phrases & _LOREM
    if phrases & _SCRIPT:
        out[6] += 1
        return -1
    out[2] += (seen & _BRACE) != 0
    if phrases > _LOREM | _SCRIPT:
        out[7] += 1
        return -1
    out[8] += citations
    return end


@kernel
def fill(
    data: Array, table: Array, words: int, lines: int, datatrove: bool, least: int, target: Array, to: int,
    sheet: Sheet, out: Array,
) -> int:  # fmt: skip
    """Fills the values of one text of `words` tokens, and `target[to:]` with what is left of it; returns its end."""
    out[:] = 0
    at, token, places, kinds, starts, stops = to, 0, sheet.places, sheet.flags, sheet.starts, sheet.stops
    for k in range(lines):
        begin, end = trimmed(data, starts[k], stops[k], table)
        if begin == end:
            continue
        copied = _judge_line(data, begin, end, table, datatrove, least, target, at, out)
        if copied < 0:
            continue
        while token < words and places[token] < begin:
            token += 1
        out[0] += _sentences(data, token, end, table, words, places, kinds)
        target[copied] = 10
        at = copied + 1
    return _stripped(target, to, at, table)
