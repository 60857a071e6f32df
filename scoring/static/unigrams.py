"""How often the words and characters of a corpus occur, and the surprisal that follows from it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, repeat
from operator import add

import numpy as np
import numpy.typing as npt

from scoring.static.block import blocks, lower_words, scan
from scoring.static.chars import CODE_POINTS, code_points

MAX_WORD_CHARS = 64  # longer ones (blobs, URLs without breaks) count as unseen

Floats = npt.NDArray[np.float64]


def count_tokens(texts: Sequence[str], *, max_tokens: int) -> tuple[Counter[str], Counter[str]]:
    """Returns how often each lower-case word and each character occurs in the excerpts of `texts`.

    Overlong words are counted under the empty word.
    """
    words, chars = Counter[str](), np.zeros(CODE_POINTS, np.int64)
    for rows in blocks(texts, max_tokens):
        found = scan(texts[rows], max_tokens)
        lower = lower_words(found.joined, len(found.firsts))
        counts = np.bincount(lower.numbers[found.words], minlength=len(lower.vocabulary))
        overlong = lower.stops - lower.starts > MAX_WORD_CHARS
        if overlong.any():
            words[""] += int(counts[overlong].sum())
        _add(words, compress(lower.vocabulary, ~overlong), counts[~overlong].tolist())
        chars += np.bincount(code_points("".join(found.texts)), minlength=CODE_POINTS)
    return words, Counter({chr(p): int(chars[p]) for p in np.flatnonzero(chars)})


def _add(total: Counter[str], words: Iterable[str], counts: list[int]) -> None:
    """Adds the counts of distinct words."""
    names = list(words)
    before = map(total.get, names, repeat(0))
    dict.update(total, zip(names, map(add, before, counts), strict=True))


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
        counts = np.fromiter(map(self.words.get, words, repeat(0)), np.float64, len(words))
        return np.log2((self.word_total + len(self.words) + 1) / (counts + 1))

    @cached_property
    def char_surprisal(self) -> Floats:
        """The surprisal in bits of every code point, (1114112,)."""
        counts = np.zeros(CODE_POINTS)
        for char, n in self.chars.items():
            counts[ord(char)] = n
        return np.log2((self.char_total + len(self.chars) + 1) / (counts + 1))
