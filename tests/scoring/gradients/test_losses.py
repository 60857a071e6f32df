"""What a row is asked, on causal and on masked models."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.tiny_models import FAMILIES, MASK, SPECIAL, shared

from scoring.core.errors import ConfigError
from scoring.gradients import losses
from scoring.gradients.losses import Objective, is_masked, masked_places

OBJECTIVE = Objective(MASK, SPECIAL)


@pytest.mark.parametrize("name", FAMILIES)
def test_masked_models_are_known_by_their_class(name: str) -> None:
    assert is_masked(shared(name)) is name.startswith("bert")


def test_masked_places() -> None:
    assert masked_places(range(100, 120), SPECIAL) == [3, 10, 17]
    assert masked_places([7, 8, 9], SPECIAL) == [2]
    assert masked_places([0, 7, 1], SPECIAL) == [1]
    assert masked_places([0, 7, 8, 1], SPECIAL) == [2]
    assert masked_places([0, 1], SPECIAL) == []
    assert masked_places([], SPECIAL) == []


@given(st.lists(st.integers(0, 9), max_size=40))
def test_a_row_with_a_plain_token_is_asked_something(row: list[int]) -> None:
    places = masked_places(row, SPECIAL)
    assert bool(places) is any(token not in SPECIAL for token in row)
    assert not {row[n] for n in places} & SPECIAL


def test_masked_batches_hide_what_they_ask_and_look_at_no_padding() -> None:
    rows = [[0, 6, 7, 8, 9, 1], [0, 9, 1], [0, 1]]
    found = list(losses.batches(shared("bert"), rows, 100, OBJECTIVE))
    assert [picked for picked, _ in found] == [[0], [1]]
    batch = found[0][1]
    assert batch.ids.tolist() == [[0, 6, 7, MASK, 9, 1]]
    assert batch.labels.tolist() == [rows[0]]
    assert batch.weights.tolist() == [[0, 0, 0, 1, 0, 0]]
    both = losses._masked(*losses.padded(rows[:2]), OBJECTIVE)
    assert both.attention is not None
    assert both.attention.tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0]]


def test_a_masked_model_needs_its_mask_token() -> None:
    with pytest.raises(ConfigError, match="mask token"):
        list(losses.batches(shared("bert"), [[3, 4]], 10, Objective()))


def test_the_objective_of_a_tokenizer() -> None:
    class Tokenizer:
        mask_token_id = 4
        all_special_ids = (0, 4)

    assert Objective.of(shared("bert"), Tokenizer) == Objective(4, frozenset({0, 4}))
    assert Objective.of(shared("llama"), Tokenizer) == Objective()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_gradient_of_logits_is_that_of_cross_entropy(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = (9 * torch.randn(2, 5, 11, generator=generator, dtype=dtype)).requires_grad_()
    labels = torch.randint(0, 11, (2, 5), generator=generator)
    weights = torch.tensor([[0.25] * 4 + [0.0], [0.5, 0.5, 0, 0, 0]], dtype=torch.float64)
    each = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    truth = (each.view(2, 5) * weights.to(dtype)).sum(1)
    truth.sum().backward()
    found, gradient = losses._with_gradient(logits.detach().clone(), labels, weights)
    tolerance = 1e-10 if dtype is torch.float64 else 1e-5
    torch.testing.assert_close(found, truth.detach(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(gradient, logits.grad, rtol=tolerance, atol=tolerance)


def test_a_plain_head_gives_the_losses_that_the_model_gives() -> None:
    rows = [np.random.default_rng(n).integers(0, 23, 2 + n).tolist() for n in range(9)]
    for name in FAMILIES[:-2]:
        model = shared(name)
        batch = losses.causal(*losses.padded(rows))
        with torch.no_grad():
            head = losses.plain_head(model)
            hidden = model.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state
            found, _ = losses._through_head(head, hidden, batch, lambda *_: None)
            torch.testing.assert_close(found, losses.batch_losses(model, batch), rtol=1e-9, atol=1e-9)
