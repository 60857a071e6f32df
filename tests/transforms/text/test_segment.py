import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from support.measuring import values
from support.text_oracle import FIRST_IS_SLOW, TEXTS

from scoring.core.errors import ToolError
from transforms.text import scan
from transforms.text.segment import cuts


def words(text: str) -> list[str]:
    return scan.split(text, cuts(pa.array([text], pa.large_string()), "dictionary"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "今天的天气非常晴朗，iPhone手机好。",
            ["今天", "的", "天气", "非常", "晴朗", "，", "iPhone", "手机", "好", "。"],
        ),
        ("สวัสดีครับ", ["สวัสดี", "ครับ"]),
        ("カタカナの文章です", ["カタカナ", "の", "文章", "です"]),
        ("Don't stop 3.14!", ["Don't", "stop", "3.14", "!"]),
        ("", []),
    ],
)
def test_words_are_those_of_the_dictionary(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@FIRST_IS_SLOW
@given(TEXTS)
def test_only_unspaced_letters_are_joined(text: str) -> None:
    kept = "".join(c for c in text if not (c.isspace() or c == "\u200b"))
    assert "".join(words(text)) == kept
    assert len(words(text)) <= len(scan.split(text))


def test_each_row_has_its_own_words_wherever_it_stands() -> None:
    texts = pa.array(["one", None, "今天的天气", "", "天气"], pa.large_string())
    assert cuts(texts, "dictionary").tolist() == [3, 9, 12, 18]
    assert cuts(texts[2:], "dictionary").tolist() == [3, 9, 12, 18]
    assert len(cuts(texts, "characters")) == 0


def test_rules_count_the_words_of_the_dictionary() -> None:
    text = "今天的天气非常晴朗，今天的天气非常好。"
    found = values(text, words="dictionary")
    assert (found["words"], found["nonsymbol_words"], found["mean_word_length"]) == (12, 10, None)
    assert values(text)["nonsymbol_words"] == 17


def test_without_icu_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    with pytest.raises(ToolError, match="pip install icu4py"):
        cuts(pa.array(["汉"], pa.large_string()), "dictionary")
    assert np.array_equal(cuts(pa.array(["汉"], pa.large_string()), "characters"), [])
