"""Directions: the target's gradient less its degraded copies', against autograd in one go."""

import pytest
import torch
from support import tiny_models

from scoring.gradients import directions
from scoring.gradients.layers import scored_layers
from scoring.gradients.losses import Objective, padded, row_losses

ROWS = [[5, 6, 7, 8, 9], [9, 8, 7], [4, 4, 5, 5, 6, 6], [3]]
OTHERS = [[9, 5, 8, 6, 7], [7, 9, 8]]


@pytest.mark.parametrize("contrast", [0.0, 0.5, 1.0])
def test_the_gradient_of_the_difference(contrast: float) -> None:
    model = tiny_models.shared("llama")
    layers = scored_layers(model, "all")
    sets = directions.Sets(ROWS, OTHERS, contrast)
    found = directions.target_gradient(model, layers, sets, batch_tokens=8, objective=Objective())
    mean = row_losses(model, *padded(ROWS[:3])).mean() - contrast * row_losses(model, *padded(OTHERS)).mean()
    truth = torch.autograd.grad(mean, [m.weight for m in layers.values()])
    for (name, value), expected in zip(found.items(), truth, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-6, msg=name)


def test_copies_are_seeded_and_of_every_kind() -> None:
    texts = [f"The river rises near hill {n}. It runs to the sea, and the old road follows it." for n in range(10)]
    found = directions.degraded(texts, 7)
    assert found == directions.degraded(texts, 7)
    assert found != directions.degraded(texts, 8)
    assert not set(found) & set(texts)
