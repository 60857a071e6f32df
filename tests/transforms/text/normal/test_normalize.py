import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.text_oracle import FIRST_IS_SLOW, TEXTS

from transforms.text.normal.normalize import normalize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h\r\r\n", "a\nb\nc\nd\ne\nf\ng\nh\n\n"),
        ("\ufeffa\x00\x1b[1m\x7f\x9fb\tc", "a[1mb\tc"),
        ("\u202eabc\u202c \u200e\u200f\u2066x\u2069", "abc x"),
        ("e\u0301 \ufffd", "é \ufffd"),
        ("e\x00\u0301", "é"),
        ("ﬁ １", "ﬁ １"),
        ("zero\u200bwidth می‌خواهم", "zero\u200bwidth می‌خواهم"),
    ],
)
def test_normal_form(text: str, expected: str) -> None:
    assert normalize(text, "NFC") == expected


def test_compatibility_form_folds_ligatures_and_wide_digits() -> None:
    assert normalize("ﬁ １ …", "NFKC") == "fi 1 ..."


@FIRST_IS_SLOW
@given(TEXTS, st.sampled_from(["NFC", "NFKC"]))
def test_normalising_twice_changes_nothing(text: str, form: str) -> None:
    once = normalize(text, form)
    assert normalize(once, form) == once
    assert unicodedata.is_normalized(form, once)
    assert not [c for c in once if unicodedata.category(c) == "Cc" and c not in "\n\t"]


@FIRST_IS_SLOW
@given(st.text(st.sampled_from("a\u0300\u0316\u0344\u0308é"), max_size=400))
def test_runs_of_marks_are_broken_but_none_is_lost(text: str) -> None:
    found = normalize(text, "NFC")
    assert normalize(found, "NFC") == found
    unbroken = found.replace("\u034f", "")
    assert sorted(unicodedata.normalize("NFD", unbroken)) == sorted(unicodedata.normalize("NFD", text))
    runs = "".join("m" if unicodedata.combining(c) else " " for c in found).split()
    assert max(map(len, runs), default=0) <= 30
