"""How often the words and characters of a corpus occur, and the surprisal that follows from it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from scoring.static_words import excerpt, find_words

MAX_WORD_CHARS = 64  # longer ones (blobs, URLs without breaks) count as unseen
CODE_POINTS = 0x110000

Floats = npt.NDArray[np.float64]


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Returns the (n,) code points of `text`."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def count_words(texts: Iterable[str], *, max_tokens: int) -> Counter[str]:
    """Returns how often each lower-case word stands in the excerpts of `texts`; overlong ones under the empty word."""
    cased: Counter[str] = Counter()
    for text in texts:
        cased.update(find_words(excerpt(text, max_tokens)))
    counts: Counter[str] = Counter()
    for word, n in cased.items():
        lower = word.lower()
        counts[lower if len(lower) <= MAX_WORD_CHARS else ""] += n
    return counts


def count_chars(texts: Iterable[str], *, max_tokens: int) -> Counter[str]:
    """Returns how often each character stands in the excerpts of `texts`."""
    counts = np.zeros(CODE_POINTS, np.int64)
    for text in texts:
        points, found = np.unique(code_points(excerpt(text, max_tokens)), return_counts=True)
        counts[points] += found
    return Counter({chr(p): int(counts[p]) for p in np.flatnonzero(counts)})


@dataclass(frozen=True)
class Unigrams:
    """Counts of the commonest words (`words`) and of characters, and the totals over the corpus.

    Surprisal of a token seen n times among T, with V tokens in the table: log2((T + V + 1)/(n + 1))
    bits. A word outside the table has n = 0: the largest surprisal there is.
    """

    words: Mapping[str, int]
    word_total: int
    chars: Mapping[str, int]
    char_total: int

    def word_surprisal(self, words: Sequence[str]) -> Floats:
        """Returns the surprisal (n,) in bits of lower-case `words`."""
        counts = np.fromiter((self.words.get(w, 0) for w in words), np.float64, len(words))
        return np.log2((self.word_total + len(self.words) + 1) / (counts + 1))

    @cached_property
    def char_surprisal(self) -> Floats:
        """The surprisal in bits of every code point, (1114112,)."""
        counts = np.zeros(CODE_POINTS)
        for char, n in self.chars.items():
            counts[ord(char)] = n
        return np.log2((self.char_total + len(self.chars) + 1) / (counts + 1))
