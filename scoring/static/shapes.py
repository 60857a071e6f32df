"""The shapes of sentences: their length, punctuation and opening word; and the entropy of a text's shapes."""

import math

import numpy as np
import numpy.typing as npt

from scoring.static import kernels as static_kernels
from scoring.static.block import Block
from scoring.static.chars import MARKS, TERMINALS, TRAILING

OPENERS = {
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
_KINDS = {kind: k for k, kind in enumerate([*dict.fromkeys(OPENERS.values()), "number", "name", "other"])}
_ENDS = {"": 0, ".": 1, "?": 2, "!": 3}

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def shape(sentence: str, words: int, first: str) -> tuple[int, str, str]:
    """Returns a sentence's shape: ⌊log2 words⌋, its punctuation, and the class of its first word.

    The definition; `shapes` finds it for a block.
    """
    pattern = "".join("1" if any(map(sentence.__contains__, kind)) else "0" for kind in MARKS)
    return words.bit_length() - 1, pattern + TERMINALS.get(sentence.rstrip(TRAILING)[-1:], ""), opener(first)


def opener(word: str) -> str:
    """Returns the class of a sentence's first word."""
    found = OPENERS.get(word.lower())
    if found:
        return found
    return "number" if word[0].isdigit() else "name" if word[0].isupper() else "other"


def ended(block: Block) -> Ints:
    """Returns (s,) the terminal mark of each sentence as a number, 0 for none."""
    known = {ord(c): _ENDS[mark] for c, mark in TERMINALS.items()}
    lasts, places = np.unique(block.sentence_lasts, return_inverse=True)
    return np.array([known.get(int(c), 0) for c in lasts], np.int64)[places] if len(lasts) else np.zeros(0, np.int64)


def shapes(block: Block) -> Ints:
    """Returns (s,) a number for each sentence's shape: the same for the same shape."""
    firsts, places = np.unique(block.words[block.starts], return_inverse=True)
    kinds = np.array([_KINDS[opener(block.vocabulary[k])] for k in firsts.tolist()], np.int64)
    lengths = np.frexp(block.sentence_words.astype(np.float64))[1].astype(np.int64)  # ⌊log2 words⌋ + 1
    marks = block.sentence_marks >> static_kernels.MARKS & 15
    opened = kinds[places] if len(kinds) else np.zeros(0, np.int64)
    return ((lengths * 16 + marks) * len(_ENDS) + ended(block)) * len(_KINDS) + opened


def syntactic_variety(block: Block) -> Floats:
    """Returns (n,) the entropy in bits of a text's sentence shapes; NaN without sentences."""
    found = shapes(block)
    owners = np.repeat(np.arange(len(block.texts)), block.text_sentences)
    order = np.lexsort((found, owners))
    found, owners = found[order], owners[order]
    new = np.flatnonzero(np.diff(found, prepend=-1) | np.diff(owners, prepend=-1))  # a run is one shape of one text
    counts = np.diff(new, append=len(found))
    per_text = np.bincount(owners[new], minlength=len(block.texts))
    ends = np.cumsum(per_text).tolist()
    runs = counts.tolist()
    return np.array([_entropy(runs[b - size : b]) for b, size in zip(ends, per_text.tolist(), strict=True)], np.float64)


def _entropy(counts: list[int]) -> float:
    total = sum(counts)
    if not total:
        return math.nan
    return math.log2(total) - math.fsum(n * math.log2(n) for n in counts) / total
