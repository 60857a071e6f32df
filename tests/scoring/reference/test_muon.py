"""Muon: steps whose singular values are about 1, and a loss that falls."""

import pytest
import torch

from scoring.reference.muon import Muon, orthogonal


@pytest.mark.parametrize("shape", [(8, 8), (24, 8), (8, 24), (1, 5), (5, 1)])
def test_singular_values_are_about_one(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 50
    found = torch.linalg.svdvals(orthogonal(matrix))
    assert ((found > 0.5) & (found < 1.3)).all()


def test_the_singular_vectors_stay() -> None:
    u, _, v = torch.linalg.svd(torch.randn(6, 6, generator=torch.Generator().manual_seed(5)))
    found = u.T @ orthogonal(u @ torch.diag(torch.linspace(1, 3, 6)) @ v) @ v.T
    torch.testing.assert_close(found, torch.diag(found.diagonal()), atol=1e-5, rtol=0)


def test_nothing_is_orthogonal_to_nothing() -> None:
    assert not orthogonal(torch.zeros(3, 4)).any()


def test_steps_lead_to_the_target() -> None:
    weight = torch.nn.Parameter(torch.zeros(6, 4))
    target, muon = torch.randn(6, 4, generator=torch.Generator().manual_seed(1)), Muon([weight])
    losses = []
    for step in range(60):
        loss = (weight - target).square().mean()
        weight.grad = torch.autograd.grad(loss, weight)[0]
        muon.step(0.1 * (1 - step / 60))
        losses.append(loss.item())
    assert losses[-1] < 0.02 * losses[0]
