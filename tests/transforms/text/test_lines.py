"""Lines, paragraphs and their removal, against `str.split` and plain lists."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.text_oracle import FIRST_IS_SLOW, PAGES, TEXTS

from transforms.text.lines import hash_lines, remove_lines

ENDS = re.compile("\r\n|\r|\n")
BLANKS = "".join(chr(c) for c in range(0x20000) if chr(c).isspace())
MIXED = st.lists(
    st.sampled_from(["a", "b c", "汉字", " ", "\u00a0\u3000", *BLANKS, "\r\n", "\n", "é"]), max_size=30
).map("".join)
ANY = st.one_of(TEXTS, PAGES, MIXED)
COLUMN = st.lists(st.one_of(ANY, st.none()), max_size=5)

GOLDEN = {
    "lines": [8735257635036113728, 18128872766055491952, 6046195483241040759, 12434578991734273488],
    "paragraphs": [8799791457563019367, 15934992724109730953, 15120570172083638866],
    "documents": [18083042740579110272, 9185833501631799576, 683997025317349618],
}


def array(texts: list[str | None]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def normal_lines(text: str | None) -> list[str]:
    """Returns the normal form of every line, blank ones as empty."""
    return [] if text is None else [" ".join(line.split()) for line in ENDS.split(text)]


def blocks(text: str | None) -> list[list[str]]:
    """Returns the paragraphs as lists of lines."""
    found: list[list[str]] = [[]]
    for line in normal_lines(text):
        if line:
            found[-1].append(line)
        else:
            found.append([])
    return [block for block in found if block]


def without(text: str | None, unwanted: set[str]) -> str | None:
    """Returns `text` without those lines; the end of the last line that stays goes if it had lines behind it only."""
    if text is None:
        return None
    lines = list(zip(ENDS.split(text), [*ENDS.findall(text), ""], strict=True))
    kept = [(line, end) for line, end in lines if not line.split() or " ".join(line.split()) not in unwanted]
    if kept and kept[-1] is not lines[-1]:
        kept[-1] = (kept[-1][0], "")
    return "".join(line + end for line, end in kept)


def one_hash_each(keys: list[object], hashes: list[int]) -> None:
    """Asserts that equal keys have equal hashes and others have others."""
    assert len(keys) == len(hashes)
    found = dict(zip(keys, hashes, strict=True))
    assert [found[k] for k in keys] == hashes
    assert len(set(found.values())) == len(found)


@FIRST_IS_SLOW
@given(COLUMN)
def test_lines_are_those_of_split(texts: list[str | None]) -> None:
    found = hash_lines(array(texts)).lines
    expected = [[line for line in normal_lines(t) if line] for t in texts]
    assert np.diff(found.starts).tolist() == [len(e) for e in expected]
    flat = [line for e in expected for line in e]
    assert found.chars.tolist() == [len(line) for line in flat]
    one_hash_each(list(flat), found.hashes.tolist())


@FIRST_IS_SLOW
@given(COLUMN)
def test_paragraphs_and_documents_are_sequences_of_lines(texts: list[str | None]) -> None:
    found = hash_lines(array(texts))
    expected = [blocks(t) for t in texts]
    assert np.diff(found.paragraphs.starts).tolist() == [len(e) for e in expected]
    flat = [block for e in expected for block in e]
    assert found.paragraphs.chars.tolist() == [sum(map(len, block)) for block in flat]
    one_hash_each([tuple(block) for block in flat], found.paragraphs.hashes.tolist())
    whole = [tuple(line for block in e for line in block) for e in expected]
    assert [d == 0 for d in found.documents.tolist()] == [not w for w in whole]
    one_hash_each(list(whole), found.documents.tolist())


@FIRST_IS_SLOW
@given(COLUMN, st.sets(st.sampled_from(["a", "汉字", "the", "a b c", "b c", "é"])), st.randoms())
def test_removal_is_that_of_a_list_of_lines(texts: list[str | None], extra: set[str], random: object) -> None:
    every = sorted({line for t in texts for line in normal_lines(t) if line})
    unwanted = extra | set(every[:: random.randint(1, 3)])
    hashes = np.unique(hash_lines(array(sorted(unwanted))).lines.hashes)
    stripped, counts = remove_lines(array(texts), hashes)
    assert counts.tolist() == [sum(line in unwanted for line in normal_lines(t)) for t in texts]
    assert stripped.to_pylist() == [t if not n else without(t, unwanted) for t, n in zip(texts, counts, strict=True)]
    stripped.validate(full=True)
    assert not remove_lines(stripped, hashes)[1].any(), "twice is once"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a\nX\nb", "a\nb"), ("X\na", "a"), ("a\nX", "a"), ("a\nX\n", "a\n"), ("X", ""), ("X\n", ""), ("\n\nX", "\n"),
        ("a\r\n X \r\nb\r\n", "a\r\nb\r\n"), ("a\r\nX", "a"), ("X\rX\ra", "a"), ("a\nX\nX", "a"), ("X\nX", ""),
        ("a\n\n\tX\n\nb", "a\n\n\nb"), ("aX\nX a", "aX\nX a"), (None, None), ("", ""),
    ],
)  # fmt: skip
def test_what_is_left(text: str | None, rest: str | None) -> None:
    stripped, _ = remove_lines(array([text, "X", text]), hash_lines(array(["X"])).lines.hashes)
    assert stripped.to_pylist() == [rest, "", rest]


def test_each_text_may_have_lines_of_its_own() -> None:
    hashes = hash_lines(array(["a", "b"])).lines.hashes  # not sorted across texts
    bounds = np.array([[0, 1], [1, 2], [0, 0]])
    stripped, counts = remove_lines(array(["a\nb\nc"] * 3), hashes, bounds)
    assert stripped.to_pylist() == ["b\nc", "a\nc", "a\nb\nc"]
    assert counts.tolist() == [1, 1, 0]


def test_texts_without_such_lines_are_handed_back() -> None:
    texts = array(["a", None])
    assert remove_lines(texts, hash_lines(array(["b"])).lines.hashes)[0] is texts
    assert remove_lines(texts, np.empty(0, np.uint64))[0] is texts


def test_slices_and_no_rows() -> None:
    whole = array(["zz", "a\nb", None, "b", "zz"])
    assert hash_lines(whole[1:4]).lines.hashes.tolist() == hash_lines(array(["a\nb", None, "b"])).lines.hashes.tolist()
    assert remove_lines(whole[1:4], hash_lines(array(["b"])).lines.hashes)[0].to_pylist() == ["a", None, ""]
    for empty in (whole[:0], array([]), array([None, None])):
        assert not len(hash_lines(empty).lines.hashes)
        assert remove_lines(empty, np.ones(1, np.uint64))[0].to_pylist() == empty.to_pylist()


def test_hashes_stay() -> None:
    """A change here changes every file that holds them."""
    found = hash_lines(array(["Home", "first line\nsecond line", "汉 字"]))
    assert found.lines.hashes.tolist() == GOLDEN["lines"]
    assert found.paragraphs.hashes.tolist() == GOLDEN["paragraphs"]
    assert found.documents.tolist() == GOLDEN["documents"]


def test_hostile_texts() -> None:
    long = "x" * 10_000_000
    found = hash_lines(array([long, "\n" * 1_000_000, "a\n" * 500_000, "\0", "\ufffd"]))
    assert np.diff(found.lines.starts).tolist() == [1, 0, 500_000, 1, 1]
    assert found.lines.chars[0] == 10_000_000
    stripped, counts = remove_lines(array(["a\n" * 500_000 + "b", long]), hash_lines(array(["a"])).lines.hashes)
    assert (stripped[0].as_py(), counts.tolist()) == ("b", [500_000, 0])


def test_real_texts(shared: Path) -> None:
    path = shared / "text_en" / "web_cc2019.jsonl"
    texts = [json.loads(line)["text"] for line in path.read_bytes().splitlines()]
    flat = [line for t in texts for line in normal_lines(t) if line]
    one_hash_each(list(flat), hash_lines(array(texts)).lines.hashes.tolist())
    unwanted = {"Jump to navigation Jump to search", "Advertisements"}
    stripped, counts = remove_lines(array(texts), np.unique(hash_lines(array(sorted(unwanted))).lines.hashes))
    assert counts.sum() >= 33
    assert stripped.to_pylist() == [t if not n else without(t, unwanted) for t, n in zip(texts, counts, strict=True)]


def test_blank_is_what_python_calls_space() -> None:
    for char in BLANKS:
        found = hash_lines(array([f"{char}a{char}b{char}"]))
        if char not in "\r\n":
            assert found.lines.hashes.tolist() == hash_lines(array(["a b"])).lines.hashes.tolist(), hex(ord(char))
    near = [chr(ord(c) + d) for c in BLANKS for d in (-1, 1) if not chr(ord(c) + d).isspace()]
    assert hash_lines(array(near)).lines.chars.tolist() == [1] * len(near)
