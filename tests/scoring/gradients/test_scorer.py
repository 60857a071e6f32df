"""Fast per-sample gradients against one-by-one autograd, on real transformers of every family and drawn rows."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tiny_models import CAUSAL, FAMILIES, MASK, SPECIAL, VOCABULARY, directions, made, shared
from transformers import LlamaConfig, LlamaForCausalLM

from scoring.core.errors import ConfigError
from scoring.gradients import oracle as gradients_oracle
from scoring.gradients import scorer as gradients
from scoring.gradients.costate import mean_gradient
from scoring.gradients.layers import scored_layers, shapes
from scoring.gradients.losses import Objective
from scoring.gradients.sketches import Projection

OBJECTIVE = Objective(MASK, SPECIAL)
PROJECTION = Projection(rank=5, width=40)
rows_of_tokens = st.lists(
    st.one_of(
        st.lists(st.integers(0, VOCABULARY - 1), max_size=12),
        st.integers(1, 9).map(lambda n: [0] * n),  # padding, or special, alone
        st.integers(1, 9).map(lambda n: [2] * n),
    ),
    max_size=5,
)


def assert_same(found: gradients.Scores, truth: gradients.Scores, scale: float, tolerance: float) -> None:
    """Dot products may cancel: their error is relative to ‖g‖ · ‖D‖, as a cosine's is."""
    np.testing.assert_allclose(found.loss, truth.loss, rtol=tolerance)
    np.testing.assert_allclose(found.norm, truth.norm, rtol=tolerance)
    assert (np.abs(found.dots - truth.dots) <= tolerance * scale * truth.norm[:, None] + 1e-300).all()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("which", "embeddings"), [("all", False), ("all", True), ("last:1", False)])
@settings(deadline=None, max_examples=6, derandomize=True)
@given(rows=rows_of_tokens, k=st.integers(0, 2), batch_tokens=st.sampled_from([1, 16, 1000]))
def test_scores_and_sketches_are_those_of_autograd(
    name: str, which: str, embeddings: bool, rows: list[list[int]], k: int, batch_tokens: int
) -> None:
    model = shared(name)
    layers = scored_layers(model, which, embeddings=embeddings)
    d = directions(shapes(layers), k)
    found = gradients.score(
        model, rows, layers, d, batch_tokens=batch_tokens, projection=PROJECTION, objective=OBJECTIVE
    )
    truth = gradients_oracle.score(model, rows, layers, d, OBJECTIVE)
    assert found.dots.shape == (len(rows), k)
    assert_same(found, truth, scale=30.0, tolerance=1e-9)
    assert found.sketch is not None
    assert found.sketch.shape == (len(rows), PROJECTION.width)
    for row, sketch, norm in zip(rows, found.sketch, truth.norm, strict=True):
        whole = gradients_oracle.sketch(PROJECTION, gradients_oracle.gradient(model, row, layers, OBJECTIVE))
        np.testing.assert_allclose(sketch, whole, atol=1e-6 * (1 + norm))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("embeddings", [False, True])
def test_scores_from_sketches_are_those_of_the_sketches(name: str, embeddings: bool) -> None:
    model, rows = shared(name), [[3, 4, 5, 6, 7, 8], [], [9], [2, 0, 11]]
    layers = scored_layers(model, "all", embeddings=embeddings)
    d = directions(shapes(layers), 2)
    options = {"batch_tokens": 8, "projection": PROJECTION, "objective": OBJECTIVE}
    exact, quick = (gradients.score(model, rows, layers, d, exact=e, **options) for e in (True, False))  # type: ignore[arg-type]
    np.testing.assert_array_equal(quick.sketch, exact.sketch)
    np.testing.assert_array_equal(quick.loss, exact.loss)
    np.testing.assert_allclose(quick.norm, np.linalg.norm(np.float64(exact.sketch), axis=1))
    np.testing.assert_allclose(quick.dots, np.float64(exact.sketch) @ PROJECTION.of(d).T, rtol=1e-5, atol=1e-9)


def test_scores_from_sketches_need_a_projection() -> None:
    model = shared("llama")
    with pytest.raises(ValueError, match="projection"):
        gradients.score(model, [], scored_layers(model, "all"), {}, batch_tokens=1, exact=False)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("embeddings", [False, True])
def test_float32_is_exact_to_1e_5(name: str, embeddings: bool) -> None:
    model = shared(name, torch.float32)
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, VOCABULARY, n).tolist() for n in (0, 1, 2, 3, 7, 12, 12, 16)]
    layers = scored_layers(model, "all", embeddings=embeddings)
    d = directions(shapes(layers), 2, torch.float32)
    norm = max(float(sum(x[k].square().sum() for x in d.values()) ** 0.5) for k in range(2))
    truth = gradients_oracle.score(model, rows, layers, d, OBJECTIVE)
    found = gradients.score(model, rows, layers, d, batch_tokens=64, objective=OBJECTIVE)
    assert_same(found, truth, norm, 1e-5)


def middling() -> LlamaForCausalLM:
    torch.manual_seed(4)
    config = LlamaConfig(
        vocab_size=500, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, tie_word_embeddings=True,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("exact", [True, False])
def test_a_row_does_not_depend_on_its_batch(exact: bool) -> None:
    model, rng = middling(), np.random.default_rng(5)
    rows = [rng.integers(0, 500, n).tolist() for n in rng.integers(2, 90, 30)]
    layers = scored_layers(model, "all", embeddings=True)
    d = directions(shapes(layers), 2, torch.float32)
    norm = max(float(sum(x[k].square().sum() for x in d.values()) ** 0.5) for k in range(2))
    found = [
        gradients.score(model, rows, layers, d, batch_tokens=n, projection=Projection(rank=8, width=64), exact=exact)
        for n in (1, 300, 4096)
    ]
    for other in found[1:]:
        assert_same(other, found[0], norm, 1e-5)
        assert other.sketch is not None
        np.testing.assert_allclose(other.sketch, found[0].sketch, atol=1e-5 * found[0].norm.max())


def test_a_masked_row_does_not_depend_on_its_batch() -> None:
    model, rng = shared("bert, tied", torch.float32), np.random.default_rng(6)
    rows = [rng.integers(2, VOCABULARY, n).tolist() for n in rng.integers(1, 16, 20)]
    layers = scored_layers(model, "all", embeddings=True)
    d = directions(shapes(layers), 1, torch.float32)
    alone, together = (gradients.score(model, rows, layers, d, batch_tokens=n, objective=OBJECTIVE) for n in (1, 4096))
    assert_same(together, alone, scale=30.0, tolerance=1e-5)


def test_bfloat16_ranks_rows_as_float32_does() -> None:
    model, rng = middling(), np.random.default_rng(8)
    rows = [rng.integers(0, 500, n).tolist() for n in rng.integers(8, 60, 24)]
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        model = model.to(dtype)
        layers = scored_layers(model, "all", embeddings=True)
        target = mean_gradient(model, rows[:12], layers, batch_tokens=256)
        assert all(t.dtype == torch.float32 for t in target.values())
        d = {n: t[None] for n, t in target.items()}
        found.append(gradients.score(model, rows, layers, d, batch_tokens=256, projection=Projection(rank=8, width=64)))
    np.testing.assert_allclose(found[1].loss, found[0].loss, rtol=0.02)
    np.testing.assert_allclose(found[1].norm, found[0].norm, rtol=0.05)
    assert ranked(found[0].norm, found[1].norm) > 0.98
    assert ranked(found[0].dots[:, 0], found[1].dots[:, 0]) > 0.98
    assert found[1].sketch is not None
    assert found[1].sketch.dtype == np.float32


def ranked(x: np.ndarray, y: np.ndarray) -> float:
    """Returns Spearman's correlation of values without ties."""
    return float(np.corrcoef(x.argsort().argsort(), y.argsort().argsort())[0, 1])


def test_infinite_weights_of_one_token_touch_only_rows_that_hold_it() -> None:
    model = made("llama", torch.float32)
    with torch.no_grad():
        model.model.embed_tokens.weight[0] = torch.inf
    rows = [[3, 4, 5], [3, 0, 5, 6, 7], [2, 9]]
    layers = scored_layers(model, "all")
    d = directions(shapes(layers), 1, torch.float32)
    found = gradients.score(model, rows, layers, d, batch_tokens=100, projection=PROJECTION)
    assert found.sketch is not None
    assert np.isfinite(found.norm).tolist() == [True, False, True]
    assert np.isfinite(found.dots[:, 0]).tolist() == [True, False, True]
    assert np.isfinite(found.sketch).all(axis=1).tolist() == [True, False, True]


@pytest.mark.parametrize("name", ["llama, tied", "bert, tied"])
def test_scoring_leaves_the_model_as_it_was(name: str) -> None:
    model = copy.deepcopy(shared(name))
    next(model.parameters()).requires_grad_(False)
    before = {n: p.requires_grad for n, p in model.named_parameters()}
    layers = scored_layers(model, "all", embeddings=True)
    gradients.score(model, [[1, 2, 3]], layers, {}, batch_tokens=10, objective=OBJECTIVE)
    mean_gradient(model, [[1, 2, 3]], layers, batch_tokens=10, objective=OBJECTIVE)
    assert {n: p.requires_grad for n, p in model.named_parameters()} == before
    assert all(p.grad is None for p in model.parameters())
    assert not any(m._forward_hooks for m in model.modules())


def test_layers_that_mix_rows_are_refused() -> None:
    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = made("llama", torch.float32)
            self.flat = torch.nn.Linear(VOCABULARY, VOCABULARY)

        def forward(self, input_ids: torch.Tensor, use_cache: bool) -> object:
            found = self.inner(input_ids=input_ids, use_cache=use_cache)
            found.logits = self.flat(found.logits.flatten(0, 1)).view(found.logits.shape)
            return found

    model = Mixed()
    with pytest.raises(ConfigError, match="layer flat has inputs of shape"):
        gradients.score(model, [[1, 2]], scored_layers(model, "all"), {}, batch_tokens=10)


@pytest.mark.parametrize("name", CAUSAL[:1])
def test_a_head_alone_needs_no_way_back(name: str) -> None:
    model, rows = shared(name), [[1, 2, 3], [4, 5]]
    layers = {n: m for n, m in scored_layers(model, "all").items() if n == "lm_head"}
    found = gradients.score(model, rows, layers, {}, batch_tokens=10)
    assert_same(found, gradients_oracle.score(model, rows, layers, {}), scale=1.0, tolerance=1e-9)
