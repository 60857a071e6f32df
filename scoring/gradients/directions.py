"""What gradients are compared with: the gradient of a target set at each checkpoint, and the costates.

    J(θ) = mean loss of the target texts − contrast · mean loss of degraded copies of them

The target alone makes a direction that any fluent text follows, and a repeated sentence best of all. Its copies,
with their words shuffled, letters mistyped, a sentence repeated, strewn with page furniture and markup
(`scoring.quality.degrade`), share its topics and lack its sense; what is left of the gradient without theirs is what
tells the two apart. `contrast: 0` is DELT's own direction (arXiv 2506.21545).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from scoring.gradients import costate, losses
from scoring.gradients import scorer as gradients
from scoring.gradients.layers import Layers, Tensors
from scoring.gradients.losses import Objective, Row
from scoring.models.types import Model, Tensor
from scoring.quality import degrade


@dataclass(frozen=True)
class Sets:
    """Tokenized texts whose loss a direction lowers, and copies whose loss it raises by the share `contrast`."""

    target: Sequence[Row]
    degraded: Sequence[Row]
    contrast: float


def degraded(texts: Sequence[str], seed: int) -> list[str]:
    """Returns a degraded copy of each text, the kinds of `scoring.quality.degrade` in turn."""
    seeds = np.random.default_rng(seed).integers(0, 2**31, len(texts))
    return [text for _, text in degrade.degrade_in_turn(texts, seeds.tolist())]


def target_gradient(
    model: Model, layers: Layers, sets: Sets, *, batch_tokens: int, objective: Objective
) -> dict[str, Tensor]:
    """Returns ∇J {layer: (o, i)} over those rows whose own gradient on `model` is finite."""

    def mean(rows: Sequence[Row]) -> Tensors:
        return costate.mean_gradient(model, rows, layers, batch_tokens=batch_tokens, objective=objective)

    return _difference(
        lambda rows: _over_finite(mean, model, rows, layers, batch_tokens=batch_tokens, objective=objective), sets
    )


def hessian_product(
    model: Model, layers: Layers, sets: Sets, vector: Tensors, *, batch_tokens: int, objective: Objective
) -> dict[str, Tensor]:
    """Returns the Hessian of J, over the same rows, times `vector`, both {layer: (o, i)}."""

    def product(rows: Sequence[Row]) -> Tensors:
        return costate.hessian_product(model, rows, layers, vector, batch_tokens=batch_tokens, objective=objective)

    return _difference(
        lambda rows: _over_finite(product, model, rows, layers, batch_tokens=batch_tokens, objective=objective), sets
    )


def _over_finite(
    value: Callable[[Sequence[Row]], Tensors], model: Model, rows: Sequence[Row], layers: Layers, *,
    batch_tokens: int, objective: Objective,
) -> Tensors:  # fmt: skip
    """Returns `value` of the rows that predict something; where it is not finite, of those that let it be."""
    able = [rows[n] for n in losses.able(model, rows, objective)]
    found = value(able)
    if all(bool(v.isfinite().all()) for v in found.values()):
        return found
    return value(finite(model, able, layers, batch_tokens=batch_tokens, objective=objective))


def _difference(value: Callable[[Sequence[Row]], Tensors], sets: Sets) -> dict[str, Tensor]:
    found = dict(value(sets.target))
    if sets.contrast == 0:
        return found
    other = value(sets.degraded)
    return {n: x - sets.contrast * other[n] for n, x in found.items()}


def finite(model: Model, rows: Sequence[Row], layers: Layers, *, batch_tokens: int, objective: Objective) -> list[Row]:
    """Returns the rows that predict something and whose loss and gradient are finite."""
    scores = gradients.score(model, rows, layers, {}, batch_tokens=batch_tokens, objective=objective)
    good = np.isfinite(scores.loss) & np.isfinite(scores.norm) & (scores.loss != 0)
    return [row for row, g in zip(rows, good, strict=True) if g]
