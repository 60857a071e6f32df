"""Mean gradients over a target set, Hessians along them, and the costates that both make over training.

DELT (arXiv 2506.21545, eq. 6-9, after PDS, arXiv 2410.07064) values a sample by λ_{t+1} · g_n(θ_t), where
J is the loss on the target set, η the learning rate and

    λ_T = ∇J(θ_T)        λ_t = λ_{t+1} + ∇J(θ_t) - η H(θ_t) λ_{t+1}

H is the Hessian of the loss that is trained on, its block of the scored layers. Without it the costate is of
first order: the sum of the gradients that follow.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from scoring.gradients.layers import Layers, Tensors, oriented, requiring_grad
from scoring.gradients.losses import Objective, Row, batch_losses, batches
from scoring.models.types import Model, Tensor

Product = Callable[[Tensors], Tensors]  # a vector {layer: (o, i)} → H times it


def costates(
    gradients: Sequence[Tensors], products: Sequence[Product] | None = None, *, rate: float = 0.0
) -> list[dict[str, Tensor] | None]:
    """Returns λ_{t+1} for each checkpoint t of `gradients` ∇J(θ_t); None for the last.

    `products` multiply by H(θ_t), one per checkpoint; the first and the last are never called. None leaves the
    Hessian out.
    """
    found: list[dict[str, Tensor] | None] = []
    following: dict[str, Tensor] | None = None
    for t in reversed(range(len(gradients))):
        found.append(following)
        if following is None:
            following = dict(gradients[t])
        elif t > 0:
            curved = products[t](following) if products else None
            following = {n: _step(g, following[n], curved and curved[n], rate) for n, g in gradients[t].items()}
    return found[::-1]


def _step(gradient: Tensor, following: Tensor, curved: Tensor, rate: float) -> Tensor:
    return following + gradient - (0 if curved is None else rate * curved)


def mean_gradient(
    model: Model, rows: Sequence[Row], layers: Layers, *, batch_tokens: int, objective: Objective | None = None
) -> dict[str, Tensor]:
    """Returns the mean of the gradients of `rows`, {layer: (o, i)} in float32 at least; zeros without rows."""
    weights = [m.weight for m in layers.values()]
    totals = [_zeros(w) for w in weights]
    with requiring_grad(model, weights):
        for _, batch in batches(model, rows, batch_tokens, objective or Objective()):
            _add(totals, _grad(batch_losses(model, batch).sum() / len(rows), weights))
    return _named(layers, totals)


def hessian_product(
    model: Model, rows: Sequence[Row], layers: Layers, vector: Tensors, *, batch_tokens: int,
    objective: Objective | None = None,
) -> dict[str, Tensor]:  # fmt: skip
    """Returns H times `vector` {layer: (o, i)}, H the Hessian of the mean loss of `rows` by the scored layers.

    Exact, by differentiating ⟨∇J, vector⟩; memory is bounded by a batch's graph. Zeros without rows.
    """
    weights = [m.weight for m in layers.values()]
    along = [oriented(m, vector[n]).to(m.weight) for n, m in layers.items()]
    totals = [_zeros(w) for w in weights]
    with requiring_grad(model, weights), _twice_differentiable():
        for _, batch in batches(model, rows, batch_tokens, objective or Objective()):
            loss = batch_losses(model, batch).sum() / len(rows)
            slope = sum((g * v).sum() for g, v in zip(_grad(loss, weights, twice=True), along, strict=True))
            _add(totals, _grad(slope, weights))
    return _named(layers, totals)


def _twice_differentiable() -> AbstractContextManager[None]:
    """Returns the context in which attention is written out: the fused kernels have no second derivative."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    found: AbstractContextManager[None] = sdpa_kernel(SDPBackend.MATH)
    return found


def _grad(value: Tensor, weights: Sequence[Tensor], *, twice: bool = False) -> Sequence[Tensor]:
    import torch

    if not value.requires_grad:  # linear in the weights: no curvature
        return [torch.zeros_like(w) for w in weights]
    return tuple(torch.autograd.grad(value, weights, create_graph=twice, allow_unused=True, materialize_grads=True))


def _zeros(weight: Tensor) -> Tensor:
    import torch

    return torch.zeros_like(weight, dtype=torch.promote_types(weight.dtype, torch.float32))


def _add(totals: Sequence[Tensor], found: Sequence[Tensor]) -> None:
    for total, value in zip(totals, found, strict=True):
        total.add_(value.detach())


def _named(layers: Layers, totals: Sequence[Tensor]) -> dict[str, Tensor]:
    return {n: oriented(m, t).detach().contiguous() for (n, m), t in zip(layers.items(), totals, strict=True)}
