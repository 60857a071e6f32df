"""Words, sentences, excerpts and windows."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.static import words as static_words
from scoring.static.words import excerpt, find_sentences, find_words, window_sizes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop - go.", ["Don't", "stop", "go"]),
        ("a state-of-the-art snake_case name", ["a", "state-of-the-art", "snake", "case", "name"]),
        ("naïve café’s 3.14", ["naïve", "café’s", "3", "14"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("السَّلامُ عليكم", ["السَّلامُ", "عليكم"]),
        ("你好world 2024年", ["你", "好", "world", "2024", "年"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("ひらカタ", ["ひ", "ら", "カ", "タ"]),
        ("", []),
        ("*** --- !!!", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert find_words(text) == words


@given(st.text(alphabet=st.sampled_from("ab'’- _.é你ก9\u0301\n")))
def test_the_fast_patterns_agree_with_the_full_one(text: str) -> None:
    plain = text.replace("_", " ")
    assert find_words(text) == static_words._MIXED_WORD.findall(plain)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ('He said "Go." Then he left. No?', ['He said "Go."', "Then he left.", "No?"]),
        ("你好。再见！他说「走。」然后", ["你好。", "再见！", "他说「走。」", "然后"]),
        ("Title line\nThe text goes\non here. End", ["Title line", "The text goes\non here.", "End"]),
        ("one\n\ntwo", ["one", "two"]),
        ("3.5 is a number", ["3.5 is a number"]),
        ("*** . ! a", ["a"]),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [s.strip(" \n*.!") or s for s, _ in find_sentences(text)] == [s.strip(" \n*.!") for s in sentences]


@given(st.text(max_size=300), st.integers(1, 40))
def test_sentences_hold_all_words_of_an_excerpt_and_no_more(text: str, limit: int) -> None:
    cut = excerpt(text, limit)
    words = find_words(cut)
    assert text.startswith(cut)
    assert words == find_words(text)[: len(words)]
    assert len(words) <= limit
    assert [w for _, found in find_sentences(cut) for w in found] == words


def test_an_excerpt_ends_where_the_first_word_too_many_begins() -> None:
    assert excerpt("one two, three four", 3) == "one two, three "
    assert excerpt("你好世界", 2) == "你好"
    assert excerpt("one two", 3) == "one two"
    assert len(excerpt("x" * 10_000, 10)) == 320


@given(st.lists(st.integers(1, 200), max_size=30))
def test_windows_cover_the_words_in_bounded_pieces(sizes: list[int]) -> None:
    windows = window_sizes(sizes)
    assert sum(windows) == sum(sizes)
    assert all(16 <= w < 80 for w in windows) or len(windows) == 1
    assert window_sizes([]) == []


def test_windows_follow_sentences() -> None:
    assert window_sizes([20, 20, 33, 5]) == [40, 38]
    assert window_sizes([20, 20, 20]) == [40, 20]
    assert window_sizes([150]) == [64, 64, 22]


@pytest.mark.parametrize("junk", ["." * 60_000 + "x", "\n" * 60_000 + "x", "\n" + " " * 60_000 + "x", "'-" * 30_000])
def test_no_text_takes_quadratic_time(junk: str) -> None:
    started = time.process_time()
    find_sentences(junk)
    assert time.process_time() - started < 2.0
