import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.text_oracle import FIRST_IS_SLOW, PAGES, TEXTS, kind

from transforms.dedup import minhash
from transforms.text.keys.keys import key_texts


def tokens(key: str) -> list[str]:
    """Returns the tokens of a key, character by character."""
    found: list[str] = []
    open_word = False
    for char in key:
        what = "space" if char == " " else kind(char)
        if (
            what != "space"
            and open_word
            and (what == "mark" or (what != "unspaced" and kind(found[-1][0]) != "unspaced"))
        ):
            found[-1] += char
        elif what != "space":
            found.append(char)
        open_word = what != "space"
    return found


def grams(key: str, n: int = 5) -> list[tuple[str, ...]]:
    every = tokens(key)
    return [tuple(every[k : k + n]) for k in range(len(every) - n + 1)]


def keys_of(texts: list[str]) -> pa.LargeStringArray:
    return key_texts(pa.array(texts, pa.large_string()))


def jaccard(one: set, other: set) -> float:
    return len(one & other) / len(one | other)


@FIRST_IS_SLOW
@given(st.lists(st.one_of(TEXTS, PAGES), max_size=4), st.integers(1, 6))
@example(["A00㐀A00", "b汉b汉bb é汉é"], 1)
def test_a_shingle_is_a_run_of_tokens(texts: list[str], n: int) -> None:
    keys = keys_of(texts)
    sets = minhash.shingles(keys, n).to_pylist()
    counts = minhash.signatures(keys, n, 2, 2, 1)[1].tolist()
    wanted = [grams(key, n) for key in keys.to_pylist()]
    assert counts == list(map(len, wanted))
    assert list(map(len, sets)) == [len(set(g)) for g in wanted]
    assert all(found == sorted(set(found)) for found in sets)
    pairs = [(a, b) for a in range(len(sets)) for b in range(a)]
    shared = [len(set(sets[a]) & set(sets[b])) for a, b in pairs]
    assert shared == [len(set(wanted[a]) & set(wanted[b])) for a, b in pairs]


@FIRST_IS_SLOW
@given(st.lists(PAGES, min_size=1, max_size=3), st.integers(1, 4), st.integers(1, 5), st.integers(0, 9))
def test_a_band_is_the_least_of_the_permuted_shingles(texts: list[str], bands: int, rows: int, seed: int) -> None:
    keys = keys_of(texts)
    factors = minhash.factors(bands * rows, seed).astype(np.uint64)
    least = []
    for found in minhash.shingles(keys, 5).to_pylist():
        values = np.array(found, np.uint64)[:, None]
        permuted = ((values >> np.uint64(32)) + factors * (values & np.uint64(0xFFFFFFFF))) & np.uint64(0xFFFFFFFF)
        least.append(permuted.min(axis=0).reshape(bands, rows).tolist() if len(found) else None)
    hashes = minhash.signatures(keys, 5, bands, rows, seed)[0].tolist()
    for a in range(len(texts)):
        for b in range(len(texts)):
            if least[a] and least[b]:
                equal = [x == y for x, y in zip(hashes[a], hashes[b], strict=True)]
                assert equal == [x == y for x, y in zip(least[a], least[b], strict=True)]


def test_rows_agree_as_often_as_sets_are_similar() -> None:
    rng = random.Random(1)
    words = [f"w{chr(97 + k % 26)}{chr(97 + k // 26)}" for k in range(600)]
    base = rng.choices(words, k=400)
    texts = [" ".join(base)]
    for share in (0.01, 0.02, 0.05):
        texts.append(" ".join(rng.choice(words) if rng.random() < share else w for w in base))
    keys = keys_of(texts)
    bands = minhash.signatures(keys, 5, 4000, 1, 3)[0]
    sets = [set(grams(key)) for key in keys.to_pylist()]
    for k in range(1, len(texts)):
        assert np.mean(bands[0] == bands[k]) == pytest.approx(jaccard(sets[0], sets[k]), abs=0.04)


def test_bands_find_pairs_as_often_as_the_formula_says() -> None:
    rng = random.Random(2)
    hits, expected, count = 0, 0.0, 400
    texts = []
    for _ in range(count):
        base = [f"w{rng.randrange(10**6):x}z" for _ in range(120)]
        texts += [" ".join(base), " ".join(f"q{rng.randrange(10**6):x}z" if rng.random() < 0.025 else w for w in base)]
    keys = keys_of(texts)
    bands = minhash.signatures(keys, 5, 14, 8, 7)[0]
    sets = [set(grams(key)) for key in keys.to_pylist()]
    for k in range(0, 2 * count, 2):
        hits += bool((bands[k] == bands[k + 1]).any())
        expected += 1 - (1 - jaccard(sets[k], sets[k + 1]) ** 8) ** 14
    assert hits == pytest.approx(expected, abs=0.07 * count)


def test_short_texts_have_no_shingles() -> None:
    bands, counts = minhash.signatures(keys_of(["", "one two three four", "汉字汉字", "a b c d e"]), 5, 14, 8, 7)
    assert counts.tolist() == [0, 0, 0, 1]
    assert not bands[:3].any()
    assert bands[3].all()


def test_chinese_has_shingles_of_characters() -> None:
    one, other = keys_of(["今天天气很好，我们去公园散步。", "今天天气很好我们去公园跑步"]).to_pylist()
    assert tokens(one)[:3] == ["今", "天", "天"]
    sets = [set(s) for s in minhash.shingles(pa.array([one, other], pa.large_string()), 5).to_pylist()]
    assert jaccard(*sets) == jaccard(set(grams(one)), set(grams(other))) > 0.6
