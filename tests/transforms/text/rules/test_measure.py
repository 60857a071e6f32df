from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import rules_oracle as oracle
from support.measuring import config, row, run
from support.text_oracle import FIRST_IS_SLOW, PAGES, TEXTS

from transforms.text.normal.normalize import normalize
from transforms.text.rules import measure as module
from transforms.text.rules.measure import measure
from transforms.text.tables import terminals

_LINES = st.lists(
    st.sampled_from(
        [
            "A line that ends well enough.", "The javascript of this line is bad.", "We use cookies and terms of use.",
            "lorem Ipsum dolor sit amet, to be sure.", "See [1] and [23] or [citation needed] here, please.", "[2]",
            "Is it? No! It is: 3.14... Then. Or?", "a { b } c d e.", "Short.", "Read our PRIVACY policy, it is fine.",
            "no end", "It goes on and on and on...", '"Quite so," he said to them."', "'So it was that they had'", "",
            "  ", "- a list of the things", "• more of the things", "* starred thing it is.",
            "● round thing it is. . .",
            "x" * 1001 + " and it ends here now.", "汉字，句子。", "[edit] The heading of the text.",
            "the the of. . .…",
        ]
    ),
    max_size=12,
).map("\n".join)  # fmt: skip
ANY = st.one_of(TEXTS, PAGES, _LINES, st.tuples(_LINES, PAGES).map("\n\n".join)).map(lambda t: normalize(t, "NFC"))


def differing(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    return {name: (ours[name], value) for name, value in theirs.items() if not oracle.same(ours[name], value)}


@FIRST_IS_SLOW
@given(ANY, st.sampled_from(["gradsift", "datatrove", "dolma", "dclm"]), st.sampled_from(["en", "zh", None]))
@example("... . . . . . .\n. . .", "dclm", "en")
@example("…...#\u0301#…… .", "dclm", "en")
@example("1 \u200b a\u00a0,\u3000b2 !", "dolma", "en")
@example("--- , !", "gradsift", "en")
def test_gopher_quality_is_what_the_oracle_says(text: str, variant: str, language: str | None) -> None:
    if oracle.tokens(text):
        ours = row(run([text], language=language, settings=config(gopher=variant)))
        assert not differing(ours, oracle.gopher(text, variant, language))


@FIRST_IS_SLOW
@given(ANY, st.sampled_from(["datatrove", "dclm", "rpv2"]))
@example("a b\n\n\nc\n\na b\n \n\na b", "dclm")
@example("The the İ the the i̇", "rpv2")
def test_gopher_repetition_is_what_the_oracle_says(text: str, variant: str) -> None:
    if oracle.tokens(text):
        assert not differing(row(run([text], settings=config(repetition=variant))), oracle.repetition(text, variant))


@FIRST_IS_SLOW
@given(ANY, st.sampled_from(["tfds", "datatrove"]), st.integers(0, 5))
@example("[1] So it is. [2]\n[edit].", "tfds", 1)
@example("a. [3]b. c", "datatrove", 0)
def test_c4_is_what_the_oracle_says(text: str, variant: str, least: int) -> None:
    if oracle.tokens(text):
        found = run([text], settings=config(c4=variant, least=least))
        values, left = oracle.c4(text, variant, least, terminals())
        assert not differing(row(found), values)
        edited = found.c4_text[0].as_py()
        assert edited == (None if left is None or len(left.encode()) == len(text.encode()) else left)


@FIRST_IS_SLOW
@given(ANY)
def test_fineweb_is_what_the_oracle_says(text: str) -> None:
    if oracle.tokens(text):
        assert not differing(row(run([text])), oracle.fineweb(text, 30, terminals()))


@FIRST_IS_SLOW
@given(st.lists(st.none() | ANY, max_size=5))
def test_a_row_is_measured_alike_in_any_company(texts: list[str | None]) -> None:
    found = run(texts)
    alone = [row(run([text])) for text in texts]
    assert [row(found, k) for k in range(len(texts))] == alone
    sliced = pa.concat_arrays([pa.array(["first one", None], pa.large_string()), pa.array(texts, pa.large_string())])[
        2:
    ]
    again = measure(sliced, ["en"] * len(texts), np.ones(len(texts), bool), config())
    assert [row(again, k) for k in range(len(texts))] == alone


def test_counts_are_made_of_all_texts_and_values_of_judged_ones_with_words() -> None:
    texts = pa.array(["two words", "two words", "", " \n ", None], pa.large_string())
    found = measure(texts, ["en"] * 5, np.array([True, False, True, True, True]), config())
    assert found.values["chars"].to_pylist() == [9, 9, 0, 3, None]
    assert found.values["words"].to_pylist() == [2, 2, 0, 0, None]
    assert found.values["lines"].to_pylist() == [1, 1, 0, 2, None]
    for name in set(module.VALUES) - {"chars", "words", "lines"}:
        assert [v is None for v in found.values[name].to_pylist()] == [False, True, True, True, True], name
    assert found.c4_text.to_pylist() == ["", None, None, None, None]


def test_a_sheet_that_is_too_small_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a b c d e f g h i j " * 9, "x\n" * 50, "one", "! ? . , " * 40]
    whole = [row(run(texts), k) for k in range(4)]
    monkeypatch.setattr(module, "_SIZE", 16)
    assert [row(run(texts), k) for k in range(4)] == whole


@pytest.mark.parametrize(
    "text",
    ["x" * 10_000_000, "word " * 1_000_000, "\n" * 1_000_000 + "a", "!?" * 500_000, ("क" + "\u0301" * 20) * 20_000],
    ids=["one long word", "one word a million times", "newlines", "signs", "marks"],
)
def test_odd_giants_have_values(text: str) -> None:
    found = row(run([text]))
    assert found["chars"] == len(text)
    assert found["nonsymbol_words"] is not None


def test_no_row_is_no_value() -> None:
    found = run([])
    assert {len(values) for values in found.values.values()} == {0}
    assert len(found.c4_text) == 0
