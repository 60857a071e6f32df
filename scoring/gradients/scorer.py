"""Per-sample gradients of a language model, in one forward and one backward pass per batch.

g_n is the gradient of the loss of sample n (`losses`) with respect to the weights of the scored layers
(`layers`). Its norm and its dot products with directions are exact (`ghost`), and a sketch of it (`sketches`)
costs next to nothing beside them, or comes alone. Each layer is done with as soon as the backward pass has
reached it: no per-sample gradient of the whole model ever exists. A row's scores do not depend on its batch.
`gradients_oracle` is the slow truth that this module is tested against.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.gradients import ghost, losses
from scoring.gradients.layers import Layers, Tensors, Use, requiring_grad, shapes, tapped, uses
from scoring.gradients.losses import Batch, Objective, Row, batches
from scoring.gradients.sketches import Float32s, Projection
from scoring.models.types import Model, Module, Tensor

Floats = npt.NDArray[np.float64]


class Scores(NamedTuple):
    """What one model says of n samples and k directions."""

    loss: Floats  # (n,) mean token loss
    norm: Floats  # (n,) ‖g‖
    dots: Floats  # (n, k) ⟨g, D⟩
    sketch: Float32s | None = None  # (n, s), where a projection was given


class Scorer:
    """A model ready to score rows along `directions` {layer: (k, o, i)}: what is drawn is drawn once."""

    def __init__(self, model: Model, layers: Layers, directions: Tensors, projection: Projection | None = None) -> None:
        parameter = next(model.parameters())
        self.model, self.device = model, parameter.device
        self.uses = uses(model, layers)
        self.directions = {n: d.to(self.device) for n, d in directions.items()}
        self.k = len(next(iter(directions.values()))) if directions else 0
        self.projector = projection and projection.projector(shapes(layers), device=self.device, dtype=parameter.dtype)
        self.targets = self.projector.of(self.directions) if self.projector else np.zeros((0, 0), np.float32)

    def score(
        self, rows: Sequence[Row], *, batch_tokens: int, exact: bool = True, objective: Objective | None = None
    ) -> Scores:
        """Returns loss, gradient norm, dot products of `rows` with the directions, and sketches.

        Not `exact`, norms and dot products are those of the sketches: no gradient is made, which takes a third
        less time. A row that predicts nothing (of fewer than two tokens, on a causal model) has loss and
        gradient 0. Rows of similar length go through the model together, `batch_tokens` padded tokens at a time.

        Raises:
          ConfigError: a layer mixes rows or is used twice, or a masked model has no mask token.
          ValueError: not `exact`, and no projection.
        """
        if not exact and self.projector is None:
            raise ValueError("scores from sketches need a projection")
        scores = self._zeros(len(rows))
        with requiring_grad(self.model, []):
            for picked, batch in batches(self.model, rows, batch_tokens, objective or Objective()):
                for column, values in zip(scores, self._of(batch, exact), strict=True):
                    if column is not None:
                        column[picked] = values
        return scores

    def _zeros(self, n: int) -> Scores:
        sketch = np.zeros((n, self.projector.width), np.float32) if self.projector else None
        return Scores(np.zeros(n), np.zeros(n), np.zeros((n, self.k)), sketch)

    def _of(self, batch: Batch, exact: bool) -> Scores:
        """Returns the scores of a batch."""
        sums = _Sums(self, batch, exact)
        head = losses.plain_head(self.model)
        hooked = [use for use in self.uses if use.module is not head]
        with tapped(hooked, batch.ids.shape, sums.take):
            loss = losses.backpropagate(self.model, batch, self._head(head, sums))
        return sums.scores(loss.double().cpu().numpy())

    def _head(self, head: Module | None, sums: "_Sums") -> losses.TakeHead:
        found = [use for use in self.uses if use.module is head]

        def take(rows: slice, a: Tensor, b: Tensor) -> None:
            for use in found:
                sums.take(use, rows, a, b)

        return take


def score(
    model: Model, rows: Sequence[Row], layers: Layers, directions: Tensors, *, batch_tokens: int,
    projection: Projection | None = None, exact: bool = True, objective: Objective | None = None,
) -> Scores:  # fmt: skip
    """Returns what a `Scorer` makes of `rows`."""
    scorer = Scorer(model, layers, directions, projection)
    return scorer.score(rows, batch_tokens=batch_tokens, exact=exact, objective=objective)


@dataclass
class _Sums:
    """Squared norms (b,), dot products (b, k) and sketches of a batch, over the layers seen so far."""

    scorer: Scorer
    batch: Batch
    exact: bool
    squares: Tensor = field(init=False)
    dots: Tensor = field(init=False)
    sketch: Tensor | None = field(init=False)
    heads: list[tuple[slice, Tensor, Tensor]] = field(
        default_factory=list
    )  # of the tied head: rows, a, b at the tokens

    def __post_init__(self) -> None:
        import torch

        rows, device = len(self.batch.ids), self.scorer.device
        self.squares = torch.zeros(rows, dtype=torch.float64, device=device)
        self.dots = torch.zeros(rows, self.scorer.k, dtype=torch.float64, device=device)
        self.sketch = self.scorer.projector.zeros(rows, device) if self.scorer.projector else None

    def take(self, use: Use, rows: slice, a: Tensor, b: Tensor) -> None:
        """Adds what one use of a layer's weight contributes to some rows."""
        (self._take_table if use.kind == "table" else self._take_linear)(use, rows, a, b)

    def _take_linear(self, use: Use, rows: slice, a: Tensor, b: Tensor) -> None:
        if self.scorer.projector and self.sketch is not None:
            self.scorer.projector.add_linear(use.name, a, b, self.sketch[rows])
        if not self.exact:
            return
        self._add(rows, ghost.linear(a, b, self._direction(use.name, b.shape[-1], a)))
        if use.kind == "head":
            self.heads.append((rows, a, ghost.at_tokens(b, self.batch.ids[rows])))

    def _take_table(self, use: Use, rows: slice, tokens: Tensor, e: Tensor) -> None:
        if use.module.padding_idx is not None:  # which autograd gives no gradient
            e = e.where((tokens != use.module.padding_idx)[..., None], 0.0)
        if self.scorer.projector and self.sketch is not None:
            self.scorer.projector.add_table(use.name, tokens, e, self.sketch[rows])
        if not self.exact:
            return
        self._add(rows, ghost.table(tokens, e, self._direction(use.name, len(use.module.weight), e)))
        for some, a, picked in self.heads:
            self.squares[some] += 2 * ghost.cross(a, picked, e[some])

    def _direction(self, name: str, o: int, a: Tensor) -> Tensor:
        return self.scorer.directions[name] if self.scorer.directions else a.new_zeros(0, o, a.shape[-1])

    def _add(self, rows: slice, found: tuple[Tensor, Tensor]) -> None:
        self.squares[rows] += found[0]
        self.dots[rows] += found[1]

    def scores(self, loss: Floats) -> Scores:
        """Returns the sums as scores."""
        sketch = None if self.sketch is None else self.sketch.cpu().numpy()
        if self.exact or sketch is None:
            norm = self.squares.clamp(min=0).sqrt()  # rounding may leave a tied weight's just below 0
            return Scores(loss, norm.cpu().numpy(), self.dots.cpu().numpy(), sketch)
        wide = sketch.astype(np.float64)
        return Scores(loss, np.linalg.norm(wide, axis=1), wide @ self.scorer.targets.T, sketch)
