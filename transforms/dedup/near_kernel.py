"""Kernels over rows that share a band: which are connected, and which of them duplicate a better row."""

from scoring.core.arrays import Array
from scoring.core.jit import kernel


@kernel
def join(labels: Array, members: Array, parents: Array) -> None:
    """Joins in `parents` (n,), a forest over rows, all `members` that follow each other with one label."""
    for k in range(1, labels.shape[0]):
        if labels[k] == labels[k - 1]:
            one, other = root(parents, members[k]), root(parents, members[k - 1])
            parents[max(one, other)] = min(one, other)


@kernel
def roots(parents: Array) -> None:
    """Replaces each row's parent by the least row of its tree."""
    for k in range(parents.shape[0]):
        parents[k] = root(parents, k)


@kernel
def root(parents: Array, k: int) -> int:
    """Returns the least row of the tree of row `k`, and halves the way to it."""
    while parents[k] != k:
        parents[k] = parents[parents[k]]
        k = parents[k]
    return k


@kernel
def choose(
    groups: Array, ends: Array, leaders: Array, bounds: Array, led: Array, seen: Array, shingles: Array, sets: Array,
    least: float, matched: Array, similarity: Array,
) -> int:  # fmt: skip
    """Judges rows best first: each against the survivors before it that share a group (a band) with it.

    Row k has the groups `groups[ends[k]:ends[k + 1]]` and the sorted set `shingles[sets[k]:sets[k + 1]]`. The most
    similar survivor, if at least `least`, goes to `matched` and `similarity`; of equals, the best. Otherwise
    `matched` is -1: the row survives, and leads its groups. The leaders of group g are the first `led[g]` of
    `leaders[bounds[g]:bounds[g + 1]]`; where that is full, a survivor leads no more. Returns how often that was.
    """
    full = 0
    for row in range(matched.shape[0]):
        matched[row], seen[row] = -1, -1
        for at in range(ends[row], ends[row + 1]):
            first = bounds[groups[at]]
            for k in range(first, first + led[groups[at]]):
                leader = leaders[k]
                if seen[leader] == row:
                    continue
                seen[leader] = row
                found = jaccard(shingles, sets, leader, row, max(least, similarity[row]))
                better = found > similarity[row] or (found == similarity[row] and leader < matched[row])
                if found >= least and better:
                    matched[row], similarity[row] = leader, found
        if matched[row] < 0:
            full += _lead(row, groups, ends, leaders, bounds, led)
    return full


@kernel
def _lead(row: int, groups: Array, ends: Array, leaders: Array, bounds: Array, led: Array) -> int:
    full = 0
    for at in range(ends[row], ends[row + 1]):
        group = groups[at]
        if bounds[group] + led[group] < bounds[group + 1]:
            leaders[bounds[group] + led[group]] = row
            led[group] += 1
        else:
            full += 1
    return full


@kernel
def jaccard(shingles: Array, sets: Array, one: int, other: int, least: float) -> float:
    """Returns |A ∩ B| / |A ∪ B| of two rows' sorted sets; 0 as soon as it cannot reach `least`."""
    a, b, a_end, b_end = sets[one], sets[other], sets[one + 1], sets[other + 1]
    sizes, shared = (a_end - a) + (b_end - b), 0
    while a < a_end and b < b_end:
        best = shared + min(a_end - a, b_end - b)
        if best + 1e-9 < least * (sizes - best):
            return 0.0
        stop = min(a + 32, a_end)
        while a < stop and b < b_end:
            x, y = shingles[a], shingles[b]
            shared += x == y
            a += x <= y
            b += y <= x
    return shared / (sizes - shared) if sizes else 0.0
