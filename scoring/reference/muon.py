"""The optimizer of the reference's weight matrices: momentum, orthogonalized (Muon, Jordan et al. 2024).

A small model that sees few tokens learns about twice as much of them as with AdamW (docs/scoring.md). PyTorch's own
Muon works in bfloat16, which processors without it emulate ten times slower than the rest of a step; this one works
in the weights' own type.
"""

from collections.abc import Sequence

from scoring.models.types import Tensor

MOMENTUM = 0.95
_STEPS = 5  # of the Newton-Schulz iteration
_A, _B, _C = 3.4445, -4.7750, 2.0315  # its coefficients, Jordan's: they bring singular values to 0.7 … 1.2


class Muon:
    """Steps the matrices `weights` (o, i) along their gradients' momentum, all singular values made about 1."""

    def __init__(self, weights: Sequence[Tensor]) -> None:
        import torch

        self._weights = list(weights)
        self._momenta = [torch.zeros_like(w) for w in self._weights]

    def step(self, rate: float) -> None:
        """Takes one step; √(o/i) larger for a matrix with more outputs than inputs."""
        import torch

        with torch.no_grad():
            for weight, momentum in zip(self._weights, self._momenta, strict=True):
                momentum.lerp_(weight.grad, 1 - MOMENTUM)
                update = orthogonal(weight.grad.lerp(momentum, MOMENTUM))  # Nesterov's look ahead
                weight.add_(update, alpha=-rate * max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """Returns U·S·Vᵀ of a matrix U·Σ·Vᵀ, S between about 0.7 and 1.2; zeros of zeros."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(_STEPS):
        gram = x @ x.T
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.T if tall else x
