"""Which weights are scored, and what is refused."""

import pytest
import torch
from support.tiny_models import CAUSAL, FAMILIES, made, shared
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertModel,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    MixtralConfig,
    MixtralForCausalLM,
)

from scoring.core.errors import ConfigError
from scoring.gradients import scorer as gradients
from scoring.gradients.layers import scored_layers, shapes, uses
from scoring.gradients.losses import Objective

SIZES = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 9, "intermediate_size": 12}


@pytest.mark.parametrize("name", FAMILIES)
def test_scored_weights_are_those_that_take_part_in_the_loss(name: str) -> None:
    """Every matrix but position and type tables is scored once with embeddings; norms and biases are not."""
    model = shared(name)
    found = {id(m.weight) for m in scored_layers(model, "all", embeddings=True).values()}
    others = [n for n, p in model.named_parameters() if id(p) not in found]
    assert all(p in n for n in others for p in [next(k for k in (
        "norm", "Norm", "ln_", "bias", "position", "token_type", "wpe") if k in n)])  # fmt: skip
    assert len(found) == len(scored_layers(model, "all", embeddings=True))


@pytest.mark.parametrize("name", FAMILIES)
def test_tied_output_layers_are_scored_with_the_table_alone(name: str) -> None:
    model = shared(name)
    tied = model.config.tie_word_embeddings
    head = model.get_output_embeddings()
    plain, whole = scored_layers(model, "all"), scored_layers(model, "all", embeddings=True)
    assert (head in plain.values()) is not tied
    assert (head in whole.values()) is not tied
    assert model.get_input_embeddings() in whole.values()
    assert set(whole) - set(plain) == {n for n, m in whole.items() if m is model.get_input_embeddings()}
    assert [u.kind for u in uses(model, whole)].count("head") == int(tied)
    assert all(s == (model.config.vocab_size, 8) for n, s in shapes(whole).items() if n not in plain)


def test_last_blocks() -> None:
    names = set(scored_layers(shared("llama"), "last:1"))
    assert len(names) == 7
    assert all(n.startswith("model.layers.1.") for n in names)
    with pytest.raises(ConfigError, match="2 transformer blocks"):
        scored_layers(shared("llama"), "last:3")


@pytest.mark.parametrize("name", [CAUSAL[0], "bert"])
def test_the_table_joins_the_last_blocks(name: str) -> None:
    model = shared(name)
    assert len(scored_layers(model, "last:1", embeddings=True)) == len(scored_layers(model, "last:1")) + 1


def test_poolers_are_not_scored() -> None:
    assert not any("pooler" in n for n in scored_layers(BertModel(BertConfig(**SIZES)), "all"))


def test_a_model_without_linear_layers_is_refused() -> None:
    with pytest.raises(ConfigError, match="no linear layers"):
        scored_layers(torch.nn.Embedding(3, 3), "all")


def test_two_layers_with_one_weight_are_refused() -> None:
    model = made("llama")
    model.model.layers[0].mlp.up_proj.weight = model.model.layers[0].mlp.gate_proj.weight
    with pytest.raises(ConfigError, match="share one weight"):
        scored_layers(model, "all")


def test_experts_are_refused() -> None:
    model = MixtralForCausalLM(MixtralConfig(**SIZES, num_key_value_heads=2, num_local_experts=2))
    with pytest.raises(ConfigError, match="does not belong to a linear layer"):
        scored_layers(model, "all")


def test_blocks_that_share_their_weights_are_refused() -> None:
    model = AlbertForMaskedLM(AlbertConfig(**SIZES, embedding_size=8)).eval()
    layers = scored_layers(model, "all")
    with pytest.raises(ConfigError, match="used twice in one forward pass"):
        gradients.score(model, [[3, 4, 5]], layers, {}, batch_tokens=9, objective=Objective(mask_id=1))


def test_rescaled_embeddings_are_refused() -> None:
    model = Gemma3ForCausalLM(Gemma3TextConfig(**SIZES, num_key_value_heads=2, head_dim=4))
    with pytest.raises(ConfigError, match="embeddings of type"):
        scored_layers(model, "all", embeddings=True)
