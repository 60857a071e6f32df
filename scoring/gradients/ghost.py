"""What a per-sample gradient amounts to, from the inputs and output gradients of one layer: exact, never kept.

For a linear layer with inputs a (t, i) and output gradients b (t, o) the gradient is bᵀa, so that

    ‖g‖² = ⟨aaᵀ, bbᵀ⟩        ⟨g, D⟩ = Σ_t b_tᵀ D a_t

(Goodfellow 2015, arXiv 1510.01799; "ghost norm", Li et al. 2022, arXiv 2110.05679). For a table of token
embeddings, looked up at tokens tok with output gradients e (t, i), it is E = onehot(tok)ᵀ e. Where the output
layer is tied to the table, g = H + E with H = bᵀa, and

    ‖g‖² = ‖H‖² + ‖E‖² + 2 Σ_{s,t} b_s[tok_t] (a_s · e_t)

Sums are taken in float32 at least, whatever the precision of the model.
"""

from scoring.models.types import Tensor

_CHUNK_ELEMENTS = {"cpu": 1 << 20, "cuda": 1 << 26}  # of transient gradients: 4 MB stay in a CPU's cache
_STORE_COST = 9  # one element stored or read again, in multiply-adds; measured


def wide(x: Tensor) -> Tensor:
    """Returns `x` in float32, unless it already is as precise."""
    import torch

    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def linear(a: Tensor, b: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ‖bᵀa‖² (b,) and ⟨bᵀa, D⟩ (b, k) of `a` (b, t, i), `b` (b, t, o), D (k, o, i), the cheaper way."""
    if directly(a.shape[1], a.shape[2], b.shape[2], len(direction)):
        return by_gradients(a, b, direction)
    return by_grams(a, b, direction)


def directly(t: int, i: int, o: int, k: int) -> bool:
    """Returns whether bᵀa is cheaper than Gram matrices, for t tokens, i inputs, o outputs, k directions.

    bᵀa costs t·i·o multiply-adds, and i·o elements stored, read for the norm and for each direction. The
    other way costs t²·(i + o) for the Gram matrices, and t·i·o again for each direction.
    """
    return t * i * o + _STORE_COST * (2 + k) * i * o <= t * t * (i + o) + k * t * i * o


def by_gradients(a: Tensor, b: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ‖bᵀa‖² (b,) and ⟨bᵀa, D⟩ (b, k) through transient pieces of the gradients of a few samples."""
    i, o = a.shape[2], b.shape[2]
    limit = _CHUNK_ELEMENTS.get(a.device.type, _CHUNK_ELEMENTS["cpu"])
    rows, width = max(1, limit // (i * o)), max(1, min(o, limit // i))
    squares, dots = wide(b.new_zeros(len(b))), wide(b.new_zeros(len(b), len(direction)))
    for n in range(0, len(b), rows):
        for start in range(0, o, width):
            part = slice(start, start + width)
            _add_piece(a[n : n + rows], b[n : n + rows, :, part], direction[:, part], squares[n:], dots[n:])
    return squares, dots


def _add_piece(a: Tensor, b: Tensor, direction: Tensor, squares: Tensor, dots: Tensor) -> None:
    """Adds the part of the norms and dot products that some outputs of some samples make."""
    import torch

    g = wide(torch.bmm(b.mT, a)).flatten(1)
    squares[: len(g)] += torch.linalg.vector_norm(g, dim=1).square()
    for j, d in enumerate(direction):
        dots[: len(g), j] += torch.mv(g, d.reshape(-1).to(g.dtype))


def by_grams(a: Tensor, b: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ⟨aaᵀ, bbᵀ⟩ (b,) and Σ_t b_tᵀ D a_t (b, k), without any gradient."""
    import torch

    a, b = wide(a), wide(b)
    squares = torch.einsum("btu,btu->b", a @ a.mT, b @ b.mT)
    dots = [torch.einsum("bto,bto->b", a @ d.T.to(a.dtype), b) for d in direction]
    return squares, torch.stack(dots, 1) if dots else b.new_zeros(len(b), 0)


def table(tokens: Tensor, e: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ‖E‖² (b,) and ⟨E, D⟩ (b, k) of `tokens` (b, t), `e` (b, t, i), D (k, v, i).

    ‖E‖² is the sum of e_s · e_t over all pairs of places that hold one token.
    """
    import torch

    e = wide(e)
    same = tokens[:, :, None] == tokens[:, None, :]
    squares = (e @ e.mT).where(same, 0.0).sum((1, 2))
    dots = [torch.einsum("bti,bti->b", d[tokens].to(e.dtype), e) for d in direction]
    return squares, torch.stack(dots, 1) if dots else e.new_zeros(len(e), 0)


def at_tokens(b: Tensor, tokens: Tensor) -> Tensor:
    """Returns b_s[tok_t] (b, s, t) of `b` (b, t, v): all that the cross term needs of the largest tensor."""
    t = tokens.shape[1]
    return wide(b.gather(2, tokens[:, None, :].expand(-1, t, -1)))


def cross(a: Tensor, picked: Tensor, e: Tensor) -> Tensor:
    """Returns ⟨H, E⟩ (b,) of head inputs `a` (b, t, i), `picked` by `at_tokens`, table gradients `e` (b, t, i)."""
    import torch

    return torch.einsum("bst,bst->b", picked, wide(a) @ wide(e).mT)
