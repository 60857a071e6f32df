"""What a code point is to the key text: tables over all of Unicode, made from Python's own database.

`properties` holds the bits below and, from bit `CLASS_SHIFT` on, the canonical combining class.
"""

import unicodedata
from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

from scoring.core.table_cache import kept
from transforms.text import words
from transforms.text.normal.normalize import normalize

LIMIT = 0x110000
GAP = 1  # white space, punctuation but `+` and `#`: a space in the key
REMOVED = 2  # controls and soft hyphens
DIGIT = 4
LETTER = 8  # what keeps a digit run beside it from being a number
WORD = 16  # `\w` of regular expressions
PLUS = 32  # `+` and `#`
TAKES = 64  # a starter that may combine with a later mark, or whose own marks may have to be reordered
JOINS = 128  # may combine with a character before it (Unicode: NFC_Quick_Check = Maybe)
ODD = 256  # not stable in NFC, or its lower case depends on the text around it
UNSPACED = 512  # a letter or digit of a script without spaces
MARK = 1024  # belongs to the token before it
CLASS_SHIFT = 16

Table = npt.NDArray[np.integer]

_ASSIGNED = (range(0x33480), range(0xE0000, 0xE0200))  # beyond them there are but private use and holes
_CONTEXTUAL = "\u0130\u03a3"  # İ becomes two characters, Σ one of two
_SOFT_HYPHEN = "\u00ad"
_HANGUL = (range(0x1100, 0x1113), range(0xAC00, 0xD7A4))
_HANGUL_TAILS = range(0x1161, 0x11C3)


@kept
def properties() -> Table:
    """Returns (LIMIT,) uint32."""
    table = np.zeros(LIMIT, np.uint32)
    chars = [chr(c) for span in _ASSIGNED for c in span]
    category = list(map(unicodedata.category, chars))
    points = np.fromiter(map(ord, chars), np.int64, len(chars))
    table[points] = np.fromiter(map(unicodedata.combining, chars), np.uint32, len(chars)) << CLASS_SHIFT
    alnum = points[np.fromiter(map(str.isalnum, chars), bool, len(chars))]
    digits = points[np.fromiter(map(str.isdecimal, chars), bool, len(chars))]
    spaces = points[np.fromiter(map(str.isspace, chars), bool, len(chars))]
    marks = points[np.fromiter((c[0] == "M" for c in category), bool, len(chars))]
    unspaced = np.zeros(LIMIT, bool)
    for first, last in words.UNSPACED:
        unspaced[first : last + 1] = True
    _add(table, GAP, spaces, map(ord, words.punctuation() - set("+#")), [0x200B])
    _add(table, DIGIT, digits)
    _add(table, LETTER, alnum[~unspaced[alnum]], marks, words.INVISIBLE)
    _add(table, MARK, marks, words.INVISIBLE)
    _add(table, UNSPACED, alnum[unspaced[alnum]])
    _add(table, WORD, alnum, [ord("_")])
    _add(table, PLUS, map(ord, "+#"))
    controls = (c for c, kind in zip(chars, category, strict=True) if kind in ("Cc", "Cf") and c < "\U00010000")
    _add(table, REMOVED, map(ord, _SOFT_HYPHEN), (ord(c) for c in controls if not normalize(c, "NFC")))
    _add_normal_form(table, chars)
    return table


def _add(table: Table, bit: int, *points: Iterable[int]) -> None:
    for some in points:
        table[np.fromiter(some, np.int64)] |= np.uint32(bit)


def _add_normal_form(table: Table, chars: list[str]) -> None:
    """Adds ODD, TAKES and JOINS; of Hangul, which composes by rule, the letters and syllables."""
    unstable = {c for c in chars if not unicodedata.is_normalized("NFC", c)}
    split = {c: parts.split() for c, parts in zip(chars, map(unicodedata.decomposition, chars), strict=True) if parts}
    split = {c: parts for c, parts in split.items() if parts[0][0] != "<"}
    pairs = [parts for c, parts in split.items() if len(parts) == 2 and c not in unstable]
    _add(table, ODD, map(ord, unstable), map(ord, _CONTEXTUAL))
    _add(table, TAKES, map(ord, split), (int(first, 16) for first, _ in pairs), *_HANGUL)
    _add(table, JOINS, (int(second, 16) for _, second in pairs), _HANGUL_TAILS)


@cache
def simple() -> Table:
    """Returns (256,) uint8 by byte: an ASCII letter in lower case, 1 for an ASCII gap, 0 for all else."""
    chars = (chr(byte) for byte in range(128))
    ascii_gap = ((properties()[:128] & (GAP | REMOVED)) == GAP).tolist()
    found = [ord(c.lower()) if c.isalpha() else int(ascii_gap[ord(c)]) for c in chars]
    return np.array(found + [0] * 128, np.uint8)


@cache
def lower() -> Table:
    """Returns (LIMIT,) int32: the lower case of every code point that has just one."""
    table = itself().copy()
    for span in _ASSIGNED:
        for char in map(chr, span):
            small = char.lower()
            if small != char and len(small) == 1:
                table[ord(char)] = ord(small)
    return table


@cache
def itself() -> Table:
    """Returns (LIMIT,) int32: every code point as it is, for text that is in lower case."""
    return np.arange(LIMIT, dtype=np.int32)
