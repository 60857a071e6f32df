"""Cheap text statistics that separate prose from page residue; none of them measures length.

A value is NaN where it means nothing: those of capitals and of function words are for English alone, as German
capitalises its nouns and Chinese has neither. A word is `\\w+` here. The rules and the static score define it
otherwise, on purpose: docs/decisions/013-three-words.md.
"""

import re
import statistics
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MAX_CHARS = 20_000  # of a text that are read
DISTINCT_WORDS = 100  # the words among which distinct ones are counted: more would measure length

ALL = ("digit_ratio", "colon_ratio", "exclamation_ratio", "distinct_word_ratio", "sentence_words", "sentence_words_sd")
ENGLISH = (
    "capital_ratio", "capitalised_word_ratio", "function_word_ratio", "person_word_ratio", "long_word_ratio",
)  # fmt: skip
NAMES = ALL + ENGLISH

_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?]+\s|[。！？]+")
_FUNCTION = frozenset({"the", "of", "and", "to", "in"})
_PERSON = frozenset({"i", "you", "my", "your", "we"})
_LONG = 10  # characters

Floats = npt.NDArray[np.float64]


def text_values(texts: Sequence[str], english: Sequence[bool]) -> Floats:
    """Returns (n, NAMES) of n texts; all NaN for one without words. Ratios are per character or per word."""
    rows = [_values(text[:MAX_CHARS], e) for text, e in zip(texts, english, strict=True)]
    return np.array(rows, np.float64).reshape(len(texts), len(NAMES))


def _values(text: str, english: bool) -> list[float]:
    words = _WORD.findall(text)
    if not words:
        return [np.nan] * len(NAMES)
    plain = [*_shares(text, words), *_sentences(text)]
    return [*plain, *(_english(text, words) if english else [np.nan] * len(ENGLISH))]


def _shares(text: str, words: Sequence[str]) -> list[float]:
    first = [word.lower() for word in words[:DISTINCT_WORDS]]
    return [
        sum(map(str.isdigit, text)) / len(text), (text.count(":") + text.count("：")) / len(words),
        (text.count("!") + text.count("！")) / len(words), len(set(first)) / len(first),
    ]  # fmt: skip


def _sentences(text: str) -> list[float]:
    """Returns mean and standard deviation of the words in a sentence."""
    lengths = [len(piece.split()) for piece in _SENTENCE_END.split(text) if piece.strip()] or [0]
    return [statistics.fmean(lengths), statistics.pstdev(lengths)]


def _english(text: str, words: Sequence[str]) -> list[float]:
    lower = [word.lower() for word in words]
    counts = (
        sum(word[0].isupper() for word in words), sum(word in _FUNCTION for word in lower),
        sum(word in _PERSON for word in lower), sum(len(word) >= _LONG for word in words),
    )  # fmt: skip
    return [sum(map(str.isupper, text)) / len(text), *(count / len(words) for count in counts)]
