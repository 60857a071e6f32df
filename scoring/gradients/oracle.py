"""The oracle that `gradients` is tested against: one sample at a time, full weight gradients, no tricks."""

from collections.abc import Mapping, Sequence

import numpy as np

from scoring.gradients.layers import Layers, Tensors, oriented
from scoring.gradients.losses import Objective, Row, is_masked
from scoring.gradients.scorer import Scores
from scoring.gradients.sketches import Projection
from scoring.models.types import Model, Tensor

CAUSAL = Objective()


def loss(model: Model, row: Row, objective: Objective = CAUSAL) -> Tensor:
    """Returns the mean of -log p over the tokens that are to be predicted; 0 of none."""
    import torch

    ids = list(row)
    if is_masked(model):
        places = [n for n in range(3, len(ids), 7) if ids[n] not in objective.special_ids]
        places = places or [n for n in range(len(ids)) if ids[n] not in objective.special_ids][-1:]
        shown = [objective.mask_id if n in places else token for n, token in enumerate(ids)]
        asked = [(n, ids[n]) for n in places]
        logits = model(input_ids=torch.tensor([shown])).logits[0]
    else:
        asked = [(n, ids[n + 1]) for n in range(len(ids) - 1)]
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    log_p = logits.log_softmax(-1)
    terms = [-log_p[n, token] for n, token in asked]
    return torch.stack(terms).mean() if terms else log_p.sum() * 0


def gradient(model: Model, row: Row, layers: Layers, objective: Objective = CAUSAL) -> dict[str, Tensor]:
    """Returns the gradient of the row's loss by autograd, {layer: (o, i)}."""
    import torch

    if not len(row):
        return {n: torch.zeros_like(oriented(m, m.weight)) for n, m in layers.items()}
    found = torch.autograd.grad(loss(model, row, objective), [m.weight for m in layers.values()])
    return {n: oriented(m, g) for (n, m), g in zip(layers.items(), found, strict=True)}


def score(
    model: Model, rows: Sequence[Row], layers: Layers, directions: Tensors, objective: Objective = CAUSAL
) -> Scores:
    """Returns what `gradients.score` returns."""
    k = len(next(iter(directions.values()))) if directions else 0
    scores = Scores(np.zeros(len(rows)), np.zeros(len(rows)), np.zeros((len(rows), k)))
    for n, row in enumerate(rows):
        scores.loss[n] = loss(model, row, objective).item() if len(row) else 0.0
        g = gradient(model, row, layers, objective)
        scores.norm[n] = sum(float((w.double() ** 2).sum()) for w in g.values()) ** 0.5
        for j in range(k):
            scores.dots[n, j] = sum(float((w.double() * directions[name][j]).sum()) for name, w in g.items())
    return scores


def sketch(projection: Projection, gradient: Mapping[str, Tensor]) -> Tensor:
    """Returns the sketch (width,) of a whole gradient {layer: (o, i)}, value by value."""
    found = np.zeros(projection.width)
    for name, g in gradient.items():
        inputs, signs, first = projection.draw(name, *g.shape)
        values = (g.double().numpy() @ inputs * signs).ravel()
        for n, value in enumerate(values):
            found[(first + n) % projection.width] += value
    return found
