"""Orders of training: permutations of rows that stand sorted ascending by score, easy to hard.

Every order is an (n,) int64 permutation of range(n): entry r is the place, in the ascending sequence,
of the row that is trained on at rank r. A row without a score stands last of the base stratum: `seats`
puts it there, and `mixed` draws it after every other base row.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from scoring.config import config

Permutation = npt.NDArray[np.int64]


@config
class MixedConfig:
    """How `mixed` draws: the strata's shares of the rows, lowest scores first, and the rows drawn a turn."""

    base: float
    reinforcement: float
    challenge: float
    draw: tuple[int, int, int]  # rows a turn, of each stratum in the order above
    rest: Literal["spread", "last"]  # where the rows go that no full turn has drawn

    def __post_init__(self) -> None:
        shares = (self.base, self.reinforcement, self.challenge)
        if min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise ValueError(f"base, reinforcement and challenge must be at least 0 and add up to 1, are {shares}")
        if min(self.draw) < 1:
            raise ValueError(f"draw must hold numbers of at least 1, is {self.draw}")


def shuffle(n: int, *, seed: int) -> Permutation:
    """Returns a seeded random order."""
    return np.random.default_rng(seed).permutation(n)


def sorting(n: int) -> Permutation:
    """Returns the ascending order, easy to hard."""
    return np.arange(n, dtype=np.int64)


def folding(n: int, *, layers: int) -> Permutation:
    """Returns s[0::L], s[1::L], … one after another: L passes from easy to hard (arXiv 2605.30334)."""
    return np.concatenate([np.arange(layer, n, layers, dtype=np.int64) for layer in range(layers)])


def strata(n: int, mix: MixedConfig) -> tuple[int, int, int]:
    """Returns how many of `n` rows are base, reinforcement and challenge; bounds are rounded half up."""
    first = int(np.floor(mix.base * n + 0.5))
    second = max(first, min(n, int(np.floor((mix.base + mix.reinforcement) * n + 0.5))))
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

    Rows without a score stand behind the scored base rows, in front of all others: nothing is known
    against them, so they are neither the easiest rows nor a challenge. More of them than `base` come first.
    """
    scored, before = n - unscored, max(0, min(base, n) - unscored)
    rows = np.arange(n, dtype=np.int64)
    return np.concatenate([rows[:before], rows[scored:], rows[before:scored]])
