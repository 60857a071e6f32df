import time

import pytest
from support import text_oracle
from support.measuring import values

from transforms.text.keys import keys
from transforms.text.normal import normalize
from transforms.text.rules import listed, repetition
from transforms.text.rules.config import RepetitionConfig

CYCLE = "v w x y z v w x y z v w x y z"


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        # the numerator is the occurrences after the first; blank lines are no lines
        ("x\n\ny\nx\nx", "dup_line_ratio", 2 / 4),
        ("x\n\ny\nx\nx", "dup_line_char_ratio", 2 / 8),
        ("\n x\ny\nx \n", "dup_line_ratio", 1 / 3),
        ("p\n\nq\n\n\np", "dup_paragraph_ratio", 1 / 3),
        ("p\n\nq\n\n\np", "dup_paragraph_char_ratio", 1 / 8),
        ("p\n \np", "dup_paragraph_ratio", 0),
        # joined length with spaces × count, over all characters; overlapping occurrences count
        ("a b a b a b", "top_2_gram_char_ratio", 3 * 3 / 11),
        ("a a a a", "top_2_gram_char_ratio", 3 * 3 / 7),
        # the first of those that tie, also when none repeats
        ("aa b c d aa b c d", "top_2_gram_char_ratio", 2 * 4 / 17),
        ("c d aa b c d aa b", "top_2_gram_char_ratio", 2 * 3 / 17),
        ("aa bb c", "top_2_gram_char_ratio", 5 / 7),
        ("aa bb c", "top_4_gram_char_ratio", 0),
        # a repeat adds its length without spaces and is jumped over; the first copy does not count
        (CYCLE, "dup_5_gram_char_ratio", 10 / 29),
        (CYCLE, "dup_6_gram_char_ratio", 6 / 29),
        (CYCLE, "dup_10_gram_char_ratio", 10 / 29),
        (" ".join("a" * 12), "dup_5_gram_char_ratio", 10 / 23),
        ("ab c d e f ab c d e f", "dup_5_gram_char_ratio", 6 / 21),
        # words that are cut otherwise are other words
        ("no where to go now nowhere to go no w", "dup_5_gram_char_ratio", 0),
    ],
)
def test_by_hand(text: str, name: str, value: float) -> None:
    assert values(text)[name] == pytest.approx(value)


def test_a_repeat_inside_what_was_jumped_over_is_not_seen() -> None:
    # 5-grams at 0–4 are new; 5 repeats 0 and is jumped over, so `z q r s t` at 9 … is met first at 10
    text = "v w x y z v w x y z q r s t u z q r s t"
    assert values(text)["dup_5_gram_char_ratio"] == pytest.approx(text_oracle.greedy(text.split(), 5) / len(text))


@pytest.mark.parametrize(
    ("variant", "text", "name", "value"),
    [
        # all copies count, over lines and their characters; pieces are stripped
        ("dclm", "x\n\ny\n x \nx", "dup_line_ratio", 3 / 4),
        ("dclm", "xx\n\ny\n xx \nxx", "dup_line_char_ratio", 6 / 7),
        ("dclm", "p\n\nq\n\n\n p", "dup_paragraph_ratio", 2 / 3),
        # the longest of those that tie, without spaces, over the characters of W′; 0 if none repeats
        ("dclm", "c d, aa b c d aa b", "top_2_gram_char_ratio", 2 * 3 / 10),
        ("dclm", "aa bb c", "top_2_gram_char_ratio", 0),
        # words in any copy count once
        ("dclm", CYCLE, "dup_5_gram_char_ratio", 1),
        ("dclm", "ab c d e f g ab c d e f", "dup_5_gram_char_ratio", 12 / 13),
        ("rpv2", "c d aa b, C D AA B.", "top_2_gram_char_ratio", 2 * 2 / 10),
        ("rpv2", CYCLE.upper()[:9] + " " + CYCLE[:9], "dup_5_gram_char_ratio", 1),
        ("rpv2", "x\nx", "dup_line_ratio", None),
    ],
)
def test_other_readings_by_hand(variant: str, text: str, name: str, value: float | None) -> None:
    assert values(text, repetition=variant)[name] == (None if value is None else pytest.approx(value))


def test_every_rule_measures_a_value_and_names_a_threshold() -> None:
    assert {r.value for r in listed.REPETITION} == set(repetition.VALUES)
    fields = set(RepetitionConfig.__dataclass_fields__) - {"variant", "drop"}
    assert {r.threshold for r in listed.REPETITION} == {f"repetition.{name}" for name in fields}


def test_negative_thresholds_are_refused() -> None:
    fields = {**dict.fromkeys(RepetitionConfig.__dataclass_fields__, 0.1), "variant": "dclm", "drop": True}
    RepetitionConfig(**fields)
    with pytest.raises(ValueError, match="max_top_2_gram_char_ratio must be at least 0, not -1"):
        RepetitionConfig(**{**fields, "max_top_2_gram_char_ratio": -1})


HOSTILE = {
    "one word a million times": "word " * 1_000_000,
    "ten megabytes without a space": "a" * 10_000_000,
    "two megabytes on one line": "lorem ipsum dolor sit amet " * 77_000,
    "unordered marks": "a" + "\u0300\u0316" * 500_000,
    "marks between soft hyphens": ("\u0316\u0300" * 15 + "\u00ad") * 10_000,
    "blank lines": " \n" * 500_000 + "x",
    "spaces": " " * 5_000_000 + "x",
    "hyphens": "a-" * 1_000_000,
    "digits": "1," * 1_000_000,
    "signs": "+#" * 300_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_linear_time(name: str) -> None:
    started = time.process_time()
    text = normalize.normalize(HOSTILE[name], "NFC")
    keys.key_text(text)
    values(text)
    assert time.process_time() - started < 12
