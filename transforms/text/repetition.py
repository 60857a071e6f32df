"""Gopher's repetition rules (Rae et al. 2021, table A1), variant `datatrove`.

Table A1 can be read in several ways; this variant counts like datatrove: a duplicate line or paragraph
is every occurrence after the first; the top n-gram weighs its joined length, with spaces, times its
count; duplicate n-grams are found in one greedy scan, which adds the joined length without spaces and
jumps over a repeat; every denominator is the characters of the whole text. N-grams are equal when their
words are: unlike datatrove, `no where` and `nowhere` stay two.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from scoring.config import config
from transforms.rules import Rule
from transforms.text.words import Words

TOP = (2, 3, 4)
DUP = (5, 6, 7, 8, 9, 10)

_PARAGRAPHS = re.compile(r"\n{2,}")
_LINES = re.compile(r"\n+")

Array = np.ndarray[Any, Any]


@config
class RepetitionConfig:
    """Largest ratios that a row may reach. Top n-grams overlap, so theirs can pass 1."""

    max_dup_line_ratio: float
    max_dup_paragraph_ratio: float
    max_dup_line_char_ratio: float
    max_dup_paragraph_char_ratio: float
    max_top_2_gram_char_ratio: float
    max_top_3_gram_char_ratio: float
    max_top_4_gram_char_ratio: float
    max_dup_5_gram_char_ratio: float
    max_dup_6_gram_char_ratio: float
    max_dup_7_gram_char_ratio: float
    max_dup_8_gram_char_ratio: float
    max_dup_9_gram_char_ratio: float
    max_dup_10_gram_char_ratio: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise ValueError(f"{name} must be at least 0, not {value}")


def _rule(code: str, value: str, sentence: str) -> Rule:
    return Rule(f"repetition_{code}", "clean", value, "max", f"repetition.max_{value}", sentence)


RULES = (
    _rule("dup_lines", "dup_line_ratio", "too many lines repeat an earlier one"),
    _rule("dup_paragraphs", "dup_paragraph_ratio", "too many paragraphs repeat an earlier one"),
    _rule("dup_line_chars", "dup_line_char_ratio", "too much of the text is repeated lines"),
    _rule("dup_paragraph_chars", "dup_paragraph_char_ratio", "too much of the text is repeated paragraphs"),
    *(_rule(f"top_{n}_gram", f"top_{n}_gram_char_ratio", f"one run of {n} words makes up too much") for n in TOP),
    *(_rule(f"dup_{n}_gram", f"dup_{n}_gram_char_ratio", f"too much is repeated runs of {n} words") for n in DUP),
)


def measure(text: str, words: Words) -> dict[str, float]:
    """Returns the value of every repetition rule for a `text` with at least one word."""
    chars = len(text)
    lines, line_chars, line_count = _duplicates(_LINES.split(text.strip()))
    paragraphs, paragraph_chars, paragraph_count = _duplicates(_PARAGRAPHS.split(text.strip()))
    return {
        "dup_line_ratio": lines / line_count,
        "dup_paragraph_ratio": paragraphs / paragraph_count,
        "dup_line_char_ratio": line_chars / chars,
        "dup_paragraph_char_ratio": paragraph_chars / chars,
        **{name: value / chars for name, value in ngram_chars(words).items()},
    }


def _duplicates(items: list[str]) -> tuple[int, int, int]:
    """Returns (occurrences after the first, their characters, all occurrences)."""
    distinct = set(items)
    return len(items) - len(distinct), sum(map(len, items)) - sum(map(len, distinct)), len(items)


def ngram_chars(words: Words) -> dict[str, int]:
    """Returns the characters of the top 2–4-grams and of the duplicate 5–10-grams, by the name of their ratio.

    An n-gram that occurs twice is made of two (n−1)-grams that do, so each n looks only at places that the n
    before left over: `at` (k,), ascending. `ids` (k,) names the n-gram that begins there.
    """
    ends = np.concatenate(([0], np.cumsum(words.lengths[words.codes])))
    found: dict[str, int] = {}
    grams = _repeated(np.arange(len(words)), words.codes, words.counts)
    for n in range(2, max(DUP) + 1):
        grams = _longer(grams, words, n)
        if n in TOP:
            found[f"top_{n}_gram_char_ratio"] = _top(grams, ends, n)
        if n in DUP:
            found[f"dup_{n}_gram_char_ratio"] = _greedy(grams, ends, n)
    return found


class Grams(NamedTuple):
    """The n-grams of a text that occur twice or more."""

    at: Array  # (k,) int64, ascending: where they begin
    ids: Array  # (k,) int64: equal for equal n-grams
    counts: Array  # (k,) int64: how often the n-gram occurs


def _repeated(at: Array, ids: Array, counts: Array) -> Grams:
    """Returns the n-grams at `at` whose id counts two or more; `counts` are by id."""
    often = counts[ids]
    keep = often > 1
    return Grams(at[keep], ids[keep], often[keep])


def _longer(grams: Grams, words: Words, n: int) -> Grams:
    """Returns the repeated n-grams, from the repeated (n−1)-grams."""
    if len(grams.at) < 2:
        return Grams(*np.empty((3, 0), np.int64))
    (followed,) = (grams.at[1:] - grams.at[:-1] == 1).nonzero()
    at = grams.at[followed]
    # below tokens · vocabulary, so it fits
    pairs = grams.ids[followed] * len(words.vocabulary) + words.codes[at + n - 1]
    order = np.argsort(pairs)
    ranked = pairs[order]
    ids = np.empty_like(order)
    ids[order] = np.concatenate(([0], np.cumsum(ranked[1:] != ranked[:-1])))
    return _repeated(at, ids, np.bincount(ids))


def _top(grams: Grams, ends: Array, n: int) -> int:
    """Returns joined length, with spaces, × count of the most frequent n-gram, the first of those that tie."""
    if len(ends) <= n:
        return 0
    best = int(np.argmax(grams.counts)) if len(grams.at) else None
    count, first = (int(grams.counts[best]), int(grams.at[best])) if best is not None else (1, 0)
    return (int(ends[first + n] - ends[first]) + n - 1) * count


def _greedy(grams: Grams, ends: Array, n: int) -> int:
    """Returns the characters, without spaces, of repeats met by a scan that jumps over each repeat."""
    seen: set[int] = set()
    chars = free = 0
    spans = (ends[grams.at + n] - ends[grams.at]).tolist()
    for place, gram, span in zip(grams.at.tolist(), grams.ids.tolist(), spans, strict=True):
        if place < free:
            continue
        if gram in seen:
            chars += span
            free = place + n
        seen.add(gram)
    return chars
