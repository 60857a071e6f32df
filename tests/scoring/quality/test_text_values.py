"""Cheap values of texts, by hand."""

import numpy as np
import pytest

from scoring.quality import text_values


def told(text: str, *, english: bool = True) -> dict[str, float]:
    return dict(zip(text_values.NAMES, text_values.text_values([text], [english])[0].tolist(), strict=True))


def test_a_sentence_by_hand() -> None:
    found = told("You see the River of ice! It is 30 km: the longest thing.")
    assert found == {
        "digit_ratio": 2 / 57, "colon_ratio": 1 / 13, "exclamation_ratio": 1 / 13, "distinct_word_ratio": 12 / 13,
        "sentence_words": 6.5, "sentence_words_sd": 0.5, "capital_ratio": 3 / 57, "capitalised_word_ratio": 3 / 13,
        "function_word_ratio": 3 / 13, "person_word_ratio": 1 / 13, "long_word_ratio": 0.0,
    }  # fmt: skip


def test_what_means_nothing_is_missing() -> None:
    assert all(np.isnan(told(" -- ")[n]) for n in text_values.NAMES)
    assert all(np.isnan(told("Das Haus.", english=False)[n]) for n in text_values.ENGLISH)
    assert text_values.text_values([], []).shape == (0, len(text_values.NAMES))


@pytest.mark.parametrize("text", ["a" * 5_000_000, "x", "\x00\ufffd", "字" * 100_000, "1 " * 50_000])
def test_odd_texts_have_bounded_values(text: str) -> None:
    found = told(text)
    assert all(np.isnan(v) or 0 <= v <= text_values.MAX_CHARS for v in found.values())


def test_twice_the_text_has_the_same_ratios() -> None:
    text = "The rain falls on the hills, and the hills send it to the sea. " * 10
    once, twice = told(text), told(text * 2)
    for name in ("digit_ratio", "function_word_ratio", "capital_ratio", "sentence_words", "distinct_word_ratio"):
        assert twice[name] == pytest.approx(once[name], rel=0.02)
