"""`gradsift ahp`: the weights of `static.ahp`, whether its judgements are consistent, and a small fix if not.

Reads: params; unlike every other command, inconsistent judgements too.
Writes: nothing; a proposed matrix is printed as YAML for `static.ahp`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipelines.core import params
from scoring.core.errors import ConfigError
from scoring.static import ahp
from scoring.static.dimensions import DIMENSIONS
from transforms.static.config import StaticConfig

Floats = npt.NDArray[np.float64]
Entries = Mapping[tuple[int, int], float]

_RATIO = "max_consistency_ratio"
_ANY = 1e9  # a consistency ratio that no matrix has
_FARTHEST = 9.0  # Saaty's scale ends here
_BAR = 40  # characters
_SHOWN = 5


class Judgements(NamedTuple):
    """The matrix of `static.ahp`, consistent or not, and the maximum consistency ratio."""

    matrix: Floats  # (12, 12)
    max_ratio: float


def read(path: Path) -> Judgements:
    """Returns the judgements in params file `path`.

    Raises:
      ConfigError: the section is invalid for any reason other than inconsistency.
    """
    found = params.read(path)
    section = found.tree.get("static")
    if not isinstance(section, dict) or not isinstance(section.get(_RATIO), int | float):
        found.section("static", StaticConfig)  # says what is wrong
        section = {}
    loose = params.Params(path, {"static": {**section, _RATIO: _ANY}})
    return Judgements(loose.section("static", StaticConfig).matrix, float(section[_RATIO]))


def report(found: Judgements) -> Iterator[str]:
    """Yields the weights, λmax and CR, and the least consistent judgements."""
    got = ahp.priorities(found.matrix)
    width = max(map(len, DIMENSIONS))
    for k in np.argsort(-got.weights, kind="stable"):
        bar = "█" * max(1, round(_BAR * got.weights[k] / got.weights.max()))
        yield f"{DIMENSIONS[k]:<{width}}  {got.weights[k]:.4f}  {bar}"
    yield ""
    yield f"λmax {got.lambda_max:.3f}, CR {got.consistency_ratio:.4f}, limit {found.max_ratio:g} ({_RATIO})"
    yield "the least consistent judgements:"
    for j in ahp.most_inconsistent(found.matrix, got.weights, _SHOWN):
        pair = f"{DIMENSIONS[j.row]} against {DIMENSIONS[j.column]}"
        yield f"  {pair}: {j.value:.4g}, a consistent value is {j.consistent:.3g}"


def as_yaml(matrix: Floats, changed: Entries | None = None) -> Iterator[str]:
    """Yields the lines of `static.ahp`, with a comment on the previous values of `changed` entries."""
    width = max(map(len, DIMENSIONS)) + 1
    yield "  ahp:"
    for i, name in enumerate(DIMENSIONS[:-1]):
        row = ", ".join(f"{v:.4g}" for v in matrix[i, i + 1 :])
        was = [f"{DIMENSIONS[j]} was {old:.4g}" for (k, j), old in (changed or {}).items() if k == i]
        yield f"    {name + ':':<{width}} [{row}]" + (f"  # {', '.join(was)}" if was else "")


def from_weights(given: Sequence[str]) -> Floats:
    """Returns the (12, 12) matrix of importances such as `length=3`; dimensions not given have 1.

    Raises:
      ConfigError: a dimension is unknown, an importance is not positive, or two differ by more than a factor of 9.
    """
    weights = dict.fromkeys(DIMENSIONS, 1.0)
    for item in given:
        name, _, value = item.partition("=")
        if name not in weights:
            raise ConfigError(f"unknown dimension {name!r}", where=item, remedy=f"use {', '.join(DIMENSIONS)}")
        weights[name] = _importance(value, item)
    values = np.array(list(weights.values()))
    if values.max() > _FARTHEST * values.min() * (1 + 1e-9):
        raise ConfigError(
            f"importances of {values.min():g} and {values.max():g} are more than {_FARTHEST:g} times apart",
            where=" ".join(given),
            remedy="keep them within a factor of 9; dimensions not given count as 1",
        )
    return np.asarray(values[:, None] / values[None, :])


def _importance(value: str, item: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found > 0):
        raise ConfigError(
            f"importance {value!r} is not a positive number",
            where=item,
            remedy="give a number above 0, such as length=3",
        )
    return found


def check(path: Path) -> None:
    """Prints the report on params file `path`, and a fix if the judgements are inconsistent.

    Raises:
      ConfigError: they do.
    """
    found = read(path)
    print("\n".join(report(found)))
    changes = ahp.repair(found.matrix, max_ratio=found.max_ratio)
    if changes == {}:
        print("consistent")
        return
    if changes is not None:
        print("\n".join(_fix(found, changes)))
    raise ConfigError(
        f"the pairwise judgements are inconsistent: the consistency ratio is above {found.max_ratio:g}",
        where=f"{path}, static.ahp",
        remedy=f"raise {_RATIO}: changing a few entries is not enough"
        if changes is None
        else "replace static.ahp with the proposal, or fix the entries above by hand",
    )


def _fix(found: Judgements, changes: Entries) -> Iterator[str]:
    repaired = ahp.with_entries(found.matrix, changes)
    ratio = ahp.priorities(repaired).consistency_ratio
    yield f"\nproposal: {len(changes)} entries changed, CR {ratio:.4f}; in params.yaml, under static:"
    yield from as_yaml(repaired, {entry: found.matrix[entry] for entry in changes})


def main(path: Path, weights: Sequence[str]) -> None:
    """Checks `static.ahp` of params file `path`; with `weights`, prints a consistent matrix of them instead."""
    if weights:
        print("\n".join(as_yaml(from_weights(weights))))
    else:
        check(path)
