from typing import Any

import pytest
from support.measuring import values

from transforms.text.rules import gopher, listed
from transforms.text.rules.config import GopherConfig

DEFAULTS: dict[str, Any] = {
    "variant": "datatrove", "drop": True,
    "min_words": 50, "max_words": 100000, "min_mean_word_length": 3.0, "max_mean_word_length": 10.0,
    "max_hash_ratio": 0.1, "max_ellipsis_ratio": 0.1, "max_bullet_line_ratio": 0.9, "max_ellipsis_line_ratio": 0.3,
    "min_alpha_word_ratio": 0.8, "min_stop_words": 2,
}  # fmt: skip


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
    assert values(text)[name] == (None if value is None else pytest.approx(value))


def test_stop_words_are_for_languages_with_a_list() -> None:
    assert values("der die das", "de")["stop_words"] is None
    assert values("der die das", None)["stop_words"] is None


@pytest.mark.parametrize(
    ("variant", "text", "name", "value"),
    [
        ("dolma", "a bbb, cc!!", "mean_word_length", 2.0),
        ("dolma", "a bbb ccccccc ddddddddd.", "mean_word_length", 5.0),
        ("dolma", "a... b… c.", "ellipsis_ratio", 1 / 6),
        ("dolma", "* a\n- b\n• c", "bullet_line_ratio", 2 / 3),
        ("dolma", "a...\nb…", "ellipsis_line_ratio", 1 / 2),
        ("dclm", "a . . . b", "ellipsis_ratio", 1 / 5),
        ("dclm", "a . . . . . . b", "ellipsis_ratio", 2 / 8),
        ("dclm", "* a\n● b\n• c\nd", "bullet_line_ratio", 3 / 4),
        ("dclm", "a . . .\nb. . .\nc", "ellipsis_line_ratio", 2 / 3),
        ("dclm", "the The of of to", "stop_words", 4),
        ("dclm", "a, (b) 1 - c", "alpha_word_ratio", 3 / 5),
        ("dolma", "a, (b) 1 - c", "alpha_word_ratio", 3 / 5),
        ("gradsift", "a, (b) 1 - c", "alpha_word_ratio", 3 / 4),
        ("datatrove", "a, (b) 1 - c", "alpha_word_ratio", 3 / 8),
        ("gradsift", ", .", "alpha_word_ratio", 0.0),
    ],
)
def test_other_readings_by_hand(variant: str, text: str, name: str, value: float) -> None:
    assert values(text, gopher=variant)[name] == pytest.approx(value)


def test_every_rule_measures_a_value_and_names_a_threshold() -> None:
    config = GopherConfig(**DEFAULTS)
    assert {r.value for r in listed.GOPHER} == set(gopher.VALUES)
    assert {r.threshold for r in listed.GOPHER} == {
        f"gopher.{name}" for name in set(vars(config)) - {"variant", "drop"}
    }
    assert all(r.bound == r.threshold.split(".")[1][:3] and r.sentence for r in listed.GOPHER)


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
        GopherConfig(**{**DEFAULTS, **wrong})
