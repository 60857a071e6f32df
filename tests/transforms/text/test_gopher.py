from typing import Any

import pytest
import text_oracle
from hypothesis import given
from hypothesis import strategies as st
from text_oracle import FIRST_IS_SLOW

from transforms.text import gopher, words
from transforms.text.normalize import normalize

DEFAULTS: dict[str, Any] = {
    "min_words": 50, "max_words": 100000, "min_mean_word_length": 3.0, "max_mean_word_length": 10.0,
    "max_hash_ratio": 0.1, "max_ellipsis_ratio": 0.1, "max_bullet_line_ratio": 0.9, "max_ellipsis_line_ratio": 0.3,
    "min_alpha_word_ratio": 0.8, "min_stop_words": 2,
}  # fmt: skip


def measure(text: str, language: str | None = "en") -> dict[str, float | None]:
    return gopher.measure(text, words.intern(words.split(text)), language)


@FIRST_IS_SLOW
@given(st.one_of(text_oracle.TEXTS, text_oracle.PAGES), st.sampled_from(["en", "zh", None]))
def test_equals_the_naive_reading(raw: str, language: str | None) -> None:
    text = normalize(raw, "NFC")
    if not text_oracle.tokens(text):
        return
    stop_words = {"the", "be", "to", "of", "and", "that", "have", "with"} if language == "en" else None
    assert measure(text, language) == pytest.approx(text_oracle.gopher(text, stop_words))


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("one, two.", "nonsymbol_words", 2),
        ("a bbb, cc!!", "mean_word_length", 2.0),
        ("!!! ---", "mean_word_length", 0.0),
        ("汉字很好", "mean_word_length", None),
        ("#a #b c d", "hash_ratio", 2 / 6),
        ("a... b… c.", "ellipsis_ratio", 2 / 6),
        ("a......", "ellipsis_ratio", 2 / 2),
        ("- a\n  • b\nc\n\n", "bullet_line_ratio", 2 / 4),
        ("a...  \nb…\nc", "ellipsis_line_ratio", 2 / 3),
        ("a 1 , b2 .", "alpha_word_ratio", 2 / 5),
        ("the The of of to", "stop_words", 3),
    ],
)
def test_by_hand(text: str, name: str, value: float | None) -> None:
    assert measure(text)[name] == (None if value is None else pytest.approx(value))


def test_stop_words_are_for_languages_with_a_list() -> None:
    assert measure("der die das", "de")["stop_words"] is None
    assert measure("der die das", None)["stop_words"] is None


def test_every_rule_measures_a_value_and_names_a_threshold() -> None:
    config = gopher.GopherConfig(**DEFAULTS)
    values = measure("some words")
    assert {r.value for r in gopher.RULES} == set(values)
    assert {r.threshold for r in gopher.RULES} == {f"gopher.{name}" for name in vars(config)}
    assert all(r.bound == r.threshold.split(".")[1][:3] and r.sentence for r in gopher.RULES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_words": -1},
        {"min_words": 9, "max_words": 8},
        {"min_mean_word_length": 11.0},
        {"max_hash_ratio": -0.1},
        {"max_hash_ratio": float("nan")},
    ],
)
def test_thresholds_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        gopher.GopherConfig(**{**DEFAULTS, **wrong})
