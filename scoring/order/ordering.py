"""Training orders: permutations of rows sorted ascending by score, easy to hard.

`zigzag`, `segment`, `stair`, `saw` and `jitter` are those of arXiv 2605.30334, `folding` that of
arXiv 2506.21545. Every order is an (n,) int64 permutation of range(n): entry r is the place, in the ascending sequence,
of the row that is trained on at rank r. A row without a score is last in the base stratum: `seats`
puts it there, and `mixed` draws it after every other base row.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from scoring.core.selection import share
from scoring.order.config import MixedConfig, OrderConfig, SegmentConfig, TransitionConfig

Permutation = npt.NDArray[np.int64]


def ordered(n: int, config: OrderConfig, *, unscored: int = 0) -> Permutation:
    """Returns the order that `config` names; `unscored` rows have no score, which matters to `mixed` alone."""
    orders: dict[str, Callable[[], Permutation]] = {
        "mixed": lambda: mixed(n, config.mixed, seed=config.seed, unscored=unscored),
        "sorting": lambda: sorting(n),
        "folding": lambda: folding(n, layers=config.folding_layers),
        "zigzag": lambda: zigzag(n, layers=config.zigzag_layers),
        "segment": lambda: segment(n, config.segment, seed=config.seed),
        "stair": lambda: stair(n, config.stair),
        "saw": lambda: saw(n, config.saw),
        "shuffle": lambda: shuffle(n, seed=config.seed),
    }
    order = orders[config.order]()
    return order[jitter(n, window=config.jitter_window, seed=config.seed)] if config.jitter_window > 1 else order


def shuffle(n: int, *, seed: int) -> Permutation:
    """Returns a seeded random order."""
    return np.random.default_rng(seed).permutation(n)


def sorting(n: int) -> Permutation:
    """Returns the ascending order, easy to hard."""
    return np.arange(n, dtype=np.int64)


def folding(n: int, *, layers: int) -> Permutation:
    """Returns s[0::L], s[1::L], … one after another: L passes from easy to hard."""
    return np.concatenate([np.arange(layer, n, layers, dtype=np.int64) for layer in range(_filled(n, layers))])


def zigzag(n: int, *, layers: int) -> Permutation:
    """Returns `folding` with every second layer reversed: up, down, up, without a jump between two passes."""
    found = [np.arange(layer, n, layers, dtype=np.int64) for layer in range(_filled(n, layers))]
    return np.concatenate([rows[::-1] if layer % 2 else rows for layer, rows in enumerate(found)])


def _filled(n: int, layers: int) -> int:
    """Returns how many of the layers have rows, but at least one."""
    return max(1, min(n, layers))


def segment(n: int, ends: SegmentConfig, *, seed: int) -> Permutation:
    """Returns the lowest share, the middle, the highest share, each shuffled by the seed."""
    low = share(n, ends.low_ratio)
    high = max(low, n - share(n, ends.high_ratio))
    rng = np.random.default_rng(seed)
    return np.concatenate([a + rng.permutation(b - a) for a, b in ((0, low), (low, high), (high, n))])


def stair(n: int, zones: TransitionConfig) -> Permutation:
    """Returns the ascending order, folded inside each transition zone: STR."""
    return _in_zones(n, zones, folding)


def saw(n: int, zones: TransitionConfig) -> Permutation:
    """Returns the ascending order, in zigzag inside each transition zone: SAW."""
    return _in_zones(n, zones, zigzag)


def _in_zones(n: int, zones: TransitionConfig, fold: Callable[..., Permutation]) -> Permutation:
    """Returns the ascending order with `fold` inside ± ratio · n around each border of equal sections.

    Borders and widths are rounded half up. Where zones meet, the later one begins behind the earlier.
    """
    order, before, width = sorting(n), 0, share(n, zones.transition_ratio)
    for k in range(1, zones.sections):
        border = (2 * n * k + zones.sections) // (2 * zones.sections)
        start, end = max(before, border - width), min(n, border + width)
        order[start:end] = start + fold(end - start, layers=zones.layers)
        before = end
    return order


def jitter(n: int, *, window: int, seed: int) -> Permutation:
    """Returns consecutive windows of `window` rows, each shuffled by the seed: a global trend, locally diverse.

    As the last step of another order it is an index into that: `order[jitter(n, …)]`.
    """
    return np.lexsort((np.random.default_rng(seed).random(n), np.arange(n) // window))


def strata(n: int, mix: MixedConfig) -> tuple[int, int, int]:
    """Returns how many of `n` rows are base, reinforcement and challenge; bounds are rounded half up."""
    first = share(n, mix.base)
    second = max(first, min(n, share(n, mix.base + mix.reinforcement)))
    return first, second - first, n - second


def mixed(n: int, mix: MixedConfig, *, seed: int, unscored: int = 0) -> Permutation:
    """Returns base, reinforcement and challenge rows drawn in turn, shuffled inside each stratum.

    A turn draws `mix.draw` rows. The strata do not run out together (40/40/20 drawn 1:2:1 leaves half of
    the base rows), so the rows behind the last full turn are spread evenly over the order, or go last.
    """
    sizes = strata(n, mix)
    rng = np.random.default_rng(seed)
    held = min(unscored, sizes[0])
    starts = (0, sizes[0] - held, sizes[0], sizes[0] + sizes[1])
    base, tail, reinforcement, challenge = (
        start + rng.permutation(size) for start, size in zip(starts, (sizes[0] - held, held, *sizes[1:]), strict=True)
    )
    drawn = _pattern(sizes, mix)
    order = np.empty(n, np.int64)
    for stratum, rows in enumerate((np.concatenate([base, tail]), reinforcement, challenge)):
        order[drawn == stratum] = rows
    return order


def _pattern(sizes: tuple[int, int, int], mix: MixedConfig) -> npt.NDArray[np.int8]:
    """Returns (n,) int8: the stratum that each rank is drawn from."""
    turns = np.concatenate([np.arange(size) // draw for size, draw in zip(sizes, mix.draw, strict=True)])
    drawn = np.repeat(np.arange(3, dtype=np.int8), sizes)[np.argsort(turns, kind="stable")]
    if mix.rest == "last":
        return drawn
    full = min(size // draw for size, draw in zip(sizes, mix.draw, strict=True)) * sum(mix.draw)
    return _spread(drawn[:full], drawn[full:])


def _spread(drawn: npt.NDArray[np.int8], rest: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Returns both merged: item k of the r of `rest` at place ⌊(2k + 1)·n / 2r⌋, the middle of its n/r places."""
    n, r = len(drawn) + len(rest), len(rest)
    is_rest = np.zeros(n, np.bool_)
    is_rest[(2 * np.arange(r) + 1) * n // max(1, 2 * r)] = True
    merged = np.empty(n, np.int8)
    merged[is_rest], merged[~is_rest] = rest, drawn
    return merged


def seats(n: int, *, unscored: int, base: int) -> Permutation:
    """Returns the ascending sequence of `n` rows whose last `unscored` have no score and whose lowest `base` are base.

    Rows without a score come after the scored base rows, before all others: nothing is known
    against them, so they are neither the easiest rows nor a challenge. More of them than `base` come first.
    """
    scored, before = n - unscored, max(0, min(base, n) - unscored)
    rows = np.arange(n, dtype=np.int64)
    return np.concatenate([rows[:before], rows[scored:], rows[before:scored]])
