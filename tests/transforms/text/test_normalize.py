import hashlib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_oracle import ALPHABET, FIRST_IS_SLOW, TEXTS

from transforms.text.normalize import key_hash, key_text, normalize


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


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Hello,  WORLD!\n", "hello world"),
        ("It's 3.14 or 1,000 in 2024.", "it s 0 0 or 0 0 in 0"),
        ("room 12, room 345", "room 0 room 0"),
        ("mp3 h5n1 2nd", "mp3 h5n1 2nd"),
        ("2019年 ๑๒๓ १२", "0年 0 0"),
        ("C++ or C# or a+b, #1 +", "c++ or c# or a b 0"),
        ("e\u0301tude", "étude"),
        ("co\u00adop", "coop"),
        ("¿Qué?!… «x» — ''", "qué x"),
        ("!!! ... ~~~ ===", ""),
        ("", ""),
    ],
)
def test_key(text: str, key: str) -> None:
    assert key_text(text) == key


DISTINCT = [
    ("किताब", "कताब"), ("कि", "की"), ("हिंदी", "हिदी"),  # Hindi: vowel signs, anusvara
    ("มา", "ม้า"), ("ที่", "ที"), ("เสือ", "เสื้อ"),  # Thai: tones
    ("عِلم", "عَلَم"), ("كَتَبَ", "كُتِبَ"), ("علم", "عمل"),  # Arabic
    ("שָׁלוֹם", "שִׁלּוּם"), ("resume", "résumé"), ("cant", "can't"), ("mp3", "mp4"), ("C", "C++"), ("C++", "C#"),
    ("می‌خواهم", "می خواهم"), ("😀", "😢"), ("汉字", "漢字"), ("x²", "x³"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), DISTINCT)
def test_distinct_words_never_share_a_key(one: str, other: str) -> None:
    assert key_text(one) != key_text(other)
    assert key_hash(one, []) != key_hash(other, [])


@FIRST_IS_SLOW
@given(st.text(st.sampled_from(ALPHABET.replace("+", "").replace("#", "")), max_size=40))
def test_key_is_a_fixed_point_and_ignores_case_marks_of_form_and_spacing(text: str) -> None:
    key = key_text(text)
    assert key_text(key) == key
    assert key_text(unicodedata.normalize("NFD", text)) == key_text(unicodedata.normalize("NFC", text))
    assert key_text(f"  {text}\n") == key
    assert key == " ".join(key.split())


@FIRST_IS_SLOW
@given(st.text(max_size=40))
def test_letters_and_marks_of_the_text_all_stand_in_its_key(text: str) -> None:
    def bare(value: str) -> list[str]:
        folded = unicodedata.normalize("NFD", unicodedata.normalize("NFC", value.lower()))
        return [c for c in folded if unicodedata.category(c)[0] in "LM" and c not in "\u034f"]

    assert bare(key_text(text)) == bare(normalize(text, "NFC"))


def test_hash_is_of_the_key_and_the_media() -> None:
    assert key_hash("Hello, world", []) == key_hash("hello WORLD!", [])
    assert len(key_hash("x", []) or b"") == 16
    assert key_hash("x", []) == hashlib.blake2b(b"x", digest_size=16, salt=bytes(8)).digest()
    hashes = [key_hash(*case) for case in (("x", []), ("x", [b"a"]), (None, [b"a"]), ("x", [b"a", b"b"]),
                                           ("x", [b"b", b"a"]), ("x", [b"ab"]))]  # fmt: skip
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize("text", [None, "", "  \n", "!!! --- …"])
def test_nothing_to_tell_apart_has_no_hash(text: str | None) -> None:
    assert key_hash(text, []) is None
    assert key_hash(text, [b"picture"]) == key_hash(None, [b"picture"])
