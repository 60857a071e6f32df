"""The compiled search finds a phrase where `in` does, and nowhere else."""

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from scoring.static.phrases import KELVIN, PHRASES, hold_phrases

PIECES = st.sampled_from(
    [*PHRASES, *(p.upper() for p in PHRASES), *(p[:-1] for p in PHRASES), *(p[1:] for p in PHRASES), " ", "\n", "co",
     "coo" + chr(KELVIN) + "ie", "l\u0130ck here", "\U0001f36a", "版权", "cook\u0131e"]
)  # fmt: skip
TEXTS = st.lists(st.builds("".join, st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=5)), max_size=5)


@settings(derandomize=True, deadline=None)
@given(TEXTS)
@example([])
@example(["", "coo", "kie", ""])  # no phrase spans two texts
@example(["cookie"])
@example(["coo" + chr(KELVIN) + "IE"])
def test_a_phrase_is_found_where_it_is(texts: Sequence[str]) -> None:
    wanted = [any(phrase in text.lower() for phrase in PHRASES) for text in texts]
    assert hold_phrases(texts).tolist() == wanted


def test_every_phrase_is_found_at_both_ends() -> None:
    for phrase in PHRASES:
        assert hold_phrases([phrase, f"a {phrase}", f"{phrase} z", phrase[:-1]]).tolist() == [True] * 3 + [False]
    assert all(len(phrase) >= 4 and phrase == phrase.lower() for phrase in PHRASES)
