"""Per-sample gradients of a causal language model, in one forward and one backward pass a batch.

g_n is the gradient of the mean token loss of sample n with respect to the weights of the scored layers.
For a linear layer with inputs a (t, i) and output gradients b (t, o) it is bᵀa, so that

    ‖g‖² = ⟨aaᵀ, bbᵀ⟩        ⟨g, D⟩ = Σ_t b_tᵀ D a_t

(Goodfellow 2015, arXiv 1510.01799; "ghost norm", Li et al. 2022, arXiv 2110.05679). Each layer is done with
as soon as the backward pass has reached it: no per-sample gradient of the whole model ever exists.
Padding stands on the right, where a causal model never looks back at it, and has no loss: it is exact.
`gradients_oracle` is the slow truth that this module is tested against.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scoring import windows
from scoring.errors import ConfigError

Floats = npt.NDArray[np.float64]
Row = Sequence[int]  # token ids of one sample
Layers = Mapping[str, Any]  # name → linear module
Tensors = Mapping[str, Any]  # layer name → tensor

MIN_TOKENS = 2  # one to see, one to predict

_CHUNK_ELEMENTS = 1 << 20  # of transient per-sample gradients of one layer: 4 MB stay in cache
_STORE_COST = 9  # one element stored or read again, in multiply-adds; measured


class Scores(NamedTuple):
    """What one model says of n samples and k directions."""

    loss: Floats  # (n,) mean token loss
    norm: Floats  # (n,) ‖g‖
    dots: Floats  # (n, k) ⟨g, D⟩


def scored_layers(model: Any, which: str) -> dict[str, Any]:
    """Returns the linear layers of `model` by name: `all`, or those of its `last:K` transformer blocks.

    A layer that shares its weight with an embedding (tied output layers) is no scored layer.

    Raises:
      ConfigError: there is none, there are fewer than K blocks, or two layers share a weight.
    """
    prefixes = ("",) if which == "all" else _last_blocks(model, int(which.removeprefix("last:")))
    embedded = {id(m.weight) for m in model.modules() if _is_embedding(m)}
    found = {
        name: module
        for name, module in model.named_modules()
        if _is_linear(module) and name.startswith(prefixes) and id(module.weight) not in embedded
    }
    if not found:
        raise ConfigError("the model has no linear layer to score", where=f"gradients.layers: {which}")
    if len({id(m.weight) for m in found.values()}) < len(found):
        raise ConfigError("two layers share one weight", remedy="name another reference.model")
    return found


def _is_embedding(module: Any) -> bool:
    from torch import nn

    return isinstance(module, nn.Embedding)


def _is_linear(module: Any) -> bool:
    from torch import nn
    from transformers.pytorch_utils import Conv1D  # GPT-2's linear layer, its weight transposed

    return isinstance(module, nn.Linear | Conv1D)


def _last_blocks(model: Any, count: int) -> tuple[str, ...]:
    """Returns the name prefixes of the last `count` transformer blocks."""
    from torch import nn

    total = model.config.num_hidden_layers
    stacks = [n for n, m in model.named_modules() if isinstance(m, nn.ModuleList) and len(m) == total]
    if not stacks or count > total:
        raise ConfigError(
            f"the model has {total if stacks else 'no'} transformer blocks",
            where=f"gradients.layers: last:{count}",
            remedy="set gradients.layers to all, or to fewer blocks",
        )
    return tuple(f"{stacks[0]}.{k}." for k in range(total - count, total))


def oriented(module: Any, weight: Any) -> Any:
    """Returns `weight`, of the shape of the module's, as (o, i)."""
    from torch import nn

    return weight if isinstance(module, nn.Linear) else weight.T


def score(model: Any, rows: Sequence[Row], layers: Layers, directions: Tensors, *, batch_tokens: int) -> Scores:
    """Returns loss, gradient norm and dot products of `rows` with `directions` {layer: (k, o, i)}.

    A row of fewer than two tokens predicts nothing: its loss and its gradient are 0. Rows of similar length
    go through the model together, `batch_tokens` padded tokens at a time.
    """
    k = len(next(iter(directions.values()))) if directions else 0
    scores = Scores(np.zeros(len(rows)), np.zeros(len(rows)), np.zeros((len(rows), k)))
    with _requiring_grad(model, []):
        for picked in _batches(rows, batch_tokens):
            found = _score_batch(model, [rows[n] for n in picked], layers, directions, k)
            for column, values in zip(scores, found, strict=True):
                column[picked] = values
    return scores


def mean_gradient(model: Any, rows: Sequence[Row], layers: Layers, *, batch_tokens: int) -> dict[str, Any]:
    """Returns the mean of the gradients of `rows`, {layer: (o, i)}; zeros without rows."""
    import torch

    weights = [m.weight for m in layers.values()]
    totals = [torch.zeros_like(w) for w in weights]
    with _requiring_grad(model, weights):
        for picked in _batches(rows, batch_tokens):
            loss = row_losses(model, *padded([rows[n] for n in picked])).sum() / len(rows)
            found = torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
            totals = [total + grad for total, grad in zip(totals, found, strict=True)]
    return {n: oriented(m, t).detach().contiguous() for (n, m), t in zip(layers.items(), totals, strict=True)}


def _batches(rows: Sequence[Row], batch_tokens: int) -> Iterator[list[int]]:
    """Yields batches of the indices of the rows that predict a token."""
    long = [n for n, row in enumerate(rows) if len(row) >= MIN_TOKENS]
    for batch in windows.batches([len(rows[n]) for n in long], batch_tokens):
        yield [long[n] for n in batch]


def padded(rows: Sequence[Row]) -> tuple[Any, Any]:
    """Returns token ids (b, t), padded on the right, and lengths (b,).

    A row is padded with its own last token: no other token's weights, be they infinite, touch it.
    """
    import torch

    lengths = [len(r) for r in rows]
    ids = [[*row, *[row[-1]] * (max(lengths) - len(row))] for row in rows]
    return torch.tensor(ids), torch.tensor(lengths)


def row_losses(model: Any, ids: Any, lengths: Any) -> Any:
    """Returns the mean token loss (b,) of each row of `ids` (b, t): every token but the first is predicted."""
    from torch.nn.functional import cross_entropy

    logits = model(input_ids=ids, use_cache=False).logits
    following, weights = _predicted(ids, lengths, logits.dtype)
    losses = cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="none").view(ids.shape)
    return losses.where(weights > 0, 0.0).mul(weights).sum(1)


def _predicted(ids: Any, lengths: Any, dtype: Any) -> tuple[Any, Any]:
    """Returns the token that follows each one, and its weight in its row's mean loss: 0 in padding; both (b, t)."""
    import torch

    real = torch.arange(1, ids.shape[1] + 1) < lengths[:, None]
    return ids.roll(-1, dims=1), real.to(dtype) / (lengths[:, None] - 1).clamp(min=1)


def backpropagate(model: Any, ids: Any, lengths: Any) -> Any:
    """Returns what `row_losses` returns, and sends its gradients back through the model.

    The gradient of a token's loss with respect to its logits is p - onehot: written over log p in place, it
    saves three passes over the largest tensor there is.
    """
    logits = model(input_ids=ids, use_cache=False).logits
    following, weights = _predicted(ids, lengths, logits.dtype)
    log_p = logits.detach().log_softmax(-1)
    losses = -log_p.gather(2, following[..., None])[..., 0].where(weights > 0, 0.0).mul(weights).sum(1)
    gradient = log_p.exp_()
    gradient.scatter_add_(2, following[..., None], gradient.new_full((*ids.shape, 1), -1.0))
    logits.backward(gradient.mul_(weights[..., None]))
    return losses


def _score_batch(model: Any, rows: Sequence[Row], layers: Layers, directions: Tensors, k: int) -> tuple[Any, Any, Any]:
    import torch

    ids, lengths = padded(rows)
    sums = _Sums(
        directions, torch.zeros(len(rows), dtype=torch.float64), torch.zeros(len(rows), k, dtype=torch.float64)
    )
    with _tapped(layers, ids.shape, sums.add):
        losses = backpropagate(model, ids, lengths)
    return losses.double().numpy(), sums.squares.sqrt().numpy(), sums.dots.numpy()


@contextmanager
def _requiring_grad(model: Any, weights: Sequence[Any]) -> Iterator[None]:
    """Lets gradients flow to `weights` alone; afterwards, to what they flowed to before."""
    before = {p: p.requires_grad for p in model.parameters()}
    wanted = set(weights)
    try:
        for parameter in before:
            parameter.requires_grad_(parameter in wanted)
        yield
    finally:
        for parameter, flag in before.items():
            parameter.requires_grad_(flag)


@contextmanager
def _tapped(layers: Layers, shape: Sequence[int], take: Callable[[str, Any, Any], None]) -> Iterator[None]:
    """Calls `take(layer, a (b, t, i), b (b, t, o))` for every layer that the backward pass reaches."""
    handles = [m.register_forward_hook(_hook(name, shape, take)) for name, m in layers.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hook(name: str, shape: Sequence[int], take: Callable[[str, Any, Any], None]) -> Callable[..., None]:
    def forward(_: Any, inputs: tuple[Any, ...], output: Any) -> None:
        a = inputs[0].detach()
        if a.shape[:-1] != shape:
            raise ConfigError(
                f"layer {name} sees inputs of shape {tuple(a.shape)}, not (rows, tokens, features)",
                remedy="experts that share a batch cannot be scored: name another reference.model or gradients.layers",
            )
        if not output.requires_grad:  # the first scored layer: the backward pass need go no further
            output.requires_grad_()
        output.register_hook(lambda b: take(name, a, b))

    return forward


@dataclass
class _Sums:
    """Squared norms (b,) and dot products (b, k) of a batch, summed over the layers seen so far."""

    directions: Tensors
    squares: Any
    dots: Any

    def add(self, name: str, a: Any, b: Any) -> None:
        """Adds a layer with inputs `a` (b, t, i) and output gradients `b` (b, t, o)."""
        direction = self.directions[name] if self.directions else a.new_zeros(0, b.shape[-1], a.shape[-1])
        if directly(a.shape[1], a.shape[2], b.shape[2], len(direction)):
            found = by_gradients(a, b, direction)
        else:
            found = by_grams(a, b, direction)
        self.squares += found[0]
        self.dots += found[1]


def directly(t: int, i: int, o: int, k: int) -> bool:
    """Returns whether bᵀa is cheaper than Gram matrices, for t tokens, i inputs, o outputs, k directions.

    bᵀa costs t·i·o multiply-adds, and i·o elements stored, read for the norm and for each direction. The
    other way costs t²·(i + o) for the Gram matrices, and t·i·o again for each direction.
    """
    return t * i * o + _STORE_COST * (2 + k) * i * o <= t * t * (i + o) + k * t * i * o


def by_gradients(a: Any, b: Any, direction: Any) -> tuple[Any, Any]:
    """Returns ‖bᵀa‖² (b,) and ⟨bᵀa, D⟩ (b, k) through the transient gradients of a few samples at a time."""
    import torch

    flat = direction.flatten(1).T
    rows = max(1, _CHUNK_ELEMENTS // flat.shape[0])
    squares, dots = [], []
    for part_a, part_b in zip(a.split(rows), b.split(rows), strict=True):
        g = torch.bmm(part_b.transpose(1, 2), part_a).flatten(1)
        squares.append(torch.linalg.vector_norm(g, dim=1).square())
        dots.append(g @ flat)
    return torch.cat(squares), torch.cat(dots)


def by_grams(a: Any, b: Any, direction: Any) -> tuple[Any, Any]:
    """Returns ⟨aaᵀ, bbᵀ⟩ (b,) and Σ_t b_tᵀ D a_t (b, k), without any gradient."""
    import torch

    squares = torch.einsum("btu,btu->b", a @ a.mT, b @ b.mT)
    dots = [torch.einsum("bto,bto->b", a @ d.T, b) for d in direction]
    return squares, torch.stack(dots, 1) if dots else b.new_zeros(len(b), 0)


def costates(gradients: Sequence[Tensors]) -> list[dict[str, Any] | None]:
    """Returns λ_{t+1} for each checkpoint t of `gradients` ∇J(θ_t); None for the last.

    λ_T = ∇J(θ_T) and λ_t = λ_{t+1} + ∇J(θ_t): DELT (arXiv 2506.21545, eq. 8) without its Hessian term.
    """
    found: list[dict[str, Any] | None] = []
    following: dict[str, Any] | None = None
    for gradient in reversed(gradients):
        found.append(following)
        following = {n: g + following[n] if following else g for n, g in gradient.items()}
    return found[::-1]
