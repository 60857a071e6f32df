"""Benchmark items in texts, against sets of tuples of words."""

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import text_oracle
from support.text_oracle import FIRST_IS_SLOW, PAGES, TEXTS

from transforms.core.text_files import TextSource
from transforms.text.decontaminate import overlap as decontaminate
from transforms.text.decontaminate.config import DecontaminateConfig
from transforms.text.decontaminate.overlap import Index, hits, make_index, ngram_pairs, of_template

_WORDS = st.sampled_from(["a", "b", "the", "It's", "汉", "字", "คน", "कि", "é", "É", "-", "...", "\u00ad", "x1"])
_GAPS = st.sampled_from([" ", " ", ", ", "\n", ""])
SMALL = st.lists(st.tuples(_WORDS, _GAPS), max_size=14).map(lambda pairs: "".join(w + g for w, g in pairs))
ANY = st.one_of(SMALL, SMALL, PAGES, TEXTS)

Row = tuple[str | None, float | None, int | None, float | None]


def array(texts: list[str | None]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def words(text: str) -> list[str]:
    """Returns the words that n-grams are made of."""
    found, current, alone = [], "", False
    for char in text:
        if char in text_oracle.INVISIBLE:
            continue
        what = text_oracle.kind(char)
        ends = what not in ("letter", "mark") or (alone and what == "letter")
        if ends and current:
            found.append(current)
            current = ""
        if ends:
            alone = what == "unspaced"
        if what in ("letter", "mark", "unspaced"):
            current += char.lower()[0].replace("ς", "σ")
    return [*found, current] if current else found


def ngrams(text: str, n: int) -> list[tuple[str, ...]]:
    every = words(text)
    return [tuple(every[k : k + n]) for k in range(len(every) - n + 1)]


def oracle(texts: list[str | None], items: list[str], n: int, least: int) -> list[Row]:
    """Returns item number, overlap, n-grams and share of words for each text."""
    known = {}
    for number, item in enumerate(items):
        size = len(words(item))
        if size >= least:
            known[number] = set(ngrams(item, min(n, size)))
    lengths = {len(g) for grams in known.values() for g in grams}
    return [(None,) * 4 if t is None else one(t, known, lengths) for t in texts]


def one(text: str, known: dict[int, set[tuple[str, ...]]], lengths: set[int]) -> Row:
    here = {n: ngrams(text, n) for n in lengths}
    there = {gram for grams in known.values() for gram in grams}
    found = {number: len(grams & {g for n in lengths for g in here[n]}) for number, grams in known.items()}
    covered = {p for n in lengths for k, gram in enumerate(here[n]) if gram in there for p in range(k, k + n)}
    ratio = len(covered) / max(1, len(words(text)))
    best = min(known, key=lambda number: (-found[number] / len(known[number]), number), default=None)
    if best is None or not found[best]:
        return None, 0.0, 0, ratio
    return str(best), found[best] / len(known[best]), found[best], ratio


def index_of(items: list[str], n: int, least: int = 1) -> Index:
    hashes, rows, counts = ngram_pairs(array(items), ngram=n, min_words=least)
    kept = counts >= least
    names = pa.array([str(k) for k in np.flatnonzero(kept)], pa.string())
    return make_index(hashes, (np.cumsum(kept) - 1)[rows], np.minimum(counts[kept], n), names)


def look_up(texts: list[str | None], index: Index | None) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in hits(array(texts), index)), strict=True))


@FIRST_IS_SLOW
@given(st.lists(st.one_of(ANY, st.none()), max_size=5), st.lists(ANY, max_size=5), st.integers(1, 5), st.data())
def test_hits_are_those_of_sets(texts: list[str | None], items: list[str], n: int, data: Any) -> None:
    least = data.draw(st.integers(1, n))
    assert look_up(texts, index_of(items, n, least)) == oracle(texts, items, n, least)


@FIRST_IS_SLOW
@given(st.lists(ANY, min_size=1, max_size=4), st.integers(1, 13))
def test_every_item_is_in_itself(items: list[str], n: int) -> None:
    for (item, overlap, _, ratio), text in zip(look_up(items, index_of(items, n)), items, strict=True):
        assert (item is not None, overlap, ratio) == ((True, 1, 1) if words(text) else (False, 0, 0))


@pytest.mark.parametrize(
    ("text", "overlap"),
    [
        ("is the SKY blue?", 1.0), ("…is-the “sky”, blue", 1.0), ("is the sky\u00ad  blue", 1.0),
        ("is the sky blue today", 1.0), ("was the sky blue", 0.5), ("is the sky green", 0.5),
        ("the sky", 0.0), ("is the skyblue", 0.0), ("blue sky the is", 0.0), ("", 0.0),
    ],
)  # fmt: skip
def test_what_hides_an_item_and_what_does_not(text: str, overlap: float) -> None:
    assert look_up([text], index_of(["Is the sky blue?"], 3))[0][1] == overlap


def test_of_items_that_tie_the_first_is_named() -> None:
    items = ["x y z a b", "q a b c d", "a b c d q", "a b c d"]
    assert look_up(["a b c d"], index_of(items, 2))[0][:3] == ("3", 1.0, 3)
    assert look_up(["a b c d"], index_of(items[:3], 2))[0][:3] == ("1", 0.75, 3)
    assert look_up(["a b c d", None, "a b c d"], index_of(items[2::-1], 2))[2][0] == "0"


def test_short_items_are_whole_or_not_at_all() -> None:
    index = index_of(["one two three four five six", "red green blue", "no"], 4, 3)
    assert index.lengths.tolist() == [3, 4]
    rows = look_up(["a red green blue car", "red green", "no", "two three four five"], index)
    assert [row[:3] for row in rows] == [("1", 1.0, 1), (None, 0.0, 0), (None, 0.0, 0), ("0", 1 / 3, 1)]
    assert rows[0][3] == 3 / 5


def test_without_benchmarks_all_is_null() -> None:
    assert look_up(["a b c", None], None) == [(None, None, None, None)] * 2
    assert [c.type for c in hits(array(["a"]), None)] == [kind for _, kind in decontaminate.VALUES]
    assert [c.type for c in hits(array(["a"]), index_of(["a"], 1))] == [kind for _, kind in decontaminate.VALUES]


def test_slices_no_rows_and_hostile_texts() -> None:
    index = index_of(["a b c d e"], 3)
    whole = array(["zz", "a b c", None, "x"])
    assert hits(whole[1:3], index).overlap.to_pylist() == [1 / 3, None]
    assert hits(whole[:0], index).item.to_pylist() == []
    hostile = ["a" * 10_000_000, "a b " * 1_000_000, "\0", "汉" * 300_000, "\u0300" * 100_000, "a b c d e " * 100_000]
    assert hits(array(hostile), index).overlap.to_pylist() == [0, 0, 0, 0, 0, 1]
    empty = index_of([], 3)
    assert look_up(["a b c"], empty) == [(None, 0.0, 0, 0.0)]


def test_tables_know_case_where_letters_have_it() -> None:
    table, lower = decontaminate._letters()
    assert not (table[len(lower) :] == decontaminate.WORD).any()
    assert [chr(lower[ord(c)]) for c in "AÉΣςİ1"] == ["a", "é", "σ", "σ", "i", "1"]


def edited(text: str, share: float, seed: int) -> str:
    """Returns `text` with that share of its words replaced."""
    draw = random.Random(seed)
    return " ".join("edit" if draw.random() < share else w for w in text.split())


def test_planted_items_in_real_texts(shared: Path) -> None:
    def texts(name: str, count: int) -> list[str]:
        return [json.loads(line)["text"] for line in (shared / "text_en" / name).read_bytes().splitlines()[:count]]

    items, hosts = texts("wiki_boolq.jsonl", 60), texts("news_lee_abc.jsonl", 30)
    planted = [
        f"{host}\n{edited(item.upper() if k % 2 else re.sub('[.,]', ' ', item), (k % 5) / 20, k)}\n{host}"
        for k, (host, item) in enumerate(zip(hosts, items, strict=False))
    ]
    index = index_of(items, 13, 8)
    found = look_up([*planted, *hosts], index)
    assert found == oracle([*planted, *hosts], items, 13, 8)
    whole = [row for k, row in enumerate(found[: len(planted)]) if k % 5 == 0]
    assert all(row[1] == 1.0 for row in whole)
    assert {row[0] for row in whole} == {str(k) for k in range(0, len(planted), 5)}
    assert not any(row[0] for row in found[len(planted) :]), "news from before the questions"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ngram": 0}, "ngram 0"), ({"min_words": 14}, "min_words 14"), ({"max_overlap": 1.5}, "max_overlap must be"),
        ({"max_item_ratio": -0.1}, "max_item_ratio must be"),
        ({"benchmarks": (TextSource(name="b", paths=("x",)),) * 2}, "unique names"),
    ],
)  # fmt: skip
def test_limits_are_checked(change: dict[str, Any], words: str) -> None:
    good = {"benchmarks": (), "ngram": 13, "min_words": 8, "max_overlap": 0.5, "max_item_ratio": 0.05}
    DecontaminateConfig(**good)
    with pytest.raises(ValueError, match=words):
        DecontaminateConfig(**{**good, **change})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Bool Q"}, "may hold only"), ({"paths": ()}, "must not be empty"), ({"columns": ()}, "columns of b"),
        ({"columns": ("a:b",)}, "may only use fields like"), ({"encoding": "utf-17"}, "unknown encoding"),
    ],
)  # fmt: skip
def test_a_benchmark_is_checked_like_a_source(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TextSource(**{"name": "b", "paths": ("x",), **change})


@given(
    st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=6), min_size=1, max_size=9),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_the_template_is_what_many_items_share(items: list[list[int]], ratio: float) -> None:
    pairs = [(gram, owner) for owner, grams in enumerate(items) for gram in grams]
    holders = {gram: {o for g, o in pairs if g == gram} for gram, _ in pairs}
    shared = {gram for gram, found in holders.items() if len(found) > 2 and len(found) > ratio * len(items)}
    expected = [gram in shared and not set(items[owner]) <= shared for gram, owner in pairs]
    hashes, owners = np.array([g for g, _ in pairs], np.uint64), np.array([o for _, o in pairs], np.int64)
    assert of_template(hashes, owners, len(items), ratio).tolist() == expected
