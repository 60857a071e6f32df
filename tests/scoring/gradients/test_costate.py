"""Costates, mean gradients and Hessian products against explicit sums, autograd and central differences."""

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tiny_models import FAMILIES, MASK, SPECIAL, VOCABULARY, directions, shared

from scoring.gradients import oracle as gradients_oracle
from scoring.gradients.costate import costates, hessian_product, mean_gradient
from scoring.gradients.layers import oriented, scored_layers, shapes
from scoring.gradients.losses import Objective

OBJECTIVE = Objective(MASK, SPECIAL)
ROWS = [[3, 4, 5, 6, 2], [7, 8], [9, 10, 11, 3, 4, 5, 6, 7], [12], []]
rows_of_tokens = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=12), max_size=5)


@pytest.mark.parametrize("name", FAMILIES)
@settings(deadline=None, max_examples=4, derandomize=True)
@given(rows=rows_of_tokens)
def test_the_mean_gradient_is_the_mean_of_the_gradients(name: str, rows: list[list[int]]) -> None:
    model = shared(name)
    layers = scored_layers(model, "all", embeddings=True)
    found = mean_gradient(model, rows, layers, batch_tokens=20, objective=OBJECTIVE)
    each = [gradients_oracle.gradient(model, row, layers, OBJECTIVE) for row in rows]
    for name_, value in found.items():
        truth = sum(g[name_] for g in each) / len(rows) if rows else torch.zeros_like(value)
        torch.testing.assert_close(value, truth, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_hessian_product_is_a_central_difference_of_gradients(name: str) -> None:
    model, step = copy.deepcopy(shared(name)), 1e-5
    layers = scored_layers(model, "all", embeddings=True)
    vector = {n: d[0] for n, d in directions(shapes(layers), 1).items()}
    found = hessian_product(model, ROWS, layers, vector, batch_tokens=16, objective=OBJECTIVE)
    ends = []
    for side in (step, -2 * step):
        with torch.no_grad():
            for n, m in layers.items():
                m.weight += side * oriented(m, vector[n])
        ends.append(mean_gradient(model, ROWS, layers, batch_tokens=16, objective=OBJECTIVE))
    for n, value in found.items():
        torch.testing.assert_close(value, (ends[0][n] - ends[1][n]) / (2 * step), rtol=1e-4, atol=1e-5)


def test_the_hessian_product_is_that_of_the_whole_matrix() -> None:
    model = shared("qwen2: tied, biases")
    layers = {n: m for n, m in scored_layers(model, "all").items() if "k_proj" in n}
    weights = [m.weight for m in layers.values()]
    flat = torch.cat([g.flatten() for g in torch.autograd.grad(_mean(model), weights, create_graph=True)])
    rows = [torch.cat([g.flatten() for g in torch.autograd.grad(x, weights, retain_graph=True)]) for x in flat]
    vector = {n: d[0] for n, d in directions(shapes(layers), 1).items()}
    expected = torch.stack(rows) @ torch.cat([v.flatten() for v in vector.values()])
    found = hessian_product(model, ROWS[:2], layers, vector, batch_tokens=8)
    torch.testing.assert_close(torch.cat([f.flatten() for f in found.values()]), expected, rtol=1e-8, atol=1e-10)


def _mean(model: Any) -> Any:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        return sum(gradients_oracle.loss(model, row) for row in ROWS[:2]) / 2


def test_the_hessian_product_without_rows_is_zero() -> None:
    model = shared("llama")
    layers = scored_layers(model, "all")
    vector = {n: d[0] for n, d in directions(shapes(layers), 1).items()}
    assert all((v == 0).all() for v in hessian_product(model, [], layers, vector, batch_tokens=8).values())


def test_costates_of_first_order_sum_the_gradients_that_follow() -> None:
    g = [{"a": torch.full((2, 2), float(x))} for x in (1, 10, 100)]
    found = [c and c["a"][0, 0].item() for c in costates(g)]
    assert found == [110.0, 100.0, None]
    assert costates(g[:1]) == [None]
    assert costates([]) == []


def test_full_costates_are_those_of_the_recursion() -> None:
    generator = torch.Generator().manual_seed(1)
    g = [torch.randn(3, generator=generator) for _ in range(4)]
    h = [torch.randn(3, 3, generator=generator) for _ in range(4)]
    called = []

    def product(t: int, vector: dict[str, Any]) -> dict[str, Any]:
        called.append(t)
        return {"a": h[t] @ vector["a"]}

    expected = {3: g[3]}
    for t in (2, 1):
        expected[t] = expected[t + 1] + g[t] - 0.1 * h[t] @ expected[t + 1]
    products = [lambda v, t=t: product(t, v) for t in range(4)]
    found = costates([{"a": x} for x in g], products, rate=0.1)
    assert found[3] is None
    for t in (0, 1, 2):
        torch.testing.assert_close(found[t]["a"], expected[t + 1])  # type: ignore[index]
    assert called == [2, 1]
