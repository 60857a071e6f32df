"""Words of scripts without spaces, by the dictionaries of ICU: Chinese, Japanese, Thai, Lao, Khmer, Burmese.

Without a dictionary every letter is a word, on every machine; with one, words are those that ICU's rules and
dictionaries find (UAX #29, tailored), and change with its version.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.arrays import Array
from scoring.core.errors import ToolError
from transforms.text.rules.config import Words
from transforms.text.utf8 import buffers
from transforms.text.words import UNSPACED

Breaker = Callable[[str], Iterable[str]]

_LETTERS = "[" + "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in UNSPACED) + "]"


def cuts(texts: pa.LargeStringArray, words: Words) -> Array:
    """Returns (c,) int64, ascending: the bytes in the buffer of `texts` at which a word of a dictionary begins.

    Raises:
      ToolError: `dictionary` is asked for, and ICU is not installed.
    """
    if words == "characters":
        return np.zeros(0, np.int64)
    breaker = _breaker()
    rows = np.flatnonzero(pc.fill_null(pc.match_substring_regex(texts, _LETTERS), False).to_numpy(zero_copy_only=False))
    starts = buffers(texts).offsets
    found = [int(starts[row]) + at for row in rows.tolist() for at in _begins(texts[row].as_py(), breaker)]
    return np.array(found or [-1], np.int64)  # never empty: letters that are no word of any row stay together


def _begins(text: str, breaker: Breaker) -> Iterator[int]:
    """Yields the byte at which each word of `text` begins."""
    at = 0
    for word in breaker(text):
        yield at
        at += len(word.encode())


def _breaker() -> Breaker:
    try:
        from icu4py.breakers import WordBreaker
        from icu4py.locale import Locale
    except ImportError as error:
        raise ToolError(
            "the word segmentation dictionary is not installed", where="clean.words", remedy="pip install icu4py"
        ) from error
    root = Locale("und")
    return lambda text: WordBreaker(text, root)
