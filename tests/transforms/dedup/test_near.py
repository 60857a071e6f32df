"""Near duplicates in memory: against an oracle that compares rows one by one, as the decision record says."""

import itertools
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.text_oracle import FIRST_IS_SLOW

from transforms.dedup import minhash, near
from transforms.dedup.config import NearConfig
from transforms.text.keys.keys import key_text, key_texts

CONFIG = {"enabled": True, "ngram": 5, "bands": 14, "rows": 8, "min_similarity": 0.75, "max_leaders": 32, "seed": 7}

WORDS = [
    "".join(p) for p in itertools.product(("ba", "ko", "li", "mu", "ter"), ("na", "so", "ve", ""), ("d", "n", "rst"))
]

Row = tuple[str, float, str]  # sample_id, quality, text


def config(**changes: Any) -> NearConfig:
    return NearConfig(**{**CONFIG, **changes})


def edited(text: str, rng: random.Random, share: float) -> str:
    return " ".join(rng.choice(WORDS) if rng.random() < share else w for w in text.split())


def planted(count: int, seed: int, shares: tuple[float, ...] = (0.005, 0.01, 0.02, 0.03, 0.05)) -> list[str]:
    """Returns texts of about 120 words; half of them are edited copies of earlier ones."""
    rng, texts = random.Random(seed), []
    for k in range(count):
        fresh = not texts or k % 2 == 0
        texts.append(
            " ".join(rng.choices(WORDS, k=120)) if fresh else edited(rng.choice(texts), rng, rng.choice(shares))
        )
    return texts


def grams(text: str) -> set[tuple[str, ...]]:
    words = key_text(text).split()
    return {tuple(words[k : k + 5]) for k in range(len(words) - 4)}


def jaccard(one: set[Any], other: set[Any]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


def bands_of(rows: list[Row], settings: NearConfig) -> np.ndarray:
    keys = key_texts(pa.array([r[2] for r in rows], pa.large_string()))
    return minhash.signatures(keys, settings.ngram, settings.bands, settings.rows, settings.seed)[0]


def bundles(rows: list[Row], settings: NearConfig, most: int) -> list[pa.RecordBatch]:
    """Returns the bundles of rows whose ref is their place."""
    hashes = bands_of(rows, settings)
    signed = hashes.any(axis=1)
    refs = np.flatnonzero(signed)
    links = near.link(near.shared(hashes[signed, k], refs) for k in range(settings.bands))
    if not len(links.refs):
        return []
    taken = [rows[k] for k in links.refs.tolist()]
    sizes = [len(grams(text)) for _, _, text in taken]
    columns = {"quality": [r[1] for r in taken], "sample_id": [r[0] for r in taken], "shingles": sizes}
    return list(near.bundle(links, pa.table(columns), most))


def run(rows: list[Row], settings: NearConfig, most: int = 10**6) -> tuple[dict[str, tuple[str, float]], int]:
    """Returns dropped id → (matched id, similarity), and how often a band was full."""
    lost, full = {}, 0
    for bundle in bundles(rows, settings, most):
        texts = [rows[k][2] for k in bundle["ref"].to_pylist()]
        sets = minhash.shingles(key_texts(pa.array(texts, pa.large_string())), settings.ngram)
        found = near.match(bundle, sets, settings)
        full += found.full
        lost |= {rows[r["ref"]][0]: (r["matched_id"], r["similarity"]) for r in found.rows.to_pylist()}
    return lost, full


def naive(rows: list[Row], settings: NearConfig) -> tuple[dict[str, tuple[str, float]], int]:
    """Returns the same, row by row in the order of rank."""
    hashes = bands_of(rows, settings)
    sets = [grams(r[2]) for r in rows]
    leaders: dict[tuple[int, int], list[int]] = {}
    lost, full = {}, 0
    for k in sorted(range(len(rows)), key=lambda k: (-rows[k][1], rows[k][0])):
        mine = [(b, int(h)) for b, h in enumerate(hashes[k]) if h]
        rivals = [j for band in mine for j in leaders.get(band, [])]
        best = min(((-jaccard(sets[k], sets[j]), -rows[j][1], rows[j][0]) for j in rivals), default=(0.0, 0.0, ""))
        if rivals and -best[0] >= settings.min_similarity:
            lost[rows[k][0]] = (best[2], -best[0])
            continue
        for band in mine:
            shared = sum(int(h) == band[1] for h in hashes[:, band[0]]) > 1
            room = len(leaders.setdefault(band, [])) < settings.max_leaders
            if room:
                leaders[band].append(k)
            full += shared and not room
    return lost, full


def rows_of(texts: list[str], seed: int = 0) -> list[Row]:
    rng = random.Random(seed)
    rows = [(f"s{k:03d}", rng.choice([0.5, 0.8, 1.0]), text) for k, text in enumerate(texts)]
    rng.shuffle(rows)
    return rows


@pytest.mark.parametrize("changes", [{}, {"max_leaders": 1}, {"rows": 2, "max_leaders": 2}, {"min_similarity": 0.4}])
def test_the_verdicts_are_those_of_the_decision_record(changes: dict[str, Any]) -> None:
    for seed in range(3):
        rows = rows_of(planted(60, seed), seed)
        assert run(rows, config(**changes)) == naive(rows, config(**changes))


@FIRST_IS_SLOW
@given(st.integers(0, 10**6), st.integers(1, 3000), st.integers(1, 3))
def test_neither_order_nor_the_size_of_bundles_matters(seed: int, most: int, leaders: int) -> None:
    rows = rows_of(planted(24, seed, (0.0, 0.01, 0.03)), seed)
    settings = config(rows=3, max_leaders=leaders)
    wanted = naive(rows, settings)
    assert run(rows, settings, most) == wanted
    assert run(rows[::-1], settings) == wanted


def test_a_bundle_ends_where_a_component_does() -> None:
    rows = rows_of(planted(80, 5))
    found = bundles(rows, config(), 400)
    assert len(found) > 5
    seen = [set(b["groups"].flatten().to_pylist()) for b in found]
    assert all(not one & other for one, other in itertools.combinations(seen, 2))
    assert sorted(r for b in found for r in b["ref"].to_pylist()) == sorted(
        r for b in bundles(rows, config(), 10**9) for r in b["ref"].to_pylist()
    )


def test_recall_and_precision_against_brute_force() -> None:
    rows = rows_of(planted(400, 11))
    lost, full = run(rows, config())
    sets = {r[0]: grams(r[2]) for r in rows}
    kept = [r for r in sorted(rows, key=lambda r: (-r[1], r[0])) if r[0] not in lost]
    assert full == 0
    assert all(m not in lost and s == jaccard(sets[i], sets[m]) >= 0.75 for i, (m, s) in lost.items()), "precision 1"
    missed = [b for k, (b, _, _) in enumerate(kept) if any(jaccard(sets[a[0]], sets[b]) >= 0.75 for a in kept[:k])]
    assert len(lost) / (len(lost) + len(missed)) > 0.9
    assert len(lost) > 60


def test_a_band_of_boilerplate_costs_little_and_is_counted() -> None:
    rng = random.Random(3)
    boilerplate = " ".join(rng.choices(WORDS, k=300))
    rows = [(f"s{k:04d}", 1.0, f"{boilerplate} {' '.join(rng.choices(WORDS, k=190))}") for k in range(400)]
    settings = config(rows=1, max_leaders=4)
    lost, full = run(rows, settings)
    assert (lost, full) == naive(rows, settings)
    assert full > 1000
    assert run(rows[::-1], settings) == (lost, full)


def test_thousands_of_near_copies_of_one_text_have_one_survivor() -> None:
    base = " ".join(random.Random(4).choices(WORDS, k=200))
    rows = [(f"s{k:05d}", 1.0, f"{base} n{k}x") for k in range(5_000)]
    lost, full = run(rows, config())
    assert full == 0
    assert {m for m, _ in lost.values()} == {"s00000"}
    assert len(lost) == len(rows) - 1


def test_a_chain_of_likenesses_does_not_merge_what_is_unlike() -> None:
    words = random.Random(6).choices(WORDS, k=200)
    texts = [" ".join([f"x{k}y" if k < 8 * step else w for k, w in enumerate(words)]) for step in range(8)]
    rows = [(f"s{k}", 1.0, text) for k, text in enumerate(texts)]
    lost, _ = run(rows, config())
    sets = [grams(text) for text in texts]
    assert jaccard(sets[0], sets[-1]) < 0.75
    assert 0 < len(lost) < len(rows) - 1
    assert all(s >= 0.75 for _, s in lost.values())


@pytest.mark.parametrize(
    "rows", [[], [("a", 1.0, "alone in the world with some words")], [("a", 1.0, ""), ("b", 1.0, "")]]
)
def test_nothing_to_compare(rows: list[Row]) -> None:
    assert run(rows, config()) == ({}, 0)


def test_lookup_finds_refs_in_any_batch() -> None:
    batches = [
        pa.record_batch([[1, 5, 9], ["a", "b", "c"], [0.8, 0.9, 1.0]], schema=near.NEAR),
        pa.record_batch([[], [], []], schema=near.NEAR),
        pa.record_batch([[2, 7], ["d", "e"], [0.8, 0.9]], schema=near.NEAR),
    ]
    found = near.lookup(pa.array([9, None, 7, 3, 7, 100]), batches)
    assert found["matched_id"].to_pylist() == ["c", "e"]
    assert near.lookup(pa.array([], pa.int64()), batches).num_rows == 0
