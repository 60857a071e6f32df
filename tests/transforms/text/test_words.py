import sys
import unicodedata

import pytest
from hypothesis import given
from support import text_oracle
from support.measuring import values
from support.text_oracle import FIRST_IS_SLOW

from transforms.text import scan, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t\u3000\u200b", []),
        ("Don't stop.", ["Don't", "stop", "."]),
        ("e-mail foo_bar d’accord", ["e-mail", "foo_bar", "d’accord"]),
        ("'quick' -x- __init__", ["'", "quick", "'", "-", "x", "-", "__", "init", "__"]),
        ("$3.14, 1,000 a.b 5.", ["$", "3.14", ",", "1,000", "a", ".", "b", "5", "."]),
        ("wait... no!!!", ["wait", "...", "no", "!!!"]),
        ('").', ['"', ")", "."]),
        ("iPhone手机，好", ["iPhone", "手", "机", "，", "好"]),
        ("ガ行は", ["ガ", "行", "は"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("العَرَبِيَّة", ["العَرَبِيَّة"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("👍👍 1️⃣ ❤️", ["👍", "👍", "1️⃣", "❤️"]),
        ("𝐀𝐁 𠀀𠀁", ["𝐀𝐁", "𠀀", "𠀁"]),
    ],
)
def test_boundaries(text: str, expected: list[str]) -> None:
    assert scan.split(text) == expected


@FIRST_IS_SLOW
@given(text_oracle.TEXTS)
def test_equals_the_character_by_character_tokenizer(text: str) -> None:
    assert scan.split(text) == text_oracle.tokens(text)


def test_every_letter_of_an_unspaced_script_is_a_word() -> None:
    letters = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isalnum() and unicodedata.category(chr(c))[0] != "M"]
    tallies = {chr(c) for c in range(0x1D372, 0x1D377)}  # numerals whose name alone is ideographic
    alone = {c for c in letters if scan.split(c + "x") == [c, "x"]}
    assert alone == {c for c in letters if text_oracle.kind(c) == "unspaced"} - tallies


@FIRST_IS_SLOW
@given(text_oracle.TEXTS)
def test_keeps_every_character_but_spaces(text: str) -> None:
    kept = "".join(c for c in text if not (c.isspace() or c == "\u200b"))
    assert "".join(scan.split(text)) == kept


@pytest.mark.parametrize(("text", "unspaced"), [("one two", False), ("汉字 a", True), ("汉 a", False), ("。。", False)])
def test_a_text_is_unspaced_if_most_of_its_words_are(text: str, unspaced: bool) -> None:
    assert (values(text)["mean_word_length"] is None) is unspaced


def test_char_class_joins_neighbours() -> None:
    assert words.char_class([99, 97, 98, 120]) == r"\U00000061-\U00000063\U00000078-\U00000078"
