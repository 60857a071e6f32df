import json
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.text_oracle import ALPHABET, FIRST_IS_SLOW, PAGES, TEXTS

from transforms.text.keys import tables as key_tables
from transforms.text.keys.keys import key_hash, key_hashes, key_text, key_texts
from transforms.text.normal.normalize import normalize

# What makes rows odd: letters whose lower case depends on others, marks to compose or reorder, Hangul letters.
ODD = st.text(
    st.sampled_from(
        "aΣσİıẞǅﬁ1+#_ é\u0301\u0323\u0345\u0338=\u0344\u00ad\u200b\x00\u2126\u1100\u1161\u11a8가가ক\u09be\u09c7๑२Ⱥ𝐀𐐀"
    ),
    max_size=40,
)


def strings(texts: list[str | None]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def keys_of(texts: list[str]) -> list[str]:
    return key_texts(strings(texts)).to_pylist()


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


@FIRST_IS_SLOW
@given(st.lists(st.one_of(TEXTS, PAGES, ODD), max_size=5))
def test_the_kernel_writes_the_same_keys(texts: list[str]) -> None:
    assert keys_of(texts) == [key_text(t) for t in texts]


@FIRST_IS_SLOW
@given(st.text(st.sampled_from("a_1+#๑ .é\u0301"), max_size=20))
def test_the_kernel_takes_back_numbers_and_signs_as_the_patterns_do(text: str) -> None:
    assert keys_of([text]) == [key_text(text)]


def test_every_code_point_has_the_same_key_alone_and_between_letters() -> None:
    points = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cn", "Co", "Cs")]
    texts = ["".join(f"a{c}1 {c}b+" for c in points[k : k + 64]) for k in range(0, len(points), 64)]
    assert keys_of(texts) == [key_text(t) for t in texts]


def test_lower_case_is_a_fixed_point_of_the_table() -> None:
    lower = key_tables.lower()
    assert (lower[lower] == lower).all()


BAD = [
    "", " \n\t\u3000", "\x00" * 50, "\ufffd\ufffd", "x" * 300_000, "word " * 200_000, "e" + "\u0301" * 5000,
    "\u0323\u0301a", "+#" * 999,
    "१" * 999 + "क", "😀\U0010ffff\U000f0000", "\ufeffbom\r\nline\rline",
]  # fmt: skip


def test_bad_texts_have_keys() -> None:
    assert keys_of(BAD) == [key_text(t) for t in BAD]


def test_slices_nulls_and_nothing() -> None:
    texts = strings(["Drop", "A b", None, "", "C++!"])
    assert key_texts(texts[1:]).to_pylist() == ["a b", "", "", "c++"]
    assert key_texts(texts[:0]).to_pylist() == []
    assert key_texts(strings([None])).to_pylist() == [""]


@pytest.mark.parametrize(
    "name", ["text_en/web_lid_en.jsonl", "text_en/non_english_udhr.jsonl", "text_zh/reviews_hotel.jsonl"]
)
def test_real_texts_have_the_same_keys(shared: Path, name: str) -> None:
    lines = (shared / name).read_text(encoding="utf-8").split("\n")
    texts = [json.loads(line)["text"] for line in lines[:300] if line]
    assert keys_of(texts) == [key_text(t) for t in texts]


def test_hash_is_of_the_key_and_the_media() -> None:
    assert key_hash("Hello, world", []) == key_hash("hello WORLD!", [])
    assert len(key_hash("x", []) or b"") == 16
    hashes = [key_hash(*case) for case in (("x", []), ("x", [b"a"]), (None, [b"a"]), ("x", [b"a", b"b"]),
                                           ("x", [b"b", b"a"]), ("x", [b"ab"]))]  # fmt: skip
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize("text", [None, "", "  \n", "!!! --- …"])
def test_nothing_to_tell_apart_has_no_hash(text: str | None) -> None:
    assert key_hash(text, []) is None
    assert key_hash(text, [b"picture"]) == key_hash(None, [b"picture"])


def test_hashes_of_a_column_are_those_of_its_rows() -> None:
    texts = ["One", "two words", None, "!", "x" * 40]
    media = [[], [b"m"], [b"n"], [], []]
    found = key_hashes(strings(texts), media)
    assert found.type == pa.binary(16)
    assert found.to_pylist() == [key_hash(t, m) for t, m in zip(texts, media, strict=True)]


@FIRST_IS_SLOW
@given(st.lists(st.text(st.sampled_from("ab"), min_size=1, max_size=40), unique=True, max_size=60))
def test_hashes_tell_keys_of_every_length_apart(texts: list[str]) -> None:
    assert len(set(key_hashes(strings(texts), [[]] * len(texts)).to_pylist())) == len(texts)
