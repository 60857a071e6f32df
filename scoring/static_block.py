"""A block of texts, cut into sentences and words once, that every text dimension counts over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from scoring.static_words import find_sentences

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Texts cut into sentences and words; words are indices into `vocabulary`."""

    texts: Sequence[str]
    sentences: Sequence[str]
    sentence_words: Ints  # (s,) words of each sentence
    text_sentences: Ints  # (n,) sentences of each text
    words: Ints  # (m,)
    vocabulary: Sequence[str]

    @cached_property
    def text_words(self) -> Ints:
        """Words of each text, (n,)."""
        owners = np.repeat(np.arange(len(self.texts)), self.text_sentences)
        return np.bincount(owners, weights=self.sentence_words, minlength=len(self.texts)).astype(np.int64)

    @cached_property
    def owners(self) -> Ints:
        """The text of each word, (m,) ascending."""
        return np.repeat(np.arange(len(self.texts)), self.text_words)

    @cached_property
    def lower_vocabulary(self) -> list[str]:
        """The distinct lower-case words."""
        return list(dict.fromkeys(w.lower() for w in self.vocabulary))

    @cached_property
    def lower_words(self) -> Ints:
        """The words as indices into `lower_vocabulary`, (m,)."""
        index = {w: k for k, w in enumerate(self.lower_vocabulary)}
        table = np.fromiter((index[w.lower()] for w in self.vocabulary), np.int64, len(self.vocabulary))
        return table[self.words]

    def mean(self, values: Floats) -> Floats:
        """Returns (n,) the mean over each text's words of `values` (m,); NaN for a text without words."""
        sums = np.bincount(self.owners, weights=values, minlength=len(self.texts))
        return ratio(sums, self.text_words)

    @cached_property
    def starts(self) -> Ints:
        """The position of each sentence's first word, (s,)."""
        return np.cumsum(self.sentence_words) - self.sentence_words

    def by_text(self, values: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yields each text's slice of `values`, one a word."""
        end = 0
        for size in self.text_words.tolist():
            yield values[end : end + size]
            end += size

    def sentences_by_text(self) -> Iterator[Sequence[int]]:
        """Yields the sizes in words of each text's sentences."""
        sizes = self.sentence_words.tolist()
        end = 0
        for count in self.text_sentences.tolist():
            yield sizes[end : end + count]
            end += count


def read_block(texts: Sequence[str]) -> Block:
    """Returns `texts`, already cut to their excerpts, as a block."""
    found = [find_sentences(t) for t in texts]
    sentences = [s for pairs in found for s, _ in pairs]
    sizes = [len(w) for pairs in found for _, w in pairs]
    flat = list(chain.from_iterable(w for pairs in found for _, w in pairs))
    index = {w: k for k, w in enumerate(dict.fromkeys(flat))}
    return Block(
        texts=texts,
        sentences=sentences,
        sentence_words=np.array(sizes, np.int64),
        text_sentences=np.array([len(pairs) for pairs in found], np.int64),
        words=np.fromiter(map(index.__getitem__, flat), np.int64, len(flat)),
        vocabulary=list(index),
    )


def ratio(numerator: npt.NDArray, denominator: npt.NDArray) -> Floats:
    """Returns numerator/denominator (n,), NaN where the denominator is 0."""
    empty = np.full(len(denominator), np.nan)
    return np.divide(numerator, denominator, out=empty, where=np.asarray(denominator) > 0)
