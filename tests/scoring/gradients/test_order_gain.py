"""Order gain: words move whole, special tokens stay, and a model that has learned an order misses it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from scoring.gradients.losses import Objective
from scoring.gradients.order_gain import losses, order_gains, shuffled

WORDS = st.lists(st.integers(0, 30), min_size=1, max_size=40).map(sorted)


@given(WORDS)
def test_words_move_whole(words: list[int]) -> None:
    row = [100 * w + n for n, w in enumerate(words)]
    found = shuffled(row, words)
    assert sorted(found) == row
    if len(row) <= 4 * len(set(words)):
        for w in set(words):
            places = [n for n, token in enumerate(found) if token // 100 == w]
            assert places == list(range(places[0], places[0] + len(places)))
            assert [found[n] for n in places] == sorted(found[n] for n in places)


def test_special_tokens_stay() -> None:
    found = shuffled([1, *range(10, 30), 2], [None, *range(20), None])
    assert (found[0], found[-1]) == (1, 2)
    assert found[1:-1] != list(range(10, 30))
    assert sorted(found[1:-1]) == list(range(10, 30))


def test_a_run_without_spaces_is_shuffled_by_token() -> None:
    found = shuffled(list(range(40)), [0] * 40)
    assert found != list(range(40))
    assert sorted(found) == list(range(40))


@pytest.mark.parametrize("row", [[], [5], [5, 6]])
def test_short_rows(row: list[int]) -> None:
    assert sorted(shuffled(row, list(range(len(row))))) == row


def counting_model() -> LlamaForCausalLM:
    """A model that has learned to count upwards."""
    torch.manual_seed(3)
    sizes = LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(sizes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    ids = torch.arange(32).repeat(4, 1)
    for _ in range(60):
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def test_order_is_worth_what_the_model_has_learned_of_it() -> None:
    model, rows = counting_model(), [list(range(4, 30)), list(np.random.default_rng(5).permutation(26) + 4), [7], []]
    words = [list(range(len(row))) for row in rows]
    options = {"batch_tokens": 64, "objective": Objective()}
    loss = losses(model, rows, **options)
    found = order_gains(model, rows, words, loss, **options)
    assert found[0] > 3
    assert abs(found[1]) < found[0] / 2
    assert found[2:].tolist() == [0, 0]
    alone = order_gains(model, rows[:1], words[:1], loss[:1], **options)
    np.testing.assert_allclose(alone, found[:1], atol=1e-5)
