"""Every order is a permutation; small ones by hand; `mixed` and the zones against slow truths."""

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.order import ordering
from scoring.order.config import MixedConfig, OrderConfig, SegmentConfig, TransitionConfig


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
NAMES = get_args(get_type_hints(OrderConfig)["order"])


def transitions(sections: int, ratio: float, layers: int) -> TransitionConfig:
    return TransitionConfig(sections=sections, transition_ratio=ratio, layers=layers)


def shares_of(low: float, high: float) -> SegmentConfig:
    return SegmentConfig(low_ratio=low, high_ratio=high)


zones = st.builds(transitions, st.integers(1, 9), st.floats(0, 1), st.integers(1, 400))
ends = st.builds(lambda low, high: shares_of(low / 20, high / 20), st.integers(0, 10), st.integers(0, 10))


def configured(**keys: Any) -> OrderConfig:
    """Returns the published constants, but for `keys`."""
    published = {
        "order": "mixed", "folding_layers": 3, "zigzag_layers": 5, "segment": shares_of(0.3, 0.3), "mixed": mix(),
        "stair": transitions(2, 0.225, 3), "saw": transitions(3, 0.075, 2), "jitter_window": 0, "seed": 7,
    }  # fmt: skip
    return OrderConfig(**{**published, **keys})


def is_permutation(order: np.ndarray, n: int) -> bool:
    return order.dtype == np.int64 and sorted(order.tolist()) == list(range(n))


@pytest.mark.parametrize("name", NAMES)
@given(n=sizes, window=st.integers(0, 9), seed=st.integers(0, 99), data=st.data())
def test_every_order_that_params_name_is_a_permutation_that_the_seed_decides(
    name: str, n: int, window: int, seed: int, data: st.DataObject
) -> None:
    config = configured(order=name, jitter_window=window, seed=seed)
    unscored = data.draw(st.integers(0, n))
    order = ordering.ordered(n, config, unscored=unscored)
    assert is_permutation(order, n)
    assert order.tolist() == ordering.ordered(n, config, unscored=unscored).tolist()


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
        (lambda: ordering.zigzag(9, layers=3), [0, 3, 6, 7, 4, 1, 2, 5, 8]),
        (lambda: ordering.zigzag(12, layers=5), [0, 5, 10, 11, 6, 1, 2, 7, 8, 3, 4, 9]),
        (lambda: ordering.zigzag(2, layers=5), [0, 1]),
        (lambda: ordering.zigzag(0, layers=5), []),
        # the border lies at 5, the zone holds 2.25 → 2 rows on either side: 3 … 6, in three passes
        (lambda: ordering.stair(10, transitions(2, 0.225, 3)), [0, 1, 2, 3, 6, 4, 5, 7, 8, 9]),
        # borders at 4 and 8, one row on either side: 3 4 and 7 8, up and down
        (lambda: ordering.saw(12, transitions(3, 0.075, 2)), list(range(12))),
        # borders at 4 and 8, two rows on either side: 2 … 5 and 6 … 9
        (lambda: ordering.saw(12, transitions(3, 0.15, 2)), [0, 1, 2, 4, 5, 3, 6, 8, 9, 7, 10, 11]),
        # zones that meet: 0 … 8 around 4, then what is left around 8
        (lambda: ordering.stair(12, transitions(3, 0.4, 2)), [0, 2, 4, 6, 8, 1, 3, 5, 7, 9, 11, 10]),
        (lambda: ordering.stair(7, transitions(1, 0.225, 3)), [0, 1, 2, 3, 4, 5, 6]),
        (lambda: ordering.saw(1, transitions(9, 1.0, 2)), [0]),
        (lambda: ordering.stair(0, transitions(2, 0.225, 3)), []),
        (lambda: ordering.segment(0, shares_of(0.3, 0.3), seed=1), []),
        (lambda: ordering.segment(1, shares_of(0.3, 0.3), seed=1), [0]),
        (lambda: ordering.jitter(4, window=1, seed=3), [0, 1, 2, 3]),
        (lambda: ordering.jitter(0, window=8, seed=3), []),
        (lambda: ordering.seats(6, unscored=2, base=3), [0, 4, 5, 1, 2, 3]),
        (lambda: ordering.seats(4, unscored=3, base=1), [1, 2, 3, 0]),
        (lambda: ordering.seats(4, unscored=0, base=2), [0, 1, 2, 3]),
    ],
)
def test_orders_by_hand(order: Callable[[], np.ndarray], wanted: list[int]) -> None:
    assert order().tolist() == wanted


def folded(rows: list[int], layers: int, *, turning: bool) -> list[int]:
    """Deals the rows out to `layers` piles, one by one, and turns every second pile round."""
    piles: list[list[int]] = [[] for _ in range(layers)]
    for k, row in enumerate(rows):
        piles[k % layers].append(row)
    return [row for k, pile in enumerate(piles) for row in (pile[::-1] if turning and k % 2 else pile)]


def slow_zones(n: int, zone: TransitionConfig, *, turning: bool) -> list[int]:
    """Gives each row to the first border that is near enough, and folds what a border has been given."""
    width = int(np.floor(zone.transition_ratio * n + 0.5))
    borders = [int(Fraction(n * k, zone.sections) + Fraction(1, 2)) for k in range(1, zone.sections)]
    owners = [next((k for k, b in enumerate(borders) if b - width <= row < b + width), None) for row in range(n)]
    order: list[int] = []
    for row in range(n):
        if owners[row] is None:
            order.append(row)
        elif row == 0 or owners[row - 1] != owners[row]:
            order += folded([r for r in range(n) if owners[r] == owners[row]], zone.layers, turning=turning)
    return order


@given(sizes, zones)
def test_transition_zones_are_those_of_a_slow_truth(n: int, zone: TransitionConfig) -> None:
    stair, saw = ordering.stair(n, zone), ordering.saw(n, zone)
    assert is_permutation(stair, n)
    assert is_permutation(saw, n)
    assert stair.tolist() == slow_zones(n, zone, turning=False)
    assert saw.tolist() == slow_zones(n, zone, turning=True)


@given(sizes, st.integers(1, 320))
def test_folding_and_zigzag_deal_rows_out_to_piles(n: int, layers: int) -> None:
    folding, zigzag = ordering.folding(n, layers=layers), ordering.zigzag(n, layers=layers)
    assert is_permutation(folding, n)
    assert is_permutation(zigzag, n)
    assert folding.tolist() == folded(list(range(n)), layers, turning=False)
    assert zigzag.tolist() == folded(list(range(n)), layers, turning=True)


@given(sizes, ends, st.integers(0, 99))
def test_segment_keeps_the_lowest_for_the_beginning_and_the_highest_for_the_end(
    n: int, share: SegmentConfig, seed: int
) -> None:
    low, high = (int(np.floor(ratio * n + 0.5)) for ratio in (share.low_ratio, share.high_ratio))
    high = min(high, n - low)
    order = ordering.segment(n, share, seed=seed)
    assert is_permutation(order, n)
    assert sorted(order[:low]) == list(range(low))
    assert sorted(order[n - high :]) == list(range(n - high, n))


def test_segment_and_jitter_shuffle_by_their_seed() -> None:
    for make in (
        lambda seed: ordering.segment(300, shares_of(0.3, 0.3), seed=seed),
        lambda seed: ordering.jitter(300, window=10, seed=seed),
    ):
        assert make(1).tolist() == make(1).tolist() != make(2).tolist()
        assert make(1).tolist() != list(range(300))


@given(sizes, st.integers(1, 40), st.integers(0, 99))
def test_jitter_leaves_every_row_in_its_window(n: int, window: int, seed: int) -> None:
    order = ordering.jitter(n, window=window, seed=seed)
    assert is_permutation(order, n)
    assert (order // window == np.arange(n) // window).all()


def test_jitter_is_the_last_step_of_any_order() -> None:
    plain, jittered = (ordering.ordered(100, configured(order="folding", jitter_window=w)) for w in (0, 10))
    assert jittered.tolist() != plain.tolist()
    for start in range(0, 100, 10):
        assert set(jittered[start : start + 10]) == set(plain[start : start + 10])


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


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: shares_of(0.6, 0.5), "low_ratio and high_ratio"),
        (lambda: shares_of(-0.1, 0.5), "at least 0"),
        (lambda: transitions(0, 0.2, 3), "sections"),
        (lambda: transitions(2, 1.2, 3), "transition_ratio"),
        (lambda: transitions(2, float("nan"), 3), "transition_ratio"),
        (lambda: transitions(2, 0.2, 0), "layers"),
        (lambda: configured(folding_layers=0), "folding_layers"),
        (lambda: configured(zigzag_layers=0), "zigzag_layers"),
        (lambda: configured(jitter_window=-1), "jitter_window"),
        (lambda: configured(seed=-1), "seed"),
    ],
)
def test_orders_that_make_no_sense_are_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
