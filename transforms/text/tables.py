"""What every code point is to the text rules: one table of flags, built from Unicode's own data.

Sentence terminals: Unicode 16, PropList.txt, Sentence_Terminal, with the Khmer signs U+17D6, U+17D9 and U+17DA.
"""

import unicodedata
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from scoring.core.arrays import Array
from scoring.core.table_cache import kept
from transforms.text.words import INVISIBLE, RUNS, punctuation
from transforms.text.words import UNSPACED as UNSPACED_RANGES

POINTS = 0x110000
_ASSIGNED = ((0, 0x40000), (0xE0000, 0xE0200))  # the planes between hold nothing but private use

SPACE = 1  # separates tokens: white space and U+200B
WORD = 2  # letters, digits and marks of spaced scripts
MARK = 4  # combining marks and in-word format characters
UNSPACED = 8  # letters and digits of scripts without spaces
SYMBOL = 16  # the punctuation set of W′
ALPHA = 32
DIGIT = 64  # decimal
RUN = 128  # a repeat of it is one token
JOIN = 256  # inside a word, part of it
POINT = 512  # between digits, part of the word
TERMINAL = 1024  # ends a sentence
BLANK = 2048  # white space to `str.strip` and `str.split`

_TERMINALS = (
    0x21, 0x2E, 0x3F, 0x589, (0x61D, 0x61F), 0x6D4, (0x700, 0x702), 0x7F9, 0x837, 0x839, (0x83D, 0x83E), (0x964, 0x965),
    (0x104A, 0x104B), 0x1362, (0x1367, 0x1368), 0x166E, (0x1735, 0x1736), (0x17D4, 0x17D6), (0x17D9, 0x17DA), 0x1803,
    0x1809, (0x1944, 0x1945), (0x1AA8, 0x1AAB), (0x1B4E, 0x1B4F), (0x1B5A, 0x1B5B), (0x1B5E, 0x1B5F), (0x1B7D, 0x1B7F),
    (0x1C3B, 0x1C3C), (0x1C7E, 0x1C7F), 0x2024, (0x203C, 0x203D), (0x2047, 0x2049), (0x2CF9, 0x2CFB), 0x2E2E, 0x2E3C,
    (0x2E53, 0x2E54), (0x2E60, 0x2E61), 0x3002, 0xA4FF, (0xA60E, 0xA60F), 0xA6F3, 0xA6F7, (0xA876, 0xA877),
    (0xA8CE, 0xA8CF), 0xA92F, (0xA9C8, 0xA9C9), (0xAA5D, 0xAA5F), (0xAAF0, 0xAAF1), 0xABEB, 0xFE12, (0xFE15, 0xFE16),
    0xFE52, (0xFE56, 0xFE57), 0xFF01, 0xFF0E, 0xFF1F, 0xFF61, (0x10A56, 0x10A57), (0x10F55, 0x10F59),
    (0x10F86, 0x10F89), (0x11047, 0x11048), (0x110BE, 0x110C1), (0x11141, 0x11143), (0x111C5, 0x111C6), 0x111CD,
    (0x111DE, 0x111DF), (0x11238, 0x11239), (0x1123B, 0x1123C), 0x112A9, (0x113D4, 0x113D5), (0x1144B, 0x1144C),
    (0x115C2, 0x115C3), (0x115C9, 0x115D7), (0x11641, 0x11642), (0x1173C, 0x1173E), 0x11944, 0x11946,
    (0x11A42, 0x11A43), (0x11A9B, 0x11A9C), (0x11C41, 0x11C42), (0x11EF7, 0x11EF8), (0x11F43, 0x11F44),
    (0x16A6E, 0x16A6F), 0x16AF5, (0x16B37, 0x16B38), 0x16B44, (0x16D6E, 0x16D6F), 0x16E98, 0x1BC9F, 0x1DA88,
)  # fmt: skip


@cache
def terminals() -> frozenset[str]:
    """Returns the characters that end a sentence."""
    ranges = ((item, item) if isinstance(item, int) else item for item in _TERMINALS)
    return frozenset(chr(c) for first, last in ranges for c in range(first, last + 1))


@kept
def classes() -> Array:
    """Returns (0x110000,) uint16: the flags of every code point."""
    chars = [chr(c) for first, last in _ASSIGNED for c in range(first, last)]
    alnum, unspaced = _mask(str.isalnum, chars), _unspaced()
    mark = _mask(lambda char: unicodedata.category(char)[0] == "M", chars) | _among(map(chr, INVISIBLE))
    flag = {
        BLANK: _mask(str.isspace, chars),
        SYMBOL: _among(punctuation()),
        ALPHA: _mask(str.isalpha, chars),
        DIGIT: _mask(str.isdecimal, chars),
        RUN: _among(RUNS),
        JOIN: _among("'’_‐‑-"),
        POINT: _among(".,"),
        TERMINAL: _among(terminals()),
        MARK: mark,
        UNSPACED: alnum & unspaced,
        WORD: (alnum & ~unspaced) | mark,
    }
    flag[SPACE] = flag[BLANK] | _among("\u200b")
    flags = np.stack([mask * np.uint16(bit) for bit, mask in flag.items()])
    return np.asarray(np.bitwise_or.reduce(flags))


@cache
def byte_classes() -> Array:
    """Returns (256,) uint16: the flags of ASCII; `JOIN` alone for a byte of another code point, to be looked at."""
    return np.concatenate((classes()[:128], np.full(128, JOIN, np.uint16)))


@kept
def lower() -> Array:
    """Returns (0x110000,) int32: each code point in lower case, by Unicode's simple mapping."""
    found = np.arange(POINTS, dtype=np.int32)
    for first, last in _ASSIGNED:
        for c in range(first, last):
            small = chr(c).lower()
            if len(small) == 1:
                found[c] = ord(small)
    return found


def _mask(test: Callable[[str], bool], chars: list[str]) -> Array:
    """Returns (0x110000,) bool: which of `chars` pass `test`; the other code points do not."""
    return _among(filter(test, chars))


def _among(chars: Iterable[str]) -> Array:
    found = np.zeros(POINTS, bool)
    found[[ord(c) for c in chars]] = True
    return found


def _unspaced() -> Array:
    found = np.zeros(POINTS, bool)
    for first, last in UNSPACED_RANGES:
        found[first : last + 1] = True
    return found
