"""The fitted quality head: a frozen encoder and text statistics, combined and calibrated.

The encoder's part is a logistic regression on the embeddings of windows; its log-odds become one more value beside
those of the text, and an additive model (`scoring.quality.additive`) makes the score of all of them. What it learns
from are log-odds of rows that the regression has not seen; Platt's line (1999) on unseen rows calibrates the whole.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.core.hashing import hash64
from scoring.models.encoding import Floats
from scoring.quality import additive
from scoring.quality.additive import Additive

MIN_ROWS = 20  # of each class: fewer rows cannot be split and measured
MODEL = "model"  # the name of the encoder's log-odds among the values

_DEAD = 1e-6  # of the largest spread: what varies less is rounding, and its weight would be vast
_INVERSE_PENALTY = 0.002  # of standardised embeddings: hundreds of rows stand against hundreds of dimensions

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


class Labelled(NamedTuple):
    """A training row. `origin` says where it comes from: `kept`, `dropped`, a kind of degradation, or `label`."""

    row_id: str
    text: str
    good: bool
    origin: str
    domain: str = ""


@dataclass(frozen=True)
class Linear:
    """The log-odds of a window or of the mean of some: weights · embedding + bias, the scaling folded in."""

    weights: Doubles  # (d,)
    bias: float

    def logits(self, embeddings: npt.NDArray[np.floating]) -> Doubles:
        """Returns (n,) log-odds of (n, d) embeddings."""
        return np.asarray(embeddings.astype(np.float64) @ self.weights + self.bias, np.float64)


@dataclass(frozen=True)
class Head:
    """P(good) of a row from the encoder's log-odds and the values `names` of its text."""

    linear: Linear
    stack: Additive  # over the values, the encoder's log-odds last
    names: tuple[str, ...]

    def contributions(self, model_logits: Doubles, values: Doubles) -> Doubles:
        """Returns (n, f + 1): what each of (n, f) values, and the encoder last, adds to the log-odds."""
        return self.stack.contributions(np.column_stack([values, model_logits]))

    def probabilities(self, model_logits: Doubles, values: Doubles) -> Doubles:
        """Returns (n,) P(good)."""
        return sigmoid(self.stack.logits(np.column_stack([values, model_logits])))

    def to_bytes(self) -> bytes:
        """Returns the head as a safetensors file: the same head is the same bytes."""
        from safetensors.numpy import save

        names = np.frombuffer(json.dumps(self.names).encode(), np.uint8)
        linear = {"weights": self.linear.weights, "bias": np.array([self.linear.bias])}
        return bytes(save({**linear, **self.stack.tensors(), "names": names}))

    @staticmethod
    def from_bytes(content: bytes) -> "Head":
        """Returns the head that `to_bytes` wrote."""
        from safetensors.numpy import load

        tensors = load(content)
        linear = Linear(tensors["weights"], float(tensors["bias"][0]))
        return Head(linear, Additive.of(tensors), tuple(json.loads(tensors["names"].tobytes())))


class Fitted(NamedTuple):
    """A head fitted on all rows, and P(good) of each row by heads that have not seen it: (n,) by way."""

    head: Head
    unseen: Mapping[str, Doubles]  # `length`, `rules`, `model`, `both`


def sigmoid(logits: Doubles) -> Doubles:
    """Returns 1/(1 + exp(−logits)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logits)), np.float64)


def logit(probabilities: Doubles) -> Doubles:
    """Returns log(p/(1 − p)), within ±14."""
    inside = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)), np.float64)


def fit(embeddings: Floats, values: Doubles, chars: Doubles, good: Bools, folds: Ints, names: Sequence[str]) -> Fitted:
    """Returns the head that tells `good` (n,) from the rest, both classes weighing the same.

    `embeddings` (n, d) are the means of the rows' windows, `values` (n, f) are named by `names`, `chars` (n,) are the
    rows' lengths, which no head sees, and `folds` (n,) say which rows are left out together.
    """
    model = _unseen_linear(embeddings, good, folds)
    ways = {
        "length": _unseen(np.log1p(chars)[:, None], good, folds),
        "rules": _unseen(values, good, folds),
        "model": model,
        "both": _unseen_stack(embeddings, values, good, folds),
    }
    scale, shift = _platt(ways["both"], good)
    stack = additive.fit(np.column_stack([values, model]), good).scaled(scale, shift)
    calibrated = {way: _calibrated(logits, good) for way, logits in ways.items()}
    return Fitted(Head(fit_linear(embeddings, good), stack, (*names, MODEL)), calibrated)


def fit_linear(embeddings: Floats, good: Bools) -> Linear:
    """Returns the logistic regression on standardised embeddings, both classes weighing the same."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    points = embeddings.astype(np.float64)
    spread = points.std(axis=0)
    points[:, spread <= _DEAD * spread.max(initial=0.0)] = 0.0
    scaler = StandardScaler().fit(points)
    model = LogisticRegression(C=_INVERSE_PENALTY, class_weight="balanced", max_iter=5000)
    model.fit(scaler.transform(points), good)
    weights = model.coef_[0] / scaler.scale_
    return Linear(weights, float(model.intercept_[0] - weights @ scaler.mean_))


def _unseen_linear(embeddings: Floats, good: Bools, folds: Ints) -> Doubles:
    """Returns (n,) log-odds of each fold by the regression on the others."""
    found = np.zeros(len(good))
    for fold in np.unique(folds):
        out = folds == fold
        found[out] = fit_linear(embeddings[~out], good[~out]).logits(embeddings[out])
    return found


def _unseen(values: Doubles, good: Bools, folds: Ints) -> Doubles:
    """Returns (n,) log-odds of each fold by the additive model of the others."""
    found = np.zeros(len(good))
    for fold in np.unique(folds):
        out = folds == fold
        found[out] = additive.fit(values[~out], good[~out]).logits(values[out])
    return found


def _unseen_stack(embeddings: Floats, values: Doubles, good: Bools, folds: Ints) -> Doubles:
    """Returns (n,) log-odds of each fold by both parts fitted on the others, crosswise within these too."""
    found = np.zeros(len(good))
    for fold in np.unique(folds):
        out = folds == fold
        inner = _unseen_linear(embeddings[~out], good[~out], folds[~out])
        stack = additive.fit(np.column_stack([values[~out], inner]), good[~out])
        outer = fit_linear(embeddings[~out], good[~out]).logits(embeddings[out])
        found[out] = stack.logits(np.column_stack([values[out], outer]))
    return found


def _platt(logits: Doubles, good: Bools) -> tuple[float, float]:
    """Returns scale and shift that make log-odds those of the truth."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e6, max_iter=5000).fit(logits[:, None], good)
    return float(max(model.coef_[0, 0], 0.0)), float(model.intercept_[0])


def _calibrated(logits: Doubles, good: Bools) -> Doubles:
    scale, shift = _platt(logits, good)
    return sigmoid(scale * logits + shift)


def folds_of(rows: Sequence[Labelled], folds: int, seed: int) -> Ints:
    """Returns (n,) the fold of each row: each class dealt out in turn, in the order of a hash of the rows' ids."""
    found = np.zeros(len(rows), np.int64)
    for good in (False, True):
        ranked = sorted((hash64(seed, "fold", r.row_id), k) for k, r in enumerate(rows) if r.good is good)
        found[[k for _, k in ranked]] = np.arange(len(ranked)) % folds
    return found


def normal(label: object) -> str:
    """Returns a label as compared: without case and outer spaces."""
    return str(label).strip().lower()
