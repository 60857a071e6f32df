"""Every order is a permutation; small ones by hand; `mixed` against a slow draw."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring import ordering
from scoring.ordering import MixedConfig


def mix(rest: str = "spread", draw: tuple[int, int, int] = (1, 2, 1), shares: tuple[float, ...] = (0.4, 0.4, 0.2)):
    base, reinforcement, challenge = shares
    return MixedConfig(base=base, reinforcement=reinforcement, challenge=challenge, draw=draw, rest=rest)


draws = st.tuples(*[st.integers(1, 5)] * 3)
shares = st.tuples(st.integers(0, 10), st.integers(0, 10), st.integers(0, 10)).filter(any)
mixes = st.builds(
    lambda rest, draw, s: mix(rest, draw, tuple(x / sum(s) for x in s)),
    st.sampled_from(["spread", "last"]),
    draws,
    shares,
)
sizes = st.integers(0, 300)


def is_permutation(order: np.ndarray, n: int) -> bool:
    return order.dtype == np.int64 and sorted(order.tolist()) == list(range(n))


@given(sizes, st.integers(1, 9), st.integers(0, 99))
def test_the_plain_orders_are_permutations(n: int, layers: int, seed: int) -> None:
    for order in (ordering.sorting(n), ordering.folding(n, layers=layers), ordering.shuffle(n, seed=seed)):
        assert is_permutation(order, n)


@given(sizes, mixes, st.integers(0, 99), st.data())
def test_mixed_is_a_permutation(n: int, mixed: MixedConfig, seed: int, data: st.DataObject) -> None:
    unscored = data.draw(st.integers(0, n))
    assert is_permutation(ordering.mixed(n, mixed, seed=seed, unscored=unscored), n)


@given(sizes, sizes, st.data())
def test_seats_are_a_permutation_with_the_unscored_last_of_base(n: int, base: int, data: st.DataObject) -> None:
    unscored = data.draw(st.integers(0, n))
    found = ordering.seats(n, unscored=unscored, base=base)
    assert is_permutation(found, n)
    places = np.flatnonzero(found >= n - unscored)
    assert places.tolist() == list(range(places[0], places[0] + unscored)) if unscored else True
    if unscored <= base <= n and unscored:
        assert places[-1] == base - 1


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        (lambda: ordering.sorting(4), [0, 1, 2, 3]),
        (lambda: ordering.folding(8, layers=3), [0, 3, 6, 1, 4, 7, 2, 5]),
        (lambda: ordering.folding(2, layers=5), [0, 1]),
        (lambda: ordering.folding(0, layers=3), []),
        (lambda: ordering.seats(6, unscored=2, base=3), [0, 4, 5, 1, 2, 3]),
        (lambda: ordering.seats(4, unscored=3, base=1), [1, 2, 3, 0]),
        (lambda: ordering.seats(4, unscored=0, base=2), [0, 1, 2, 3]),
    ],
)
def test_orders_by_hand(order: Callable[[], np.ndarray], wanted: list[int]) -> None:
    assert order().tolist() == wanted


def bands(order: np.ndarray, mixed: MixedConfig) -> str:
    """Returns the stratum of each rank as a letter."""
    names = np.repeat(["b", "r", "c"], ordering.strata(len(order), mixed))
    return "".join(names[order])


@pytest.mark.parametrize(
    ("n", "rest", "wanted"),
    [
        (10, "last", "brrcbrrcbb"),
        (10, "spread", "brbrcbrbrc"),  # the two base rows left are 3rd and 8th: ⌊(2k + 1)·10 / 4⌋ = 2, 7
        (20, "last", "brrcbrrcbrrcbrrcbbbb"),
        (1, "spread", "r"),
        (2, "last", "br"),
        (0, "spread", ""),
    ],
)
def test_mixed_draws_by_hand(n: int, rest: str, wanted: str) -> None:
    assert bands(ordering.mixed(n, mix(rest), seed=3), mix(rest)) == wanted


def slow_pattern(n: int, mixed: MixedConfig) -> str:
    """Draws row by row from three piles; spreads the rest one by one."""
    left = dict(zip("brc", ordering.strata(n, mixed), strict=True))
    drawn, rest, full = [], [], True
    while any(left.values()):
        full = full and all(left[name] >= k for name, k in zip("brc", mixed.draw, strict=True))
        for name, k in zip("brc", mixed.draw, strict=True):
            take = min(k, left[name])
            left[name] -= take
            (drawn if full else rest).extend(name * take)
    if mixed.rest == "last":
        return "".join(drawn + rest)
    places = {(2 * k + 1) * n // (2 * len(rest)) for k in range(len(rest))}
    return "".join(rest.pop(0) if place in places else drawn.pop(0) for place in range(n))


@given(sizes, mixes)
def test_mixed_draws_as_the_slow_one_does(n: int, mixed: MixedConfig) -> None:
    assert bands(ordering.mixed(n, mixed, seed=1), mixed) == slow_pattern(n, mixed)


@given(st.integers(0, 10_000), shares)
def test_strata_add_up_and_are_within_one_row_of_their_shares(n: int, parts: tuple[int, ...]) -> None:
    wanted = [p / sum(parts) for p in parts]
    found = ordering.strata(n, mix(shares=tuple(wanted)))
    assert sum(found) == n
    assert all(abs(f - w * n) <= 1 for f, w in zip(found, wanted, strict=True))


@pytest.mark.parametrize("rest", ["spread", "last"])
def test_rows_without_a_score_are_the_last_base_rows(rest: str) -> None:
    order = ordering.mixed(100, mix(rest), seed=5, unscored=6).tolist()
    base = [row for row in order if row < 40]
    assert sorted(base[-6:]) == list(range(34, 40))
    assert base[:34] != sorted(base[:34])


def test_the_seed_decides_and_nothing_else() -> None:
    one, same, other = (ordering.mixed(500, mix(), seed=seed) for seed in (7, 7, 8))
    assert one.tolist() == same.tolist() != other.tolist()
    assert ordering.shuffle(50, seed=1).tolist() == ordering.shuffle(50, seed=1).tolist()


def test_ten_million_rows_take_seconds() -> None:
    started = time.process_time()
    order = ordering.mixed(10_000_000, mix(), seed=7)
    assert time.process_time() - started < 10
    assert int(order.sum()) == 10_000_000 * 9_999_999 // 2


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"shares": (0.4, 0.4, 0.3)}, "add up to 1"),
        ({"shares": (1.4, -0.4, 0.0)}, "at least 0"),
        ({"draw": (1, 0, 1)}, "draw"),
    ],
)
def test_a_mix_that_makes_no_sense_is_refused(keys: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mix(**keys)
