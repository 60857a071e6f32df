"""Words: how a text is cut before any rule counts, in scripts with and without spaces.

Boundaries, in the manner of a rule-based word tokenizer (datatrove's default reads W this way):

* A word is a run of letters, digits and combining marks. Apostrophes, hyphens and underscores inside
  it belong to it (`don't`, `e-mail`, `foo_bar`), and so do `.` and `,` between digits (`1,000`, `3.14`).
* In Han, kana, Bopomofo, Thai, Lao, Khmer and Burmese every base character, with the combining marks
  that follow it, is one word: no dictionary, so the same text is cut alike on every machine. A Thai
  vowel or tone sign that Unicode calls a mark stays with its consonant, one that it calls a letter
  counts for itself.
* A run of one ASCII punctuation mark, or of one of `…—–。！？，、·•`, is one token of its own (`...`,
  `!!!`); any other symbol stands alone. Marks stay with the symbol before them.
* White space and U+200B separate and are never part of a token.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache

UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # Han radicals
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3031, 0x3035),
    (0x3038, 0x303C),
    (0x3040, 0x312F),  # kana, Bopomofo
    (0x3190, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),  # Burmese
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # half-width kana
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),
)
INVISIBLE = (0x00AD, 0x200C, 0x200D, 0x2060)  # format characters that stand inside words
RUNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~…—–。！？，、·•"
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def limit(text: str) -> int:
    """Returns a code point above all of `text`: the end of Unicode's first plane, or of Unicode.

    `re` tests the ranges of the other planes one by one, so classes without them are several times faster.
    """
    return sys.maxunicode + 1 if _ASTRAL.search(text) else 0x10000


def char_class(points: Iterable[int]) -> str:
    """Returns the inside of a regular expression's `[…]` that matches exactly the code points `points`."""
    ranges: list[list[int]] = []
    for point in sorted(points):
        if ranges and point == ranges[-1][1] + 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@cache
def mark_class(limit: int) -> str:
    """Returns the class of combining marks and in-word format characters below code point `limit`."""
    marks = (c for c in range(limit) if unicodedata.category(chr(c))[0] == "M")
    return char_class({*marks, *INVISIBLE})


@cache
def spaced_class(limit: int) -> str:
    """Returns the class of letters, digits and marks of spaced scripts below code point `limit`."""
    unspaced = {c for first, last in UNSPACED for c in range(first, last + 1)}
    return char_class(c for c in range(limit) if chr(c).isalnum() and c not in unspaced) + mark_class(limit)


@cache
def punctuation() -> frozenset[str]:
    """Returns the punctuation set of W′: every Unicode P*, all ASCII symbols, and ´ ∶ ►."""
    found = {chr(c) for c in range(0x20000) if unicodedata.category(chr(c))[0] == "P"}
    return frozenset(found | set(RUNS) | set("´∶►"))
