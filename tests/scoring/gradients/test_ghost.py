"""Norms and dot products of gradients that are never made, against gradients that are."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.gradients import ghost

SIZES = (st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(0, 3))


def drawn(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def truth(g: torch.Tensor, d: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (g**2).sum((1, 2)), torch.einsum("boi,koi->bk", g, d)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(*SIZES, st.sampled_from([1, 20, 1 << 20]))
def test_both_ways_through_a_layer_are_those_of_the_gradient(b: int, t: int, i: int, o: int, k: int, room: int) -> None:
    a, grad, d = drawn((b, t, i), (b, t, o), (k, o, i))
    expected = truth(grad.mT @ a, d)
    with pytest.MonkeyPatch.context() as patch:  # any size of the pieces
        patch.setattr(ghost, "_CHUNK_ELEMENTS", {"cpu": room})
        for found in (ghost.by_gradients(a, grad, d), ghost.by_grams(a, grad, d), ghost.linear(a, grad, d)):
            for one, other in zip(found, expected, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(*SIZES)
def test_tables_and_tied_heads_are_those_of_the_gradient(b: int, t: int, i: int, v: int, k: int) -> None:
    a, grad, e, d = drawn((b, t, i), (b, t, v), (b, t, i), (k, v, i))
    tokens = torch.randint(0, v, (b, t), generator=torch.Generator().manual_seed(v))
    table = torch.nn.functional.one_hot(tokens, v).double().mT @ e
    for one, other in zip(ghost.table(tokens, e, d), truth(table, d), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
    cross = ghost.cross(a, ghost.at_tokens(grad, tokens), e)
    torch.testing.assert_close(cross, ((grad.mT @ a) * table).sum((1, 2)), rtol=1e-9, atol=1e-9)


def test_large_layers_of_short_rows_take_gram_matrices() -> None:
    assert ghost.directly(t=128, i=128, o=128, k=2)
    assert not ghost.directly(t=4, i=4096, o=4096, k=2)


def test_half_precision_is_summed_in_float32() -> None:
    a, grad, d = (x.bfloat16() for x in drawn((2, 40, 6), (2, 40, 5), (1, 5, 6)))
    expected = truth(grad.float().mT @ a.float(), d.float())
    for found in (ghost.by_gradients(a, grad, d), ghost.by_grams(a, grad, d)):
        assert found[0].dtype == torch.float32
        torch.testing.assert_close(found[0], expected[0], rtol=0.01, atol=0.01)
