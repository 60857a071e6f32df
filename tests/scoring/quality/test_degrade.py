"""Degradations: pure, seeded, really worse, and at home in scripts without spaces."""

from collections import Counter

import numpy as np
import pytest

from scoring.quality import degrade

ENGLISH = "The river runs through the valley. Farmers grow rice there. In winter the hills are white with snow. " * 4
CHINESE = "河流穿过山谷。农民在那里种植水稻。冬天的山上覆盖着白雪，孩子们在雪地里玩耍。" * 4
KINDS = dict(degrade.KINDS)


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["english", "chinese"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_seeded_changes_the_text_and_about_keeps_its_length(kind: str, text: str) -> None:
    found = KINDS[kind](text, rng())
    assert found == KINDS[kind](text, rng())
    assert found != text
    assert 0.5 * len(text) <= len(found) <= 2 * len(text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", " ", "a", "。", "\n\n", "one two", "😀"])
def test_tiny_texts_break_nothing(kind: str, text: str) -> None:
    assert isinstance(KINDS[kind](text, rng()), str)


def test_shuffling_keeps_words_and_where_there_are_no_spaces_characters() -> None:
    assert Counter(degrade.shuffled(ENGLISH, rng()).split()) == Counter(ENGLISH.split())
    assert Counter(degrade.shuffled(CHINESE, rng())) == Counter(CHINESE)


def test_keyboard_noise_strikes_a_fifth_of_the_letters_and_nothing_else() -> None:
    found = degrade.keyboard_noise(ENGLISH, rng())
    changed = [(a, b) for a, b in zip(ENGLISH, found, strict=True) if a != b]
    assert all(a.isalnum() for a, _ in changed)
    assert 0.1 < len(changed) / sum(c.isalnum() for c in ENGLISH) < 0.3


def test_repetition_repeats_one_sentence_of_the_text() -> None:
    found = degrade.repeated(ENGLISH, rng())
    sentence = found.split(". ")[0]
    assert sentence in ENGLISH
    assert found.count(sentence) >= 3


@pytest.mark.parametrize(("text", "unspaced"), [(ENGLISH, False), (CHINESE, True), ("", False), ("word", False)])
def test_unspaced(text: str, unspaced: bool) -> None:
    assert degrade.is_unspaced(text) is unspaced


def test_kinds_come_in_turn_and_a_text_depends_on_its_own_seed_alone() -> None:
    texts = [ENGLISH] * 7
    found = degrade.degrade_in_turn(texts, range(7))
    assert [kind for kind, _ in found] == [*KINDS, *list(KINDS)[:2]]
    assert degrade.degrade_in_turn(texts[:3], range(3)) == found[:3]
