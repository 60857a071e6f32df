"""The static score's reading of a text: nine raw dimensions (docs/scoring.md).

Length comes from the token counts, originality from the repetition rules, predictability from the
reference model; the rest is computed here, from the first `max_tokens` words.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from scoring import static_windows
from scoring.static_block import Block, ratio, read_block
from scoring.static_noise import cleanliness
from scoring.static_words import excerpt, window_sizes
from scoring.unigrams import Unigrams, code_points

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DIMENSIONS = (
    "lexical_diversity", "rare_words", "syntactic_variety", "reading_difficulty", "compression", "knowledge_density",
    "semantic_breadth", "coherence", "cleanliness",
)  # fmt: skip

BLOCK_CHARS = 1 << 21  # texts are read in blocks: memory is bounded whatever the part holds
MTLD_THRESHOLD = 0.72  # McCarthy & Jarvis 2010
LONG_TERM_CHARS = 10
PROSE_WORDS = 5
ZSTD_LEVEL = 3

_VOWELS = re.compile("[aeiouy]+")
_OPENERS = {
    word: kind
    for kind, words in {
        "determiner": "the a an this that these those some any each every no all both many most several",
        "pronoun": "i you he she it we they his her its their our my your there one who someone",
        "conjunction": "and but or so yet because although though while if when since unless after before as until",
        "preposition": "in on at by for from with to of under over between through during about into without",
        "question": "what why how where which whose whom",
        "adverb": "however therefore thus then also now here finally first second next moreover furthermore indeed",
    }.items()
    for word in words.split()
}
_MARKS = (
    (",", "，", "、", "،"),
    (":", ";", "：", "；"),
    ("(", "（", "[", "–", "—"),
    ('"', "“", "”", "「", "«"),
)
_TERMINALS = {".": ".", "。": ".", "।": ".", "?": "?", "？": "?", "؟": "?", "!": "!", "！": "!"}


def text_readings(
    texts: Sequence[str], english: Sequence[bool], unigrams: Unigrams, *, max_tokens: int
) -> dict[str, Floats]:
    """Returns each of `DIMENSIONS` as (n,) raw values; NaN where a text has no reading."""
    found: dict[str, list[Floats]] = {d: [] for d in DIMENSIONS}
    for rows in _blocks([min(len(t), BLOCK_CHARS) for t in texts]):
        block = read_block([excerpt(t, max_tokens) for t in texts[rows]])
        for dimension, values in _read(block, english[rows], unigrams).items():
            found[dimension].append(values)
    return {d: np.concatenate([*v, np.zeros(0)]) for d, v in found.items()}


def _blocks(sizes: Sequence[int]) -> Iterator[slice]:
    start, total = 0, 0
    for row, size in enumerate(sizes):
        total += size
        if total >= BLOCK_CHARS:
            yield slice(start, row + 1)
            start, total = row + 1, 0
    if start < len(sizes):
        yield slice(start, len(sizes))


def _read(block: Block, english: Sequence[bool], unigrams: Unigrams) -> dict[str, Floats]:
    breadth, coherence = _windows(block)
    return {
        "lexical_diversity": np.array([mtld(w) for w in block.by_text(block.lower_words.tolist())]),
        "rare_words": block.mean(unigrams.word_surprisal(block.lower_vocabulary)[block.lower_words]),
        "syntactic_variety": _syntactic_variety(block),
        "reading_difficulty": _reading_difficulty(block, np.array(english, bool), unigrams),
        "compression": np.array([compression(t) for t in block.texts]),
        "knowledge_density": _knowledge_density(block),
        "semantic_breadth": breadth,
        "coherence": coherence,
        "cleanliness": cleanliness(block.texts),
    }


def mtld(words: Sequence[int]) -> float:
    """Returns the measure of textual lexical diversity: mean words a factor, forwards and backwards.

    A factor is a run whose type-token ratio falls below 0.72; the rest counts as the part of a factor
    that it has come (McCarthy & Jarvis 2010). A text without any repeat, whose MTLD is infinite, is
    given half a repeat. NaN without words.
    """
    if not words:
        return math.nan
    floor = 0.5 / len(words) / (1.0 - MTLD_THRESHOLD)
    factors = (_factors(words), _factors(words[::-1]))
    return sum(len(words) / max(f, floor) for f in factors) / 2


def _factors(words: Sequence[int]) -> float:
    factors, count, seen = 0, 0, set[int]()
    add = seen.add
    for word in words:
        count += 1
        add(word)
        if len(seen) < MTLD_THRESHOLD * count:
            factors += 1
            count = 0
            seen.clear()
    rest = (1.0 - len(seen) / count) / (1.0 - MTLD_THRESHOLD) if count else 0.0
    return factors + rest


def _syntactic_variety(block: Block) -> Floats:
    """Returns (n,) the entropy in bits of a text's sentence shapes; NaN without sentences."""
    words = zip(block.sentences, block.sentence_words.tolist(), _first_words(block), strict=True)
    shapes = [shape(sentence, size, first) for sentence, size, first in words]
    ends = np.cumsum(block.text_sentences).tolist()
    starts = [0, *ends[:-1]]
    return np.array([_entropy(shapes[a:b]) for a, b in zip(starts, ends, strict=True)], np.float64)


def _first_words(block: Block) -> list[str]:
    return [block.vocabulary[k] for k in block.words[block.starts].tolist()]


def shape(sentence: str, words: int, first: str) -> tuple[int, str, str]:
    """Returns a sentence's shape: ⌊log2 words⌋, its punctuation, and the class of its first word."""
    pattern = "".join("1" if any(map(sentence.__contains__, kind)) else "0" for kind in _MARKS)
    return words.bit_length() - 1, pattern + _terminal(sentence), _opener(first)


def _terminal(sentence: str) -> str:
    return _TERMINALS.get(sentence.rstrip("\"'”’」』)] \n")[-1:], "")


def _opener(word: str) -> str:
    found = _OPENERS.get(word.lower())
    if found:
        return found
    return "number" if word[0].isdigit() else "name" if word[0].isupper() else "other"


def _entropy(shapes: Sequence[tuple[int, str, str]]) -> float:
    if not shapes:
        return math.nan
    counts = Counter(shapes).values()
    return math.log2(len(shapes)) - math.fsum(n * math.log2(n) for n in counts) / len(shapes)


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
    counts = np.fromiter(map(syllables, block.lower_vocabulary), np.float64, len(block.lower_vocabulary))
    per_word = block.mean(counts[block.lower_words])
    return 206.835 - 1.015 * ratio(block.text_words, block.text_sentences) - 84.6 * per_word


def _char_difficulty(texts: Sequence[str], unigrams: Unigrams) -> Floats:
    """Returns (n,) the mean surprisal in bits of a text's characters under the corpus."""
    sizes = np.array([len(t) for t in texts], np.int64)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    bits = unigrams.char_surprisal[code_points("".join(texts))]
    return ratio(np.bincount(owners, weights=bits, minlength=len(sizes)), sizes)


def compression(text: str) -> float:
    """Returns compressed over plain bytes (zstd, level 3): repetition lowers it. NaN for an empty text."""
    import zstandard

    data = text.encode("utf-8", "surrogatepass")
    return len(zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)) / len(data) if data else math.nan


def _knowledge_density(block: Block) -> Floats:
    """Returns (n,) numbers, names and long terms in a text's prose, per 100 of all its words."""
    size = len(block.vocabulary)
    terms = np.fromiter((w[0].isdigit() or len(w) >= LONG_TERM_CHARS for w in block.vocabulary), bool, size)
    names = np.fromiter((_is_name(w) for w in block.vocabulary), bool, size)[block.words]
    names[block.starts] = False  # a capital says nothing at the start of a sentence
    found = (terms[block.words] | names) & np.repeat(_is_prose(block), block.sentence_words)
    return 100.0 * block.mean(found.astype(np.float64))


def _is_prose(block: Block) -> npt.NDArray[np.bool_]:
    """Returns (s,) which sentences are prose: at least 5 words, a terminal mark, at most half in capitals.

    Menus, tables and headings are full of names and numbers, and say nothing about them.
    """
    size, sentences = len(block.vocabulary), np.arange(len(block.sentences))
    capital = np.fromiter((w[0].isupper() for w in block.vocabulary), bool, size)[block.words]
    owners = np.repeat(sentences, block.sentence_words)
    capitals = np.bincount(owners, weights=capital, minlength=len(sentences))
    ended = np.fromiter((bool(_terminal(s)) for s in block.sentences), bool, len(sentences))
    return (block.sentence_words >= PROSE_WORDS) & (2 * capitals <= block.sentence_words) & ended


def _is_name(word: str) -> bool:
    return word[0].isupper() and len(word) > 1 and not word.startswith(("I'", "I’"))


def _windows(block: Block) -> tuple[Floats, Floats]:
    """Returns (n,) semantic breadth and (n,) coherence of the texts' windows."""
    count = len(block.texts)
    sizes = [window_sizes(s) for s in block.sentences_by_text()]
    owners = np.repeat(np.arange(count), [len(s) for s in sizes])
    flat = np.array(list(chain.from_iterable(sizes)), np.int64)
    buckets, signs = static_windows.hash_words(block.lower_vocabulary)
    windows = np.repeat(np.arange(len(flat)), flat)
    vectors = static_windows.window_vectors(
        windows, buckets[block.lower_words], signs[block.lower_words], count=len(flat)
    )
    return static_windows.breadth(vectors, owners, count), static_windows.coherence(vectors, owners, count)
