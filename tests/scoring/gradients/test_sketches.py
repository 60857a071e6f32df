"""Sketches: true to inner products on average, the same everywhere, and as int8 nearly as good."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.core.errors import DataError
from scoring.gradients import oracle as gradients_oracle
from scoring.gradients import sketches
from scoring.gradients.sketches import Projection, conflict_rate, cosines, dequantize, near_duplicates, quantize

ROWS = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).standard_normal((7, 24), np.float32))


def test_draws_are_the_same_on_any_machine() -> None:
    name = "model.layers.0.mlp.up_proj"
    found = Projection(rank=8, width=8192).draw(name, 100, 20)
    assert set(np.unique(found.signs)) == {-1, 1}
    assert hashlib.sha256(found.signs.tobytes()).hexdigest()[:16] == "4203a459eac56735"
    assert found.first == 3500
    np.testing.assert_allclose(found.inputs.T @ found.inputs, 20 / 8 * np.eye(8), atol=1e-12)
    np.testing.assert_allclose(found.inputs[0, :2], [0.486185, 0.498459], atol=1e-6)
    for other in (
        Projection(rank=8, width=8192, seed=8).draw(name, 100, 20),
        Projection(rank=8, width=8192).draw("another", 100, 20),
    ):
        assert not np.array_equal(found.signs, other.signs)
        assert not np.allclose(found.inputs, other.inputs)
    np.testing.assert_array_equal(Projection(rank=8, width=8192).draw(name, 3, 5).inputs, np.eye(5))


def test_layers_that_see_the_same_inputs_project_them_alike_but_sign_them_apart() -> None:
    projection = Projection(rank=8, width=8192)
    gate, up, down, other = (
        projection.draw(name, 30, i)
        for name, i in (("0.mlp.gate", 20), ("0.mlp.up", 20), ("0.mlp.down", 30), ("1.mlp.up", 20))
    )
    np.testing.assert_array_equal(gate.inputs, up.inputs)
    assert not np.array_equal(gate.signs, up.signs)
    assert not np.allclose(up.inputs, other.inputs)
    assert down.inputs.shape == (30, 8)


def test_what_layers_share_follows_their_inputs_whatever_the_order_of_layers() -> None:
    generator = torch.Generator().manual_seed(8)
    shapes = {"0.mlp.gate": (5, 20), "0.mlp.up": (6, 20), "0.mlp.down": (7, 9), "1.mlp.up": (6, 20)}
    uses = [(n, torch.randn(2, 4, i, generator=generator), torch.randn(2, 4, o, generator=generator))
            for n, (o, i) in shapes.items()]  # fmt: skip
    uses[1] = (uses[1][0], uses[0][1].detach(), uses[1][2])  # sees what the layer before sees
    uses.append(("0.mlp.gate", uses[3][1], uses[0][2]))  # another layer's inputs, through a P seen before
    projection = Projection(rank=8, width=64)
    projector = projection.projector(shapes)
    for order in (uses, uses[::-1], [uses[k] for k in (0, 3, 1, 4, 2, 0, 1)]):
        found, truth = projector.zeros(2, "cpu"), np.zeros((2, 64))
        for name, a, b in order:
            projector.add_linear(name, a, b, found)
            truth += [gradients_oracle.sketch(projection, {name: g}) for g in b.mT @ a]
        np.testing.assert_allclose(found, truth, atol=1e-4)


def test_inner_products_are_right_on_average() -> None:
    generator = torch.Generator().manual_seed(1)
    shapes = {"a": (5, 4), "b": (3, 6), "c": (7, 2)}
    g, d = ({n: torch.randn(s, generator=generator) for n, s in shapes.items()} for _ in range(2))
    truth = sum(float((g[n] * d[n]).sum()) for n in shapes)
    found = []
    for seed in range(300):
        one, other = (Projection(rank=3, width=16, seed=seed).of({n: x[None] for n, x in y.items()})[0] for y in (g, d))
        found.append(float(one @ other))
    error = np.std(found) / len(found) ** 0.5
    assert abs(np.mean(found) - truth) < 4 * error
    assert error < 1


def test_the_sketch_of_a_direction_is_that_of_a_whole_gradient() -> None:
    generator = torch.Generator().manual_seed(2)
    directions = {
        n: torch.randn(2, *s, generator=generator) for n, s in {"z": (5, 4), "b": (3, 6), "c": (7, 2)}.items()
    }
    projection = Projection(rank=3, width=11)
    for k, found in enumerate(projection.of(directions)):
        truth = gradients_oracle.sketch(projection, {n: d[k] for n, d in directions.items()})
        np.testing.assert_allclose(found, truth, atol=1e-5)
    turned = projection.of(dict(reversed(directions.items())))
    np.testing.assert_allclose(turned, projection.of(directions), atol=1e-5)
    assert projection.of({}).shape == (0, projection.width)


def test_sizes_below_one_are_refused() -> None:
    for wrong in ({"rank": 0}, {"width": 0}, {"seed": -1}):
        with pytest.raises(ValueError, match="must be at least"):
            Projection(**wrong)


@settings(derandomize=True)
@given(ROWS)
def test_codes_are_off_by_half_a_scale_at_most(x: np.ndarray) -> None:
    codes, scale = quantize(x)
    assert codes.dtype == np.int8
    assert scale.dtype == np.float32
    assert codes.nbytes == x.nbytes // 4
    assert (np.abs(codes).max(axis=1) == 127).all()
    assert (np.abs(dequantize(codes, scale) - x) <= 0.5001 * scale[:, None]).all()
    np.testing.assert_array_equal(quantize(-x)[0], -codes)


def test_rows_of_zeros_huge_tiny_and_not_finite() -> None:
    x = np.zeros((6, 3), np.float32)
    x[1, 0], x[2, 1], x[3], x[4] = np.nan, -np.inf, 1e38, np.finfo(np.float32).smallest_subnormal
    x[5] = [1, -2, 0.5]
    codes, scale = quantize(x)
    assert scale[0] == 0
    assert np.isnan(scale[1:3]).all()
    assert np.isfinite(scale[3:]).all()
    assert codes[[0, 1, 2, 4]].any() == False  # noqa: E712
    np.testing.assert_array_equal(dequantize(codes, scale)[0], 0)
    assert np.isnan(dequantize(codes, scale)[1:3]).all()
    np.testing.assert_array_equal(codes[5], [64, -127, 32])
    found = cosines(codes, np.eye(3, dtype=np.float32))
    assert np.isnan(found[[0, 1, 2, 4]]).all()
    assert np.isfinite(found[[3, 5]]).all()
    assert near_duplicates(codes, -1.0)[0].tolist() == [[3, 5]]


def test_no_rows() -> None:
    codes, scale = quantize(np.zeros((0, 8), np.float32))
    assert codes.shape == (0, 8)
    assert scale.shape == (0,)
    assert cosines(codes, np.ones((2, 8), np.float32)).shape == (0, 2)
    assert np.isnan(conflict_rate(codes))
    assert near_duplicates(codes, 0.5)[0].shape == (0, 2)


@settings(derandomize=True, deadline=None)
@given(ROWS, st.sampled_from([1, 2, 3, 100]))
def test_cosines_and_pairs_are_those_of_all_rows_at_once(x: np.ndarray, block: int) -> None:
    codes, _ = quantize(x)
    d = x[:2] + 1
    units = codes / np.linalg.norm(codes.astype(float), axis=1, keepdims=True)
    with pytest.MonkeyPatch.context() as patch:  # any size of the blocks
        patch.setattr(sketches, "_BLOCK_ROWS", block)
        np.testing.assert_allclose(
            cosines(codes, d), units @ (d / np.linalg.norm(d, axis=1, keepdims=True)).T, atol=1e-6
        )
        pairs, found = near_duplicates(codes, 0.1)
    gram = units @ units.T
    expected = [(a, b) for a in range(7) for b in range(a + 1, 7) if gram[a, b] >= 0.1]
    assert sorted(map(tuple, pairs.tolist())) == expected
    np.testing.assert_allclose(found, [gram[a, b] for a, b in pairs], atol=1e-6)


def test_conflict_rate_is_the_share_of_negative_pairs() -> None:
    x = np.random.default_rng(3).standard_normal((40, 16), np.float32) + 0.2
    x[5] = 0
    codes, _ = quantize(x)
    gram = codes.astype(int) @ codes.astype(int).T
    able = np.flatnonzero(codes.any(axis=1))
    truth = np.mean([gram[a, b] < 0 for a in able for b in able if a != b])
    assert abs(conflict_rate(codes, pairs=20_000) - truth) < 0.02
    assert conflict_rate(codes, seed=1) == conflict_rate(codes, seed=1)
    assert conflict_rate(quantize(np.array([[1, 0], [-1, 0]], np.float32))[0]) == 1.0
    assert conflict_rate(quantize(np.array([[1, 0], [1, 1]], np.float32))[0]) == 0.0


def test_too_many_pairs_are_an_error() -> None:
    codes, _ = quantize(np.ones((50, 4), np.float32))
    with pytest.raises(DataError, match=r"more than 100 pairs have a cosine of at least 0\.9"):
        near_duplicates(codes, 0.9, max_pairs=100)
    assert len(near_duplicates(codes, 0.9)[0]) == 50 * 49 // 2


def test_int8_keeps_the_cosines() -> None:
    x = np.random.default_rng(4).standard_normal((50, 4096), np.float32)
    d = np.random.default_rng(5).standard_normal((1, 4096), np.float32) + 0.2 * x[:1]
    exact = (x @ d.T)[:, 0] / np.linalg.norm(x, axis=1) / np.linalg.norm(d)
    assert np.abs(cosines(quantize(x)[0], d)[:, 0] - exact).max() < 0.001
