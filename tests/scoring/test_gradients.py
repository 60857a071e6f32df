"""Fast per-sample gradients against one-by-one autograd, on real transformers of drawn shapes."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from scoring import gradients, gradients_oracle
from scoring.errors import ConfigError

VOCABULARY = 23
SIZES = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": VOCABULARY}


def llama(*, tied: bool = False, groups: int = 2) -> Any:
    torch.manual_seed(1)
    config = LlamaConfig(**SIZES, intermediate_size=12, num_key_value_heads=groups, tie_word_embeddings=tied)
    return LlamaForCausalLM(config).eval()


def gpt2() -> Any:
    torch.manual_seed(2)
    config = GPT2Config(n_embd=8, n_head=2, n_layer=2, vocab_size=VOCABULARY, n_positions=16)
    return GPT2LMHeadModel(config).eval()


MODELS = {
    "llama": llama(),
    "llama, tied": llama(tied=True),
    "llama, grouped queries": llama(groups=1),
    "gpt2: tied, Conv1D, biases": gpt2(),
}
rows_of_tokens = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=12), max_size=6)


def directions(layers: gradients.Layers, k: int, dtype: torch.dtype) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(3)
    shapes = {n: gradients.oriented(m, m.weight).shape for n, m in layers.items()}
    return {n: torch.randn(k, *s, generator=generator, dtype=dtype) for n, s in shapes.items()} if k else {}


def assert_same(found: gradients.Scores, truth: gradients.Scores, scale: float, tolerance: float) -> None:
    """Dot products may cancel: their error is relative to ‖g‖ · ‖D‖, as a cosine's is."""
    np.testing.assert_allclose(found.loss, truth.loss, rtol=tolerance)
    np.testing.assert_allclose(found.norm, truth.norm, rtol=tolerance)
    assert (np.abs(found.dots - truth.dots) <= tolerance * scale * truth.norm[:, None] + 1e-300).all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("which", ["all", "last:1"])
@settings(deadline=None, max_examples=12, derandomize=True)
@given(rows=rows_of_tokens, k=st.integers(0, 2), batch_tokens=st.sampled_from([1, 16, 1000]))
def test_scores_are_those_of_autograd(name: str, which: str, rows: list[list[int]], k: int, batch_tokens: int) -> None:
    model = copy.deepcopy(MODELS[name]).double()
    layers = gradients.scored_layers(model, which)
    d = directions(layers, k, torch.float64)
    found = gradients.score(model, rows, layers, d, batch_tokens=batch_tokens)
    assert found.dots.shape == (len(rows), k)
    assert_same(found, gradients_oracle.score(model, rows, layers, d), scale=10.0, tolerance=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_float32_is_exact_to_1e_5(name: str) -> None:
    model = MODELS[name]
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, VOCABULARY, n).tolist() for n in (0, 1, 2, 3, 7, 12, 12, 16)]
    layers = gradients.scored_layers(model, "all")
    d = directions(layers, 2, torch.float32)
    norm = max(float(sum(x[k].square().sum() for x in d.values()) ** 0.5) for k in range(2))
    truth = gradients_oracle.score(model, rows, layers, d)
    assert_same(gradients.score(model, rows, layers, d, batch_tokens=64), truth, norm, 1e-5)


@settings(deadline=None, max_examples=10, derandomize=True)
@given(rows=rows_of_tokens)
def test_the_mean_gradient_is_the_mean_of_the_gradients(rows: list[list[int]]) -> None:
    model = copy.deepcopy(MODELS["gpt2: tied, Conv1D, biases"]).double()
    layers = gradients.scored_layers(model, "all")
    found = gradients.mean_gradient(model, rows, layers, batch_tokens=20)
    each = [gradients_oracle.gradient(model, row, layers) for row in rows]
    for name, value in found.items():
        truth = sum(g[name] for g in each) / len(rows) if rows else torch.zeros_like(value)
        torch.testing.assert_close(value, truth, rtol=1e-9, atol=1e-12)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(*(st.integers(1, 9) for _ in range(4)), st.integers(0, 3))
def test_both_ways_through_a_layer_agree(b: int, t: int, i: int, o: int, k: int) -> None:
    generator = torch.Generator().manual_seed(b * t * i * o)
    a, grad = (torch.randn(b, t, n, generator=generator, dtype=torch.float64) for n in (i, o))
    d = torch.randn(k, o, i, generator=generator, dtype=torch.float64)
    for one, other in zip(gradients.by_gradients(a, grad, d), gradients.by_grams(a, grad, d), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_large_layers_of_short_rows_take_gram_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gradients.directly(t=128, i=128, o=128, k=2)
    assert not gradients.directly(t=4, i=4096, o=4096, k=2)
    model, rows = MODELS["llama"], [[1, 2, 3, 4], [5, 6]]
    layers = gradients.scored_layers(model, "all")
    d = directions(layers, 2, torch.float32)
    found = []
    for choice in (True, False):
        monkeypatch.setattr(gradients, "directly", lambda t, i, o, k, choice=choice: choice)
        found.append(gradients.score(model, rows, layers, d, batch_tokens=100))
    assert_same(found[0], found[1], scale=30.0, tolerance=1e-5)


def test_a_row_does_not_depend_on_its_batch() -> None:
    torch.manual_seed(4)
    config = LlamaConfig(
        vocab_size=500, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4,
    )  # fmt: skip
    model, rng = LlamaForCausalLM(config).eval(), np.random.default_rng(5)
    rows = [rng.integers(0, 500, n).tolist() for n in rng.integers(2, 90, 40)]
    layers = gradients.scored_layers(model, "all")
    d = {n: torch.randn(2, *m.weight.shape) for n, m in layers.items()}
    norm = max(float(sum(x[k].square().sum() for x in d.values()) ** 0.5) for k in range(2))
    alone = gradients.score(model, rows, layers, d, batch_tokens=1)
    for batch_tokens in (300, 4096):
        assert_same(gradients.score(model, rows, layers, d, batch_tokens=batch_tokens), alone, norm, 1e-5)


def test_infinite_weights_of_one_token_touch_only_rows_that_hold_it() -> None:
    model = copy.deepcopy(MODELS["llama"])
    with torch.no_grad():
        model.model.embed_tokens.weight[0] = torch.inf
    rows = [[3, 4, 5], [3, 0, 5, 6, 7], [2, 9]]
    layers = gradients.scored_layers(model, "all")
    found = gradients.score(model, rows, layers, directions(layers, 1, torch.float32), batch_tokens=100)
    assert np.isfinite(found.norm).tolist() == [True, False, True]
    assert np.isfinite(found.dots[:, 0]).tolist() == [True, False, True]


def test_scoring_leaves_the_model_as_it_was() -> None:
    model = copy.deepcopy(MODELS["llama"])
    model.model.norm.weight.requires_grad_(False)
    before = {n: p.requires_grad for n, p in model.named_parameters()}
    layers = gradients.scored_layers(model, "all")
    gradients.score(model, [[1, 2, 3]], layers, {}, batch_tokens=10)
    gradients.mean_gradient(model, [[1, 2, 3]], layers, batch_tokens=10)
    assert {n: p.requires_grad for n, p in model.named_parameters()} == before
    assert all(p.grad is None for p in model.parameters())
    assert not any(m._forward_hooks for m in layers.values())


def test_tied_output_layers_are_not_scored() -> None:
    assert "lm_head" in gradients.scored_layers(MODELS["llama"], "all")
    assert "lm_head" not in gradients.scored_layers(MODELS["llama, tied"], "all")


def test_last_blocks() -> None:
    names = set(gradients.scored_layers(MODELS["llama"], "last:1"))
    assert len(names) == 7
    assert all(n.startswith("model.layers.1.") for n in names)
    with pytest.raises(ConfigError, match="2 transformer blocks"):
        gradients.scored_layers(MODELS["llama"], "last:3")


def test_a_model_without_linear_layers_is_refused() -> None:
    with pytest.raises(ConfigError, match="no linear layer"):
        gradients.scored_layers(torch.nn.Embedding(3, 3), "all")


def test_two_layers_with_one_weight_are_refused() -> None:
    model = llama()
    model.model.layers[0].mlp.up_proj.weight = model.model.layers[0].mlp.gate_proj.weight
    with pytest.raises(ConfigError, match="share one weight"):
        gradients.scored_layers(model, "all")


def test_layers_that_mix_rows_are_refused() -> None:
    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = llama()
            self.flat = torch.nn.Linear(VOCABULARY, VOCABULARY)

        def forward(self, input_ids: Any, use_cache: bool) -> Any:
            found = self.inner(input_ids=input_ids, use_cache=use_cache)
            found.logits = self.flat(found.logits.flatten(0, 1)).view(found.logits.shape)
            return found

    model = Mixed()
    with pytest.raises(ConfigError, match="layer flat sees inputs of shape"):
        gradients.score(model, [[1, 2]], gradients.scored_layers(model, "all"), {}, batch_tokens=10)


def test_costates_sum_the_gradients_that_follow() -> None:
    g = [{"a": torch.full((2, 2), float(x))} for x in (1, 10, 100)]
    found = [c and c["a"][0, 0].item() for c in gradients.costates(g)]
    assert found == [110.0, 100.0, None]
    assert gradients.costates(g[:1]) == [None]
    assert gradients.costates([]) == []
