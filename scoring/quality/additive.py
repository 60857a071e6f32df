"""An additive model of P(good): each value falls into a bin, and each bin adds its own amount to the log-odds.

    logit P = bias + Σ_f table_f[bin of x_f]

Bins are cut at quantiles of the training rows. A ridge penalty applies to the steps between neighbouring bins, so that
rare bins differ little from their neighbours: a generalized additive model of step functions (Hastie and Tibshirani
1986), fitted as one logistic regression. A missing value has an amount of its own. What each value adds can be read
off, which is why no forest of trees stands here; on the labelled pages it is no worse than one (docs/quality.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BINS = 6
_INVERSE_PENALTY = 0.003  # of standardised steps

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Additive:
    """f tables over at most BINS bins each; amounts are centred on the training rows, so the bias is their mean."""

    edges: Floats  # (f, BINS − 1), ascending; +inf where a value has fewer
    table: Floats  # (f, BINS + 1) the amount of each bin; the last is that of a missing value
    bias: float

    def contributions(self, values: Floats) -> Floats:
        """Returns (n, f): what each value of (n, f) `values` adds to the log-odds, against the mean training row."""
        columns = range(values.shape[1])
        places = [_bins(values[:, k], self.edges[k]) for k in columns]
        return np.stack([self.table[k][places[k]] for k in columns], 1) if places else np.zeros(values.shape)

    def logits(self, values: Floats) -> Floats:
        """Returns (n,) log-odds."""
        return np.asarray(self.contributions(values).sum(axis=1) + self.bias)

    def scaled(self, scale: float, shift: float) -> "Additive":
        """Returns the model whose log-odds are `scale` times these plus `shift`."""
        return Additive(self.edges, self.table * scale, self.bias * scale + shift)

    def tensors(self) -> dict[str, Floats]:
        """Returns the model as named arrays."""
        return {"edges": self.edges, "table": self.table, "additive_bias": np.array([self.bias])}

    @staticmethod
    def of(tensors: Mapping[str, Floats]) -> "Additive":
        """Returns the model of `tensors`."""
        return Additive(tensors["edges"], tensors["table"], float(tensors["additive_bias"][0]))


def _bins(values: Floats, edges: Floats) -> npt.NDArray[np.int64]:
    """Returns (n,) the bin of each value; BINS for a missing one."""
    return np.where(np.isnan(values), BINS, np.searchsorted(edges, values, side="left"))


def fit(values: Floats, good: Bools) -> Additive:
    """Returns the model that tells `good` (n,) from the rest by (n, f) `values`, both classes weighing the same."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    edges = np.stack([_edges(column) for column in values.T]) if values.shape[1] else np.zeros((0, BINS - 1))
    steps = _steps(values, edges)
    scaler = StandardScaler().fit(steps)
    model = LogisticRegression(C=_INVERSE_PENALTY, class_weight="balanced", max_iter=5000)
    model.fit(scaler.transform(steps), good)
    weights = (model.coef_[0] / scaler.scale_).reshape(len(edges), BINS)
    table = np.stack([_amounts(w) for w in weights]) if len(edges) else np.zeros((0, BINS + 1))
    bare = Additive(edges, table, 0.0)
    means = bare.contributions(values).mean(axis=0)
    bias = float(model.intercept_[0] - model.coef_[0] @ (scaler.mean_ / scaler.scale_))
    return Additive(edges, table - means[:, None], bias + float(means.sum()))


def _edges(column: Floats) -> Floats:
    known = column[np.isfinite(column)]
    cuts = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1])) if len(known) else np.zeros(0)
    return np.concatenate([cuts, np.full(BINS - 1 - len(cuts), np.inf)])


def _steps(values: Floats, edges: Floats) -> Floats:
    """Returns (n, f · BINS): of each value whether it is missing, and whether it is above each edge, ½ if missing."""
    missing = np.isnan(values)[..., None]
    above = np.where(missing, np.where(np.isinf(edges), 0.0, 0.5), values[..., None] > edges)
    return np.concatenate([missing, above], axis=2, dtype=np.float64).reshape(len(values), -1)


def _amounts(weights: Floats) -> Floats:
    """Returns (BINS + 1,) the amounts of the bins and of a missing value, of the weights of its steps (BINS,)."""
    missing, steps = weights[0], weights[1:]
    return np.concatenate([[0.0], np.cumsum(steps), [missing + 0.5 * steps.sum()]])
