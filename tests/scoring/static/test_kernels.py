"""The compiled loops against the definitions, one text at a time."""

import math
import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.static import kernels as static_kernels
from scoring.static import shapes as static_shapes
from scoring.static import word_kernels as static_word_kernels
from scoring.static.block import LONG_TERM_CHARS, Block, blocks, lower_words, read_block
from scoring.static.text import syllables
from scoring.static.windows import WIDTH, hash_words
from scoring.static.words import MAX_WINDOW_WORDS, WINDOW_WORDS, excerpt, find_sentences, window_sizes

# Every class of character, and what lies between the classes.
ALPHABET = "abZ9_'’- .!?…\"”)]\n\t,;:([—–“«»。！？｡」』、，你河กの\u0301é\u00a0\u2028।؟\ud800\U0001f600" + "\n\n  aa.."
TEXTS = st.lists(st.text(st.sampled_from(ALPHABET), max_size=160) | st.text(max_size=60), max_size=4)


def words_of(block: Block) -> list[list[str]]:
    ends = np.cumsum(block.text_words).tolist()
    flat = [block.vocabulary[k] for k in block.words.tolist()]
    return [flat[b - n : b] for b, n in zip(ends, block.text_words.tolist(), strict=True)]


@given(TEXTS, st.integers(1, 30))
@settings(max_examples=400, deadline=None)
def test_a_block_is_what_the_expressions_find(texts: list[str], limit: int) -> None:
    block = read_block(texts, limit)
    cuts = [excerpt(t, limit) for t in texts]
    found = [find_sentences(t) for t in cuts]
    assert block.texts == cuts
    assert block.text_sentences.tolist() == [len(s) for s in found]
    assert block.sentence_words.tolist() == [len(w) for s in found for _, w in s]
    assert words_of(block) == [[w for _, ws in s for w in ws] for s in found]
    flat = [w for s in found for _, ws in s for w in ws]
    assert block.vocabulary == list(dict.fromkeys(flat))


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_shapes_and_their_entropy_are_those_of_the_definition(texts: list[str]) -> None:
    block = read_block(texts, 100)
    wanted = [[static_shapes.shape(s, len(w), w[0]) for s, w in find_sentences(excerpt(t, 100))] for t in texts]
    flat = [shape for shapes in wanted for shape in shapes]
    numbers = static_shapes.shapes(block).tolist()
    assert len(set(zip(flat, numbers, strict=True))) == len(set(flat)) == len(set(numbers))
    for shapes, value in zip(wanted, static_shapes.syntactic_variety(block), strict=True):
        if not shapes:
            assert math.isnan(value)
            continue
        counts = Counter(shapes).values()
        assert value == math.log2(len(shapes)) - math.fsum(n * math.log2(n) for n in counts) / len(shapes)


@given(st.lists(st.lists(st.integers(1, 200), max_size=30), max_size=6))
@settings(deadline=None)
def test_windows_are_those_of_the_definition(texts: list[list[int]]) -> None:
    sizes = np.array([w for t in texts for w in t], np.int64)
    counts = np.array([len(t) for t in texts], np.int64)
    found, per_text = static_kernels.windows(sizes, counts, WINDOW_WORDS, MAX_WINDOW_WORDS)
    wanted = [window_sizes(t) for t in texts]
    assert per_text.tolist() == [len(w) for w in wanted]
    assert found.tolist() == [w for windows in wanted for w in windows]


@given(st.lists(st.text(max_size=9), max_size=9), st.integers(1, 12))
def test_blocks_cover_every_text_once(texts: list[str], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scoring.static.block.BLOCK_CHARS", size)
        rows = [k for s in blocks(texts, 4) for k in range(s.start, s.stop)]
    assert rows == list(range(len(texts)))


@pytest.mark.parametrize("blanks", [79, 80, 81])
def test_a_line_break_ends_a_sentence_over_eighty_blanks_at_most(blanks: int) -> None:
    text = "one\n" + " " * blanks + "Two"
    assert len(find_sentences(text)) == read_block([text], 9).text_sentences[0] == (2 if blanks <= 80 else 1)


WORDS = st.lists(
    st.text(st.sampled_from("aeiouyAEIYlLbTΣσςİıßǅ1²9'’\u0301\u0345你\ud800\U0001f600-"), min_size=1, max_size=9),
    max_size=9,
)


@given(WORDS)
@settings(max_examples=300, deadline=None)
def test_lower_case_words_are_those_of_python(words: list[str]) -> None:
    found = lower_words("\n".join(words), len(words))
    assert [found.vocabulary[k] for k in found.numbers.tolist()] == [w.lower() for w in words]
    assert len(set(found.vocabulary)) == len(found.vocabulary)
    counted = static_word_kernels.syllables(found.points, found.starts, found.stops)
    assert counted.tolist() == [syllables(w) for w in found.vocabulary]
    hashes = [zlib.crc32(w.encode("utf-8", "surrogatepass")) for w in found.vocabulary]
    buckets, signs = hash_words(found)
    assert buckets.tolist() == [h % WIDTH for h in hashes]
    assert signs.tolist() == [-1.0 if h & WIDTH else 1.0 for h in hashes]


@given(TEXTS)
@settings(deadline=None)
def test_bits_of_words_are_those_of_python(texts: list[str]) -> None:
    block = read_block(texts, 100)
    for word, bits in zip(block.vocabulary, block.word_bits.tolist(), strict=True):
        assert bool(bits & static_word_kernels.TERM) == (word[0].isdigit() or len(word) >= LONG_TERM_CHARS)
        assert bool(bits & static_word_kernels.CAPITAL) == word[0].isupper()
        name = word[0].isupper() and len(word) > 1 and not word.startswith(("I'", "I’"))
        assert bool(bits & static_word_kernels.NAME) == name
