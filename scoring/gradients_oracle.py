"""The truth that `gradients` is tested against: one sample at a time, whole weight gradients, no tricks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scoring.gradients import Layers, Row, Scores, Tensors, oriented


def loss(model: Any, row: Row) -> Any:
    """Returns the mean of -log p(token | tokens before it) over all tokens of `row` but the first; 0 of none."""
    import torch

    ids = torch.tensor([list(row)])
    log_p = model(input_ids=ids, use_cache=False).logits[0].log_softmax(-1)
    terms = [-log_p[t, row[t + 1]] for t in range(len(row) - 1)]
    return torch.stack(terms).mean() if terms else log_p.sum() * 0


def gradient(model: Any, row: Row, layers: Layers) -> dict[str, Any]:
    """Returns the gradient of the row's loss by autograd, {layer: (o, i)}."""
    import torch

    if not len(row):
        return {n: torch.zeros_like(oriented(m, m.weight)) for n, m in layers.items()}
    found = torch.autograd.grad(loss(model, row), [m.weight for m in layers.values()])
    return {n: oriented(m, g) for (n, m), g in zip(layers.items(), found, strict=True)}


def score(model: Any, rows: Sequence[Row], layers: Layers, directions: Tensors) -> Scores:
    """Returns what `gradients.score` returns."""
    k = len(next(iter(directions.values()))) if directions else 0
    scores = Scores(np.zeros(len(rows)), np.zeros(len(rows)), np.zeros((len(rows), k)))
    for n, row in enumerate(rows):
        scores.loss[n] = loss(model, row).item() if len(row) else 0.0
        g = gradient(model, row, layers)
        scores.norm[n] = sum(float((w.double() ** 2).sum()) for w in g.values()) ** 0.5
        for j in range(k):
            scores.dots[n, j] = sum(float((w.double() * directions[name][j]).sum()) for name, w in g.items())
    return scores
