"""Canaries: seeded junk of every kind, and figures that say which signal sees which."""

import math
import random

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from scoring.quality import degrade
from transforms.lqs.canaries import make
from transforms.lqs.canary_figures import GOOD, auc

TEXTS = [
    f"The {n} rivers of the county rise in the hills, and the old road follows them to the sea. Nobody knows who built "
    f"the bridge at mile {n}; it was there in 1311, when the toll was two pence for a cart of wool." for n in range(9)
]  # fmt: skip


def test_a_good_row_and_one_of_each_kind_made_from_it() -> None:
    found = make(TEXTS, seed=3)
    kinds = [c.kind for c in found]
    assert [c.text for c in found if c.kind == GOOD] == TEXTS
    assert {k: kinds.count(k) for k in kinds} == dict.fromkeys((GOOD, *(name for name, _ in degrade.CANARIES)), 9)
    assert found == make(TEXTS, seed=3)
    assert found != make(TEXTS, seed=4)


def test_a_wrong_language_is_none_of_the_text() -> None:
    finnish = degrade.wrong_language(TEXTS[0], np.random.default_rng(0))
    assert len(finnish) == len(TEXTS[0])
    other = degrade.wrong_language(finnish, np.random.default_rng(0))
    assert not set(finnish.lower().split()) & set(other.lower().split())
    assert degrade.wrong_language("", np.random.default_rng(0)) == ""


def test_auc_is_the_share_of_pairs() -> None:
    rng = random.Random(5)
    good, bad = ([float(rng.randint(0, 9)) for _ in range(n)] for n in (20, 30))
    pairs = np.mean([(g > b) + (g == b) / 2 for g in good for b in bad])
    assert auc(np.array(good), np.array(bad)) == pytest.approx(pairs)
    assert auc(np.array(good), np.array(bad)) == roc_auc_score([1] * 20 + [0] * 30, good + bad)


def test_a_row_without_a_score_is_the_worst() -> None:
    assert auc(np.array([-5.0]), np.array([math.nan])) == 1.0
    assert auc(np.array([math.nan]), np.array([-5.0])) == 0.0
