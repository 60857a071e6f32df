"""Per-sample gradients of a language model, in one forward and one backward pass a batch.

g_n is the gradient of the loss of sample n (`losses`) with respect to the weights of the scored layers
(`layers`). Its norm and its dot products with directions are exact (`ghost`), and a sketch of it (`sketches`)
costs next to nothing beside them, or comes alone. Each layer is done with as soon as the backward pass has
reached it: no per-sample gradient of the whole model ever exists. A row's scores do not depend on its batch.
`gradients_oracle` is the slow truth that this module is tested against.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scoring import ghost, losses
from scoring.costate import costates, hessian_product, mean_gradient
from scoring.layers import Layers, Tensors, Use, oriented, requiring_grad, scored_layers, shapes, tapped, uses
from scoring.losses import MIN_TOKENS, Batch, Objective, Row, batches, padded, row_losses
from scoring.sketches import Float32s, Projection, Projector

__all__ = [
    "MIN_TOKENS", "Floats", "Layers", "Objective", "Projection", "Row", "Scores", "Tensors", "costates",
    "hessian_product", "mean_gradient", "oriented", "padded", "row_losses", "score", "scored_layers",
]  # fmt: skip

Floats = npt.NDArray[np.float64]


class Scores(NamedTuple):
    """What one model says of n samples and k directions."""

    loss: Floats  # (n,) mean token loss
    norm: Floats  # (n,) ‖g‖
    dots: Floats  # (n, k) ⟨g, D⟩
    sketch: Float32s | None = None  # (n, s), where a projection was given


def score(
    model: Any, rows: Sequence[Row], layers: Layers, directions: Tensors, *, batch_tokens: int,
    projection: Projection | None = None, exact: bool = True, objective: Objective | None = None,
) -> Scores:  # fmt: skip
    """Returns loss, gradient norm, dot products of `rows` with `directions` {layer: (k, o, i)}, and sketches.

    Not `exact`, norms and dot products are those of the sketches: no gradient is made, which takes a third less
    time. A row that predicts nothing (of fewer than two tokens, on a causal model) has loss and gradient 0. Rows
    of similar length go through the model together, `batch_tokens` padded tokens at a time.

    Raises:
      ConfigError: a layer mixes rows or is used twice, or a masked model has no mask token.
      ValueError: not `exact`, and no projection.
    """
    if not exact and projection is None:
        raise ValueError("scores from sketches need a projection")
    job = _Job(model, layers, directions, projection, exact)
    scores = _zeros(len(rows), job.k, projection)
    with requiring_grad(model, []):
        for picked, batch in batches(model, rows, batch_tokens, objective or Objective()):
            for column, values in zip(scores, job.scores(batch), strict=True):
                if column is not None:
                    column[picked] = values
    return scores


def _zeros(n: int, k: int, projection: Projection | None) -> Scores:
    sketch = np.zeros((n, projection.width), np.float32) if projection else None
    return Scores(np.zeros(n), np.zeros(n), np.zeros((n, k)), sketch)


class _Job:
    """What is the same for all batches."""

    def __init__(
        self, model: Any, layers: Layers, directions: Tensors, projection: Projection | None, exact: bool
    ) -> None:
        parameter = next(model.parameters())
        self.model, self.exact, self.device = model, exact, parameter.device
        self.uses = uses(model, layers)
        self.directions = {n: d.to(self.device) for n, d in directions.items()}
        self.k = len(next(iter(directions.values()))) if directions else 0
        self.projector: Projector | None = None
        if projection:
            self.projector = projection.projector(shapes(layers), device=self.device, dtype=parameter.dtype)
            self.targets = self.projector.of(self.directions)

    def scores(self, batch: Batch) -> Scores:
        """Returns the scores of a batch."""
        sums = _Sums(self, batch)
        head = losses.plain_head(self.model)
        hooked = [use for use in self.uses if use.module is not head]
        with tapped(hooked, batch.ids.shape, sums.take):
            loss = losses.backpropagate(self.model, batch, self._head(head, sums))
        return sums.scores(loss.double().cpu().numpy())

    def _head(self, head: Any, sums: "_Sums") -> Callable[[slice, Any, Any], None]:
        found = [use for use in self.uses if use.module is head]

        def take(rows: slice, a: Any, b: Any) -> None:
            for use in found:
                sums.take(use, rows, a, b)

        return take


@dataclass
class _Sums:
    """Squared norms (b,), dot products (b, k) and sketches of a batch, over the layers seen so far."""

    job: _Job
    batch: Batch
    squares: Any = field(init=False)
    dots: Any = field(init=False)
    sketch: Any = field(init=False)
    heads: list[tuple[slice, Any, Any]] = field(default_factory=list)  # of the tied head: rows, a, b at the tokens

    def __post_init__(self) -> None:
        import torch

        rows, device = len(self.batch.ids), self.job.device
        self.squares = torch.zeros(rows, dtype=torch.float64, device=device)
        self.dots = torch.zeros(rows, self.job.k, dtype=torch.float64, device=device)
        self.sketch = self.job.projector.zeros(rows, device) if self.job.projector else None

    def take(self, use: Use, rows: slice, a: Any, b: Any) -> None:
        """Adds what one use of a layer's weight contributes to some rows."""
        (self._take_table if use.kind == "table" else self._take_linear)(use, rows, a, b)

    def _take_linear(self, use: Use, rows: slice, a: Any, b: Any) -> None:
        if self.job.projector:
            self.job.projector.add_linear(use.name, a, b, self.sketch[rows])
        if not self.job.exact:
            return
        self._add(rows, ghost.linear(a, b, self._direction(use.name, b.shape[-1], a)))
        if use.kind == "head":
            self.heads.append((rows, a, ghost.at_tokens(b, self.batch.ids[rows])))

    def _take_table(self, use: Use, rows: slice, tokens: Any, e: Any) -> None:
        if use.module.padding_idx is not None:  # which autograd gives no gradient
            e = e.where((tokens != use.module.padding_idx)[..., None], 0.0)
        if self.job.projector:
            self.job.projector.add_table(use.name, tokens, e, self.sketch[rows])
        if not self.job.exact:
            return
        self._add(rows, ghost.table(tokens, e, self._direction(use.name, len(use.module.weight), e)))
        for some, a, picked in self.heads:
            self.squares[some] += 2 * ghost.cross(a, picked, e[some])

    def _direction(self, name: str, o: int, a: Any) -> Any:
        return self.job.directions[name] if self.job.directions else a.new_zeros(0, o, a.shape[-1])

    def _add(self, rows: slice, found: tuple[Any, Any]) -> None:
        self.squares[rows] += found[0]
        self.dots[rows] += found[1]

    def scores(self, loss: Floats) -> Scores:
        """Returns the sums as scores."""
        sketch = None if self.sketch is None else self.sketch.cpu().numpy()
        if self.job.exact or sketch is None:
            norm = self.squares.clamp(min=0).sqrt()  # rounding may leave a tied weight's just below 0
            return Scores(loss, norm.cpu().numpy(), self.dots.cpu().numpy(), sketch)
        wide = sketch.astype(np.float64)
        return Scores(loss, np.linalg.norm(wide, axis=1), wide @ self.job.targets.T, sketch)
