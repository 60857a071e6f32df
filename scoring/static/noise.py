"""The cleanliness of a text: what is left when markup, symbols and boilerplate are taken away."""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scoring.static import kernels as static_kernels
from scoring.static.chars import code_points
from scoring.static.phrases import PHRASES, hold_phrases

MAX_BOILERPLATE_WORDS = 25  # a longer line that says "cookie" is prose about cookies

_MARKUP = re.compile(
    r"<[/!?a-zA-Z][^<>\n]{0,300}>"  # tags, comments
    r"|&(?:[a-zA-Z]{2,8}|#\d{1,6});"
    r"|(?:https?://|www\.)[^\s<>\"]{1,300}"
    r"|\{\{[^{}]{0,300}\}\}|\[\[|\]\]"  # wiki templates and links
)
_MARKUP_HINTS = ("<", "&", "http", "www.", "{{", "[[", "]]")
_PROSE = ".,;:!?'\"()-–—…‘’“”«»/%&¿¡、。，！？；：「」『』（）《》・·،؟؛।॥"
_CLEAN_CATEGORIES = ("L", "M", "N", "Z")

Floats = npt.NDArray[np.float64]


def without_boilerplate(text: str) -> str:
    """Returns `text` without the short lines that hold one of the boilerplate phrases."""
    return "\n".join(line for line in text.split("\n") if not _is_boilerplate(line))


def _is_boilerplate(line: str) -> bool:
    folded = line.lower()
    return any(map(folded.__contains__, PHRASES)) and len(line.split()) <= MAX_BOILERPLATE_WORDS


def without_markup(text: str) -> str:
    """Returns `text` without tags, entities, addresses, wiki templates and link brackets."""
    return _MARKUP.sub("", text) if any(map(text.__contains__, _MARKUP_HINTS)) else text


def cleanliness(texts: Sequence[str]) -> Floats:
    """Returns (n,) 1 − share of a text's characters in boilerplate, markup or symbols; NaN for an empty text.

    Symbols are all characters but letters, marks, numbers, spaces and the punctuation of prose.
    """
    held = hold_phrases(texts).tolist()
    rests = [without_markup(without_boilerplate(t) if h else t) for t, h in zip(texts, held, strict=True)]
    clean = np.array([len(r) for r in rests], np.float64) - _symbols(rests)
    total = np.array([len(t) for t in texts], np.float64)
    return np.asarray(np.divide(clean, total, out=np.full(len(texts), np.nan), where=total > 0))


def _symbols(texts: Sequence[str]) -> Floats:
    """Returns (n,) how many symbols each text holds."""
    points = code_points("".join(texts))
    seen = np.zeros(int(points.max()) + 1 if len(points) else 1, bool)
    seen[points] = True
    seen[[p for p in np.flatnonzero(seen).tolist() if not _is_symbol(chr(p))]] = False
    sizes = np.array([len(t) for t in texts], np.int64)
    return static_kernels.count_marked(points, sizes, seen).astype(np.float64)


def _is_symbol(char: str) -> bool:
    return char not in _PROSE and char not in "\n\t\r" and unicodedata.category(char)[0] not in _CLEAN_CATEGORIES
