"""The static score's reading of a text: nine raw dimensions (docs/scoring.md).

Length comes from the token counts, originality from the repetition rules, predictability from the
reference model; the rest is computed here, from the first `max_tokens` words.
"""

import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scoring.static import kernels as static_kernels
from scoring.static import windows as static_windows
from scoring.static import word_kernels as static_word_kernels
from scoring.static.block import Block, blocks, ratio, read_block
from scoring.static.chars import code_points
from scoring.static.noise import cleanliness
from scoring.static.shapes import ended, syntactic_variety
from scoring.static.unigrams import Unigrams
from scoring.static.words import MAX_WINDOW_WORDS, WINDOW_WORDS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DIMENSIONS = (
    "lexical_diversity", "rare_words", "syntactic_variety", "reading_difficulty", "compression", "knowledge_density",
    "semantic_breadth", "coherence", "cleanliness",
)  # fmt: skip

MTLD_THRESHOLD = 0.72  # McCarthy & Jarvis 2010
PROSE_WORDS = 5
ZSTD_LEVEL = 3

_VOWELS = re.compile("[aeiouy]+")


def text_readings(
    texts: Sequence[str], english: Sequence[bool], unigrams: Unigrams, *, max_tokens: int
) -> dict[str, Floats]:
    """Returns each of `DIMENSIONS` as (n,) raw values; NaN where a text has no reading."""
    found: dict[str, list[Floats]] = {d: [] for d in DIMENSIONS}
    for rows in blocks(texts, max_tokens):
        block = read_block(texts[rows], max_tokens)
        for dimension, values in _read(block, english[rows], unigrams).items():
            found[dimension].append(values)
    return {d: np.concatenate([*v, np.zeros(0)]) for d, v in found.items()}


def _read(block: Block, english: Sequence[bool], unigrams: Unigrams) -> dict[str, Floats]:
    breadth, coherence = _windows(block)
    return {
        "lexical_diversity": _mtld(block.lower_words, block.text_words, len(block.lower.vocabulary)),
        "rare_words": block.mean(unigrams.word_surprisal(block.lower.vocabulary)[block.lower_words]),
        "syntactic_variety": syntactic_variety(block),
        "reading_difficulty": _reading_difficulty(block, np.array(english, bool), unigrams),
        "compression": compression(block.texts),
        "knowledge_density": _knowledge_density(block),
        "semantic_breadth": breadth,
        "coherence": coherence,
        "cleanliness": cleanliness(block.texts),
    }


def mtld(words: Sequence[int]) -> float:
    """Returns the measure of textual lexical diversity: mean words per factor, forwards and backwards.

    A factor is a run whose type-token ratio falls below 0.72; the rest counts as the part of a factor
    that it has come (McCarthy & Jarvis 2010). A text without any repeat, whose MTLD is infinite, is
    given half a repeat. NaN without words.
    """
    numbers = np.unique(np.array(words, np.int64), return_inverse=True)[1]
    return float(_mtld(numbers, np.array([len(words)]), len(words))[0])


def _mtld(words: Ints, sizes: Ints, vocabulary: int) -> Floats:
    """Returns (n,) the MTLD of texts of `sizes` words each."""
    found = static_kernels.factors(words, sizes, vocabulary, MTLD_THRESHOLD)
    floor = ratio(np.full(len(sizes), 0.5), sizes) / (1.0 - MTLD_THRESHOLD)
    forwards, backwards = (ratio(sizes, np.maximum(f, floor)) for f in found.T)
    return (forwards + backwards) / 2


def syllables(word: str) -> int:
    """Returns the syllables of a lower-case English word: groups of vowels, a silent final e apart, at least 1."""
    groups = len(_VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith(("le", "ee", "ye")) and groups > 1
    return max(1, groups - silent)


def _reading_difficulty(block: Block, english: npt.NDArray[np.bool_], unigrams: Unigrams) -> Floats:
    """Returns (n,) 100 − reading ease of the English texts, the character difficulty of the others."""
    difficulty = 100.0 - _flesch(block) if english.any() else np.full(len(english), np.nan)
    others = np.flatnonzero(~english)
    difficulty[others] = _char_difficulty([block.texts[k] for k in others.tolist()], unigrams)
    return difficulty


def _flesch(block: Block) -> Floats:
    """Returns (n,) Flesch's (1948) reading ease: 206.835 − 1.015 words/sentence − 84.6 syllables/word."""
    lower = block.lower
    counts = static_word_kernels.syllables(lower.points, lower.starts, lower.stops)
    per_word = block.mean(counts[block.lower_words])
    return 206.835 - 1.015 * ratio(block.text_words, block.text_sentences) - 84.6 * per_word


def _char_difficulty(texts: Sequence[str], unigrams: Unigrams) -> Floats:
    """Returns (n,) the mean surprisal in bits of a text's characters under the corpus."""
    sizes = np.array([len(t) for t in texts], np.int64)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    bits = unigrams.char_surprisal[code_points("".join(texts))]
    return ratio(np.bincount(owners, weights=bits, minlength=len(sizes)), sizes)


def compression(texts: Sequence[str]) -> Floats:
    """Returns (n,) compressed over plain bytes (zstd, level 3): repetition lowers it. NaN for an empty text."""
    import zstandard

    compress = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress
    data = [t.encode("utf-8", "surrogatepass") for t in texts]
    return np.array([len(compress(d)) / len(d) if d else math.nan for d in data], np.float64)


def _knowledge_density(block: Block) -> Floats:
    """Returns (n,) numbers, names and long terms in a text's prose, per 100 of all its words."""
    bits = block.word_bits[block.words]
    terms, names = ((bits & bit) > 0 for bit in (static_word_kernels.TERM, static_word_kernels.NAME))
    names[block.starts] = False  # a capital says nothing at the start of a sentence
    found = (terms | names) & np.repeat(_is_prose(block), block.sentence_words)
    return 100.0 * block.mean(found.astype(np.float64))


def _is_prose(block: Block) -> npt.NDArray[np.bool_]:
    """Returns (s,) which sentences are prose: at least 5 words, a terminal mark, at most half in capitals.

    Menus, tables and headings are full of names and numbers, and say nothing about them.
    """
    count = len(block.sentence_words)
    capital = (block.word_bits[block.words] & static_word_kernels.CAPITAL) > 0
    owners = np.repeat(np.arange(count), block.sentence_words)
    capitals = np.bincount(owners, weights=capital, minlength=count)
    return (block.sentence_words >= PROSE_WORDS) & (2 * capitals <= block.sentence_words) & (ended(block) > 0)


def _windows(block: Block) -> tuple[Floats, Floats]:
    """Returns (n,) semantic breadth and (n,) coherence of the texts' windows."""
    count = len(block.texts)
    flat, sizes = static_kernels.windows(block.sentence_words, block.text_sentences, WINDOW_WORDS, MAX_WINDOW_WORDS)
    owners = np.repeat(np.arange(count), sizes)
    buckets, signs = static_windows.hash_words(block.lower)
    windows = np.repeat(np.arange(len(flat)), flat)
    vectors = static_windows.window_vectors(
        windows, buckets[block.lower_words], signs[block.lower_words], count=len(flat)
    )
    return static_windows.breadth(vectors, owners, count), static_windows.coherence(vectors, owners, count)
