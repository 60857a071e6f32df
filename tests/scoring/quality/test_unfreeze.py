"""Training the last layers of an encoder: it learns, touches nothing else, repeats, and says what it cannot."""

from typing import Any

import numpy as np
import pytest
import torch
from support import prose
from transformers import BertConfig, BertModel

from scoring.core.errors import ConfigError
from scoring.models import encoders, encoding
from scoring.models import load as models
from scoring.quality import unfreeze

ROWS = 120


def encoder() -> Any:
    torch.manual_seed(3)
    return BertModel(
        BertConfig(
            vocab_size=30522, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=64,
            max_position_embeddings=64,
        ),
        add_pooling_layer=False,
    ).eval()  # fmt: skip


def trained(model: Any, layers: int) -> list[float]:
    """Trains on windows of chance tokens, of which the good ones hold low ids alone; returns the losses."""
    rng = np.random.default_rng(1)
    good = np.arange(ROWS) % 3 == 0
    found = [rng.integers(2000, 2400 if g else 29000, 12 + k % 5).astype(np.int32) for k, g in enumerate(good)]
    said = list[str]()
    chosen = unfreeze.last_layers(model, "tiny", layers)
    unfreeze.train(model, models.load_tokenizer(prose.MINILM), chosen, found, good, seed=7, say=said.append)
    return [float(line.rsplit(" ", 1)[1]) for line in said]


def test_the_loss_falls_and_only_the_last_layers_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfreeze, "_ENCODER_RATE", 3e-3)  # a model of chance weights is far from what it is to learn
    monkeypatch.setattr(unfreeze, "_HEAD_RATE", 0.1)
    model, before = encoder(), encoder().state_dict()
    losses = trained(model, 2)
    assert len(losses) == unfreeze.EPOCHS
    assert losses[-1] < losses[0] - 0.01
    changed = {name for name, weights in model.state_dict().items() if not weights.equal(before[name])}
    assert {name.split(".")[2] for name in changed} == {"1", "2"}
    assert not model.training
    assert not any(p.requires_grad for p in model.parameters())


def test_training_repeats_and_leaves_the_callers_draws_alone() -> None:
    first, second = encoder(), encoder()
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)
    trained(first, 1)
    assert torch.rand(1).equal(expected)
    trained(second, 1)
    assert all(w.equal(second.state_dict()[n]) for n, w in first.state_dict().items())


def test_dimensions_that_hardly_vary_get_no_weight() -> None:
    tokenizer, model = models.load_tokenizer(prose.MINILM), encoders.load_encoder(prose.MINILM)
    found = list(encoding.token_ids(tokenizer, [text[:40] for text in prose.paragraphs()[:24]]))
    head = unfreeze._first_head(model, tokenizer, found, np.arange(24) % 2 == 0)
    assert float(head.weight.detach().norm()) < 100  # two dimensions of MiniLM are about 1e-33


@pytest.mark.parametrize("count", [-1, 0, 4])
def test_a_number_of_layers_that_is_not_there_is_refused(count: int) -> None:
    with pytest.raises(ConfigError, match=f"--unfreeze is {count}, but the model has 3 transformer layers"):
        unfreeze.last_layers(encoder(), "tiny", count)


def test_a_model_without_layers_of_its_own_is_refused() -> None:
    model = encoder()
    del model.encoder.layer[0]  # as many as the config says are needed: layers that share weights have one list item
    with pytest.raises(ConfigError, match="no list of layers to fine-tune"):
        unfreeze.last_layers(model, "tiny", 1)
