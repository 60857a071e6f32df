"""Balance: where an order is cut into shards, so that shards of costly rows stay small."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Cut(NamedTuple):
    """Shards of one order: shard k holds the ranks from `ends[k - 1]` (0 for the first) up to `ends[k]`."""

    ends: npt.NDArray[np.int64]  # (shards,)
    dedicated: npt.NDArray[np.bool_]  # (shards,) a pool of its own for complex rows, else the shared one

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """First rank of each shard, (shards,)."""
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])[: len(self.ends)]

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Rows of each shard, (shards,)."""
        return self.ends - self.starts


def cut_shards(complexity: npt.NDArray[np.float64], *, base_rows: int, threshold: float) -> Cut:
    """Returns the shards of an order whose rows have `complexity` (n,), by this greedy rule.

    From the first rank that is in no shard, the block of the next `base_rows` rows (fewer at the end)
    decides by its mean complexity: above `threshold`, the next ⌊base_rows / 4⌋ rows (at least one) are a
    dedicated shard; otherwise the next 2 · base_rows rows are a shared one. The last shard ends with the
    order. Each row is in exactly one shard, and the cut depends on nothing but the order.
    """
    ends: list[int] = []
    dedicated: list[bool] = []
    start, n = 0, len(complexity)
    while start < n:
        complex_ = bool(complexity[start : start + base_rows].mean() > threshold)
        start = min(n, start + (max(1, base_rows // 4) if complex_ else 2 * base_rows))
        ends.append(start)
        dedicated.append(complex_)
    return Cut(np.array(ends, np.int64), np.array(dedicated, np.bool_))
