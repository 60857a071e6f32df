"""A block of texts, cut into sentences and words once, that every text dimension counts over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from scoring.static import kernels as static_kernels
from scoring.static import word_kernels as static_word_kernels
from scoring.static.chars import classes, code_points, text_of
from scoring.static.words import CHARS_PER_TOKEN

BLOCK_CHARS = 1 << 21  # texts are read in blocks: memory is bounded whatever the part holds

LONG_TERM_CHARS = 10  # of a word that counts as a term

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Points = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Block:
    """Texts cut to their excerpts and into sentences and words; words are indices into `vocabulary`."""

    texts: Sequence[str]
    sentence_words: Ints  # (s,) words of each sentence
    sentence_marks: Ints  # (s,) the classes of its characters, or-ed
    sentence_lasts: npt.NDArray[np.uint32]  # (s,) its last character but quotation marks, brackets and spaces
    text_sentences: Ints  # (n,) sentences of each text
    text_words: Ints  # (n,)
    words: Ints  # (m,)
    joined: str  # the v words of the vocabulary, a line each
    word_bits: npt.NDArray[np.uint8]  # (v,) of `static_kernels`

    @cached_property
    def owners(self) -> Ints:
        """The text of each word, (m,) ascending."""
        return np.repeat(np.arange(len(self.texts)), self.text_words)

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        """The distinct words."""
        return self.joined.split("\n") if len(self.word_bits) else []

    @cached_property
    def lower(self) -> "Lower":
        """The distinct lower-case words."""
        return lower_words(self.joined, len(self.word_bits))

    @cached_property
    def lower_words(self) -> Ints:
        """The words as indices into the lower-case ones, (m,)."""
        return self.lower.numbers[self.words]

    def mean(self, values: Floats) -> Floats:
        """Returns (n,) the mean over each text's words of `values` (m,); NaN for a text without words."""
        sums = np.bincount(self.owners, weights=values, minlength=len(self.texts))
        return ratio(sums, self.text_words)

    @cached_property
    def starts(self) -> Ints:
        """The position of each sentence's first word, (s,)."""
        return np.cumsum(self.sentence_words) - self.sentence_words


@dataclass(frozen=True)
class Lower:
    """Distinct lower-case words, and where their characters are in `points`."""

    vocabulary: Sequence[str]  # v words
    numbers: Ints  # (w,) for each word that was given, which of them it is
    points: Points
    starts: Places  # (v,)
    stops: Places  # (v,)


def lower_words(words: str, count: int) -> Lower:
    """Returns the distinct lower-case forms of `count` words, a line each."""
    joined = words.lower()  # a break parts words for the rule of the final sigma too
    points = code_points(joined)
    breaks = np.flatnonzero(points == ord("\n"))
    starts = np.concatenate([[0], breaks + 1]).astype(np.int32)[:count]
    stops = np.concatenate([breaks, [len(points)]]).astype(np.int32)[:count]
    numbers, firsts = static_kernels.number_words(points, starts, stops)
    lowered = joined.split("\n")
    return Lower([lowered[k] for k in firsts.tolist()], numbers, points, starts[firsts], stops[firsts])


@dataclass(frozen=True)
class Scan:
    """Texts cut to their excerpts and into words."""

    texts: Sequence[str]
    points: Points  # of the uncut texts, one behind another
    begins: Ints  # (n,) where each text begins in `points`
    cuts: Ints  # (n,) where its excerpt ends
    starts: Places  # (m,) where each word begins
    stops: Places  # (m,) where it ends
    text_words: Ints  # (n,)
    words: Ints  # (m,) which kind each is
    firsts: Ints  # (v,) the first word of each kind
    joined: str  # the kinds, a line each


def scan(texts: Sequence[str], max_tokens: int) -> Scan:
    """Returns the words of the excerpts of `texts`, of `max_tokens` words and 32 characters a word."""
    texts = [t[: CHARS_PER_TOKEN * max_tokens] for t in texts]
    ends = np.cumsum([len(t) for t in texts], dtype=np.int64)
    begins = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    points = code_points("".join(texts))
    starts, stops, counts, cuts = static_kernels.find_words(points, ends, classes(), max_tokens)
    words, firsts = static_kernels.number_words(points, starts, stops)
    joined = text_of(static_kernels.join_words(points, starts[firsts], stops[firsts]))
    excerpts = [t[:size] for t, size in zip(texts, (cuts - begins).tolist(), strict=True)]
    return Scan(excerpts, points, begins, cuts, starts, stops, counts, words, firsts, joined)


def read_block(texts: Sequence[str], max_tokens: int) -> Block:
    """Returns the excerpts of `texts`, of `max_tokens` words and 32 characters a word, as a block."""
    s, table = scan(texts, max_tokens), classes()
    found = static_kernels.find_sentences(s.points, s.begins, s.cuts, table, s.starts, s.text_words)
    bits = static_word_kernels.word_bits(s.points, s.starts[s.firsts], s.stops[s.firsts], table, LONG_TERM_CHARS)
    return Block(s.texts, *found, s.text_words, s.words, s.joined, bits)


def blocks(texts: Sequence[str], max_tokens: int) -> Iterator[slice]:
    """Yields slices of `texts` whose excerpts have about `BLOCK_CHARS` characters at most, at least one text each."""
    start, total = 0, 0
    for row, text in enumerate(texts):
        total += min(len(text), CHARS_PER_TOKEN * max_tokens)
        if total >= BLOCK_CHARS:
            yield slice(start, row + 1)
            start, total = row + 1, 0
    if start < len(texts):
        yield slice(start, len(texts))


def ratio(numerator: npt.NDArray[np.number], denominator: npt.NDArray[np.number]) -> Floats:
    """Returns numerator/denominator (n,), NaN where the denominator is 0."""
    empty = np.full(len(denominator), np.nan)
    return np.asarray(np.divide(numerator, denominator, out=empty, where=np.asarray(denominator) > 0))
