"""Every text dimension: low against high on texts whose order anyone can see, and total on any Unicode."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.static import block as static_block
from scoring.static.noise import cleanliness, without_boilerplate, without_markup
from scoring.static.shapes import shape
from scoring.static.text import DIMENSIONS, compression, mtld, syllables, text_readings
from scoring.static.unigrams import Unigrams, count_tokens

PROSE = (
    "The river rises in the northern hills near Hexham and runs for 118 kilometres to the sea. "
    "In spring, when the snow melts, its water covers the meadows; farmers move their cattle to higher ground. "
    "Who built the first bridge? Nobody knows. A chronicle of 1311 mentions a toll of two pence, paid by Thomas "
    "Grey for a cart of wool. Later the river carried coal, and the bridge was rebuilt in stone by Archibald "
    "Reed. However, the flood of 1771 destroyed every bridge but one: the people of Corbridge could lean over "
    "the parapet and wash their hands in the passing water. Today the river is clean, and salmon have returned."
)
REPEATED = "The river runs to the sea. " * 20
SIMPLE = "The cat sat on the mat. The dog ran to the cat. The cat was on the bed. The dog was sad. " * 4
HARD = (
    "Constitutional jurisprudence necessitates comprehensive consideration of institutional responsibilities, "
    "notwithstanding contemporaneous administrative interpretations promulgated internationally. "
) * 3
JARGON = "Zyxomma petiolatum oviposits crepuscularly; anisopteran naiads exhibit labial prehension. " * 4
CHINESE = "黄河发源于青海省，流经九个省区，最后注入渤海。两岸的人民世世代代在这里耕种。" * 4
RARE_CHINESE = "龘靐齉齾爩鱻麤龗灪籲。" * 8
TOPICS = (
    "Salmon swim up cold rivers in autumn, and the salmon lay eggs in the gravel of the rivers where salmon hatch. "
    "The salmon that hatch in the rivers swim to the sea, and after years the salmon swim back up the rivers. "
)
MIXED_TOPICS = (
    TOPICS + "Bond yields climbed as investors priced inflation, while central banks signalled further rate increases "
    "and equity markets retreated from record highs set during last quarter amid trade tensions. "
    "Quarks bind through gluon exchange; lattice simulations reproduce hadron masses within several percent "
    "despite chiral extrapolation errors, discretisation artefacts plus finite volume effects. "
)
ALL = [PROSE, REPEATED, SIMPLE, HARD, CHINESE, TOPICS, MIXED_TOPICS]
WORDS, CHARS = count_tokens(ALL, max_tokens=2048)
UNIGRAMS = Unigrams(words=dict(WORDS), word_total=WORDS.total(), chars=dict(CHARS), char_total=CHARS.total())


def read(text: str, dimension: str, *, english: bool = True) -> float:
    return float(text_readings([text], [english], UNIGRAMS, max_tokens=2048)[dimension][0])


@pytest.mark.parametrize(
    ("dimension", "low", "high"),
    [
        ("lexical_diversity", REPEATED, PROSE),
        ("rare_words", SIMPLE, JARGON),
        ("syntactic_variety", SIMPLE, PROSE),
        ("reading_difficulty", SIMPLE, HARD),
        ("compression", REPEATED, PROSE),
        ("knowledge_density", SIMPLE, PROSE),
        ("semantic_breadth", TOPICS * 2, MIXED_TOPICS),
        ("coherence", MIXED_TOPICS, TOPICS * 2),
        ("cleanliness", "<div class='x'>" + PROSE[:60] + "</div> | # | # |", PROSE),
    ],
)
def test_a_dimension_orders_what_anyone_can_order(dimension: str, low: str, high: str) -> None:
    assert read(low, dimension) < read(high, dimension)


def test_difficulty_of_other_languages_is_that_of_their_characters() -> None:
    assert read(CHINESE, "reading_difficulty", english=False) < read(RARE_CHINESE, "reading_difficulty", english=False)


@given(st.lists(st.text(max_size=200), max_size=5), st.data())
@settings(max_examples=150, deadline=None)
def test_any_text_has_bounded_readings(texts: list[str], data: st.DataObject) -> None:
    english = [data.draw(st.booleans()) for _ in texts]
    found = text_readings(texts, english, UNIGRAMS, max_tokens=50)
    assert set(found) == set(DIMENSIONS)
    assert all(len(v) == len(texts) for v in found.values())
    assert not any(np.isinf(v).any() for v in found.values())
    for dimension, (low, high) in {
        "lexical_diversity": (0.0, 50 * 50), "rare_words": (0.0, 20.0), "syntactic_variety": (0.0, 6.0),
        "compression": (0.0, 20.0), "knowledge_density": (0.0, 100.0), "semantic_breadth": (0.0, 2.0),
        "coherence": (-1.0, 1.0 + 1e-12), "cleanliness": (0.0, 1.0),
    }.items():  # fmt: skip
        known = found[dimension][~np.isnan(found[dimension])]
        assert ((known >= low) & (known <= high)).all(), (dimension, known)


@given(st.lists(st.sampled_from([*ALL, "", "one", "!!", JARGON, RARE_CHINESE]), max_size=8))
@settings(max_examples=30, deadline=None)
def test_a_reading_does_not_depend_on_the_texts_beside_it(texts: list[str]) -> None:
    together = text_readings(texts, [True] * len(texts), UNIGRAMS, max_tokens=2048)
    for k, text in enumerate(texts):
        alone = text_readings([text], [True], UNIGRAMS, max_tokens=2048)
        for dimension in DIMENSIONS:
            np.testing.assert_array_equal(together[dimension][k], alone[dimension][0], err_msg=dimension)


def test_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = text_readings(ALL, [True] * len(ALL), UNIGRAMS, max_tokens=2048)
    monkeypatch.setattr(static_block, "BLOCK_CHARS", 1000)
    for dimension, values in text_readings(ALL, [True] * len(ALL), UNIGRAMS, max_tokens=2048).items():
        np.testing.assert_array_equal(values, whole[dimension], err_msg=dimension)


def test_text_beyond_the_limit_does_not_count() -> None:
    cut = text_readings([PROSE + HARD], [True], UNIGRAMS, max_tokens=20)
    short = text_readings([PROSE], [True], UNIGRAMS, max_tokens=20)
    for dimension in DIMENSIONS:
        np.testing.assert_array_equal(cut[dimension], short[dimension], err_msg=dimension)


def test_what_is_null() -> None:
    nothing = text_readings(["", "?!"], [True, False], UNIGRAMS, max_tokens=9)
    assert all(np.isnan(nothing[d][0]) for d in DIMENSIONS)
    assert [d for d in DIMENSIONS if not np.isnan(nothing[d][1])] == [
        "reading_difficulty",
        "compression",
        "cleanliness",
    ]
    one_window = text_readings(["A short text."], [True], UNIGRAMS, max_tokens=9)
    assert [d for d in DIMENSIONS if np.isnan(one_window[d][0])] == ["semantic_breadth", "coherence"]
    assert text_readings([], [], UNIGRAMS, max_tokens=9)["coherence"].tolist() == []


def slow_mtld(words: list[int], threshold: float = 0.72) -> float:
    """Recomputes the type-token ratio from scratch at every word."""
    results = []
    for order in (words, words[::-1]):
        factors, start = 0.0, 0
        for end in range(1, len(order) + 1):
            if len(set(order[start:end])) / (end - start) < threshold:
                factors, start = factors + 1, end
        if start < len(order):
            factors += (1 - len(set(order[start:])) / (len(order) - start)) / (1 - threshold)
        results.append(len(order) / max(factors, 0.5 / len(order) / (1 - threshold)))
    return sum(results) / 2


@given(st.lists(st.integers(0, 12), min_size=1, max_size=80))
def test_mtld_agrees_with_a_slow_reading(words: list[int]) -> None:
    assert mtld(words) == pytest.approx(slow_mtld(words), rel=1e-12)


def test_mtld_of_known_runs() -> None:
    assert mtld([7] * 10) == 2.0  # every second word ends a factor
    assert math.isnan(mtld([]))
    assert mtld(list(range(30))) > mtld([*range(29), 0]) > mtld(list(range(15)) * 2)


@pytest.mark.parametrize(
    ("word", "count"),
    [("cat", 1), ("river", 2), ("make", 1), ("table", 2), ("the", 1), ("free", 1), ("beautiful", 3), ("rhythm", 1),
     ("123", 1), ("été", 1)],
)  # fmt: skip
def test_syllables(word: str, count: int) -> None:
    assert syllables(word) == count


def test_flesch_by_hand() -> None:
    # 6 words, 1 sentence, 6 syllables: 206.835 − 1.015·6 − 84.6·1 = 116.145
    assert read("The cat sat on the mat.", "reading_difficulty") == pytest.approx(100 - 116.145)


@pytest.mark.parametrize(
    ("sentence", "words", "first", "expected"),
    [
        ("The cat sat, (mat).", 4, "The", (2, "1010.", "determiner")),
        ('He said: "Why?"', 3, "He", (1, "0101?", "pronoun")),
        ("However it ended!", 3, "However", (1, "0000!", "adverb")),
        ("1999", 1, "1999", (0, "0000", "number")),
        ("Thomas Grey", 2, "Thomas", (1, "0000", "name")),
        ("河流很长。", 4, "河", (2, "0000.", "other")),
    ],
)
def test_shapes(sentence: str, words: int, first: str, expected: tuple[int, str, str]) -> None:
    assert shape(sentence, words, first) == expected


def test_syntactic_variety_is_an_entropy() -> None:
    assert read("The cat sat. The dog ran. The cow ate. ", "syntactic_variety") == 0.0
    four = "The cat sat. Why did it go away from us, then? Run! However, 12 men (all tall) came home to eat."
    assert read(four, "syntactic_variety") == 2.0


@pytest.mark.parametrize(
    ("text", "density"),
    [
        ("In 1311 the toll was paid by Thomas Grey.", 100 * 3 / 9),
        ("Menu Home About Contact Thomas Grey 1311", 0.0),  # no terminal mark
        ("Thomas Grey Paid Two Pence.", 0.0),  # a title in capitals
        ("It was constitutional to pay it.", 100 / 6),
        ("The man said I'm here and I am.", 0.0),
    ],
)
def test_knowledge_density_counts_terms_of_prose(text: str, density: float) -> None:
    assert read(text, "knowledge_density") == pytest.approx(density)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Plain prose, with (all) its marks: yes? Yes!", 1.0),
        ("每个字都干净，没有符号。", 1.0),
        ("ab##", 0.5),
        ("<b>ab</b>", 2 / 9),
        ("a & b, AT&T", 1.0),
        ("Accept all cookies", 0.0),
        ("good\nClick here", 4 / 15),
        ("see https://a.b/c", 4 / 17),
        ("\ufffd\ufffd", 0.0),
    ],
)
def test_cleanliness_by_hand(text: str, value: float) -> None:
    assert cleanliness([text])[0] == pytest.approx(value)


def test_a_long_line_about_cookies_is_prose() -> None:
    line = "A cookie is a small file " + "that a site stores in the reader's browser " * 4
    assert without_boilerplate(line) == line


def test_markup_goes_and_comparisons_stay() -> None:
    assert without_markup("a < b and c > d &amp; <p id=1>x</p> {{cite}} [[y]]") == "a < b and c > d  x  y"


@pytest.mark.parametrize("junk", ["<" * 50_000, "<a" * 25_000, "{{" * 25_000, "&" * 50_000, "www." * 12_000])
def test_no_markup_takes_quadratic_time(junk: str) -> None:
    started = time.process_time()
    cleanliness([junk])
    assert time.process_time() - started < 2.0


def test_repetition_lowers_the_compression_ratio() -> None:
    assert compression(["ab" * 500])[0] < 0.05 < compression([PROSE])[0] < 1
    assert math.isnan(compression([""])[0])
