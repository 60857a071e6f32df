"""Corpus frequencies and surprisal."""

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scoring.static.unigrams import MAX_WORD_CHARS, Unigrams, count_tokens
from scoring.static.words import find_words


@given(st.lists(st.text(max_size=40), max_size=8))
def test_counts_are_those_of_a_plain_loop(texts: list[str]) -> None:
    words, chars = count_tokens(texts, max_tokens=100)
    assert words == Counter(w.lower() for t in texts for w in find_words(t))
    assert chars == Counter("".join(texts))


def test_overlong_words_count_under_the_empty_word() -> None:
    assert count_tokens(["A a " + "x" * (MAX_WORD_CHARS + 1)], max_tokens=10)[0] == {"a": 2, "": 1}


def test_only_the_excerpt_counts() -> None:
    words, chars = count_tokens(["a b c d"], max_tokens=2)
    assert words == {"a": 1, "b": 1}
    assert chars == {"a": 1, "b": 1, " ": 2}


def test_surprisal_of_seen_and_unseen_tokens() -> None:
    unigrams = Unigrams(words={"the": 7, "cat": 1}, word_total=12, chars={"a": 3}, char_total=3)
    seen, rare, unseen = unigrams.word_surprisal(["the", "cat", "zyx"])
    assert (seen, rare, unseen) == (math.log2(15 / 8), math.log2(15 / 2), math.log2(15))
    assert unigrams.char_surprisal[ord("a")] == math.log2(5 / 4)
    assert unigrams.char_surprisal[0x10FFFF] == math.log2(5)


def test_an_empty_corpus_surprises_nobody() -> None:
    empty = Unigrams(words={}, word_total=0, chars={}, char_total=0)
    assert np.all(empty.word_surprisal(["a"]) == 0)
    assert empty.char_surprisal.max() == 0
