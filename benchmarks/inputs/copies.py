"""The corpus of the deduplication benchmark, and the truth about it by brute force."""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

COPY_RATIO = 0.3
EDITED = (0.0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.06)  # shares of a copy's words that are replaced
NGRAM, LEAST = 5, 0.75


def documents(pool: Sequence[str], count: int, seed: int = 7) -> Iterator[str]:
    """Yields seeded documents of twelve sentences; every third or so is an edited copy of one of the last thousand."""
    rng, recent = random.Random(seed), [""]
    words = sorted({w for s in pool[:5000] for w in s.split()})
    for k in range(count):
        if k and rng.random() < COPY_RATIO:
            yield _edited(rng.choice(recent), rng, words)
            continue
        recent = [*recent[-999:], " ".join(rng.choices(pool, k=12))] if k else [" ".join(rng.choices(pool, k=12))]
        yield recent[-1]


def _edited(text: str, rng: random.Random, words: Sequence[str]) -> str:
    found, share = text.split(), rng.choice(EDITED)
    return " ".join(rng.choice(words) if rng.random() < share else w for w in found)


def similar_pairs(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields the pairs (i < j) whose sets of word 5-grams have a Jaccard similarity of at least 0.75."""
    import numpy as np
    from scipy.sparse import csr_array

    codes: dict[tuple[str, ...], int] = {}
    rows = [sorted({codes.setdefault(g, len(codes)) for g in _grams(text)}) for text in texts]
    ends = np.cumsum([0, *map(len, rows)])
    has = csr_array((np.ones(ends[-1], np.int32), np.concatenate(rows), ends), (len(rows), len(codes)))
    shared: Any = (has @ has.T).tocoo()
    sizes = np.diff(ends)
    union = sizes[shared.row] + sizes[shared.col] - shared.data
    near = (shared.data >= LEAST * union) & (shared.row < shared.col)
    yield from zip(shared.row[near].tolist(), shared.col[near].tolist(), strict=True)


def _grams(text: str) -> Iterator[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return zip(*(words[k:] for k in range(NGRAM)), strict=False)


def score(texts: Sequence[str], kept: set[int]) -> dict[str, float]:
    """Returns precision, recall and F1 of what was dropped.

    A dropped document is right if a kept one is similar to it. A kept one is missed if a kept one before it is.
    """
    covered, missed = set(), set()
    for one, other in similar_pairs(texts):
        if one in kept and other in kept:
            missed.add(other)
        covered |= {a for a, b in ((one, other), (other, one)) if a not in kept and b in kept}
    dropped = len(texts) - len(kept)
    right = len(covered)
    precision, recall = right / max(dropped, 1), right / max(right + len(missed), 1)
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / max(precision + recall, 1e-9)}
