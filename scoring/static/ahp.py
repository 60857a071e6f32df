"""The analytic hierarchy process (Saaty 1980): pairwise judgements in, weights and their consistency out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.core.errors import ConfigError

Floats = npt.NDArray[np.float64]

# Mean (λmax − n)/(n − 1) of random reciprocal matrices of order 1 … 15.
RANDOM_INDEX = (0.0, 0.0, 0.58, 0.90, 1.12, 1.24, 1.32, 1.41, 1.45, 1.49, 1.52, 1.54, 1.56, 1.58, 1.59)

_HALVES = tuple(k / 2 for k in range(2, 19))  # Saaty's 1 … 9, and between them
_SNAPS = (*_HALVES, *(round(1 / v, 3) for v in _HALVES[1:]))
_TRIED = 8  # of the most inconsistent entries, at each step of a fix


class Priorities(NamedTuple):
    """Weights that sum to 1, the principal eigenvalue, and the consistency ratio (0 is perfect)."""

    weights: Floats  # (n,)
    lambda_max: float
    consistency_ratio: float


class Judgement(NamedTuple):
    """One entry of the upper triangle, and the value that the weights would give it."""

    row: int
    column: int
    value: float
    consistent: float


def reciprocal(rows: Sequence[Sequence[float]]) -> Floats:
    """Returns the (n, n) reciprocal matrix of an upper triangle of n − 1 rows: a_ji = 1/a_ij, a_ii = 1."""
    size = len(rows) + 1
    matrix = np.eye(size)
    for i, row in enumerate(rows):
        for j, value in enumerate(row, start=i + 1):
            matrix[i, j], matrix[j, i] = value, 1.0 / value
    return matrix


def priorities(matrix: Floats) -> Priorities:
    """Returns the principal eigenvector of a positive (n, n) reciprocal matrix, n ≤ 15, and its consistency.

    CR = ((λmax − n)/(n − 1))/RI(n); it is 0 for n ≤ 2, where no judgement can contradict another.
    """
    size = len(matrix)
    values, vectors = np.linalg.eig(matrix)
    first = int(np.argmax(values.real))  # Perron: the largest eigenvalue is real, its vector of one sign
    weights = np.abs(vectors[:, first].real)
    lambda_max = float(values[first].real)
    index = max(0.0, lambda_max - size) / max(1, size - 1)
    ratio = index / RANDOM_INDEX[size - 1] if size > 2 else 0.0
    return Priorities(weights / weights.sum(), lambda_max, ratio)


def most_inconsistent(matrix: Floats, weights: Floats, count: int = 3) -> list[Judgement]:
    """Returns the `count` entries above the diagonal with the largest |log(a_ij · w_j / w_i)|."""
    rows, columns = np.triu_indices(len(matrix), k=1)
    wanted = weights[rows] / weights[columns]
    error = np.abs(np.log(matrix[rows, columns] / wanted))
    worst = np.argsort(-error, kind="stable")[:count]
    return [
        Judgement(int(rows[k]), int(columns[k]), float(matrix[rows[k], columns[k]]), float(wanted[k])) for k in worst
    ]


def require_consistent(matrix: Floats, names: Sequence[str], *, max_ratio: float, where: str) -> Priorities:
    """Returns the priorities of `matrix`.

    Raises:
      ConfigError: CR is above `max_ratio`; it names the three entries that contradict the others most.
    """
    found = priorities(matrix)
    if found.consistency_ratio > max_ratio:
        worst = most_inconsistent(matrix, found.weights)
        raise ConfigError(
            f"the pairwise judgements are inconsistent: consistency ratio {found.consistency_ratio:.3f}, "
            f"limit {max_ratio:g}",
            where=where,
            remedy="fix these first: " + "; ".join(_advice(j, names) for j in worst),
        )
    return found


def _advice(judgement: Judgement, names: Sequence[object]) -> str:
    pair = f"{names[judgement.row]} against {names[judgement.column]}"
    return f"{pair} is {judgement.value:.4g}, a consistent value is {judgement.consistent:.3g}"


def implied(matrix: Floats, row: int, column: int) -> float:
    """Returns what the other judgements of (n, n), n ≥ 3, say of an entry: the geometric mean of a_ik·a_kj over k."""
    others = np.delete(np.arange(len(matrix)), [row, column])
    return float(np.exp(np.log(matrix[row, others] * matrix[others, column]).mean()))


def snapped(value: float) -> float:
    """Returns the judgement nearest to `value` by ratio: 1, 1.5, 2 … 9 or one over it, to three decimals."""
    return min(_SNAPS, key=lambda v: abs(np.log(v / value)))


def with_entries(matrix: Floats, changes: Mapping[tuple[int, int], float]) -> Floats:
    """Returns `matrix` (n, n) with the entries of `changes`, above the diagonal, and their reciprocals in place."""
    changed = matrix.copy()
    for (i, j), value in changes.items():
        changed[i, j], changed[j, i] = value, 1.0 / value
    return changed


def repair(matrix: Floats, *, max_ratio: float) -> dict[tuple[int, int], float] | None:
    """Returns few entries (row, column) → value that bring CR to `max_ratio`; None where none of them can.

    Greedy: of the most inconsistent entries, the one that lowers CR most at the value that the others imply, snapped to
    the scale; at the end, changes that turned out not to be needed are taken back.
    """
    changes: dict[tuple[int, int], float] = {}
    while not _is_within(with_entries(matrix, changes), max_ratio):
        step = _best_change(with_entries(matrix, changes), changes)
        if step is None:
            return None
        changes |= step
    for entry in list(changes):
        fewer = {k: v for k, v in changes.items() if k != entry}
        if _is_within(with_entries(matrix, fewer), max_ratio):
            changes = fewer
    return changes


def _is_within(matrix: Floats, max_ratio: float) -> bool:
    return priorities(matrix).consistency_ratio <= max_ratio


def _best_change(matrix: Floats, changed: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float] | None:
    """Returns the one change of an entry not in `changed` that lowers CR most; None if none lowers it."""
    now = priorities(matrix)
    worst = most_inconsistent(matrix, now.weights, count=_TRIED + len(changed))
    steps = [
        {(j.row, j.column): snapped(implied(matrix, j.row, j.column))}
        for j in worst
        if (j.row, j.column) not in changed
    ]
    ratios = [priorities(with_entries(matrix, s)).consistency_ratio for s in steps]
    best = min(range(len(steps)), key=ratios.__getitem__, default=None)
    return None if best is None or ratios[best] >= now.consistency_ratio else steps[best]
