"""The distilled scorer: gradient scores of a share of the rows, predicted for the others from cheap features.

Steps 3 and 4 of DELT (arXiv 2506.21545). A kernel ridge regression with the kernel exp(-‖x - y‖²) on
standardised features, from landmark rows (Nyström: Williams and Seeger 2000). A missing value counts as the
mean of the feature, and missingness is a feature too. Scores are fitted as normal quantiles, since a few
huge ones would rule the squares, and a prediction is the expected quantile: the less is known of a row, the
nearer to the median it comes, so that what was measured is not drowned in guesses.

Shapes: n rows, d features, m columns for features with missing values, k landmarks. NaN marks a missing value.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.errors import ConfigError
from scoring.core.hashing import hash64
from scoring.core.ranks import spearman
from scoring.core.types import JsonObject
from scoring.lqs.config import DistillConfig

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_FOLDS = 5
_STRENGTHS = 10.0 ** np.arange(-5, 0.5, 0.5)  # of the penalty, a row
_LANDMARKS = 512
_KNOTS = 1001  # quantiles of the scores that are kept
_DIGITS = 6  # of a predicted quantile: below it, sums depend on how rows are batched


@dataclass(frozen=True)
class Quantiles:
    """A monotone map between scores and normal quantiles."""

    scores: Floats  # ascending
    normal: Floats  # ascending

    @staticmethod
    def of(scores: Floats) -> "Quantiles":
        """Returns the map of a sample of scores."""
        shares = (np.arange(_KNOTS) + 0.5) / _KNOTS
        normal = np.array([NormalDist().inv_cdf(p) for p in shares])
        values, places = np.unique(np.quantile(scores, shares), return_inverse=True)
        return Quantiles(values, np.bincount(places, normal) / np.bincount(places))

    def normalised(self, scores: Floats) -> Floats:
        """Returns (n,) the normal quantile of each score."""
        return np.interp(scores, self.scores, self.normal)

    def restored(self, normal: Floats) -> Floats:
        """Returns (n,) the score at each normal quantile."""
        return np.interp(normal, self.normal, self.scores)


@dataclass(frozen=True)
class Scaling:
    """How features become columns of mean 0 and of 1 as the sum of variances.

    The first `width` features are one embedding, which weighs as much as all others together.
    """

    means: Floats  # (d,)
    factors: Floats  # (d + m,) 0 for a constant feature
    patterns: npt.NDArray[np.int64]  # (m,) features that rows lack, one of those that are lacking together
    lacking: Floats  # (m,) the share of rows without them

    @staticmethod
    def of(features: Floats, width: int) -> "Scaling":
        """Returns the scaling of (n, d) `features`."""
        missing = np.isnan(features)
        counts = np.maximum(len(features) - missing.sum(axis=0), 1)
        means = np.where(missing, 0.0, features).sum(axis=0) / counts
        variances = np.where(missing, 0.0, (features - means) ** 2).sum(axis=0) / counts
        some = np.flatnonzero(missing.any(axis=0) & ~missing.all(axis=0))
        _, first = np.unique(missing[:, some], axis=1, return_index=True)
        patterns = some[np.sort(first)]
        lacking = missing[:, patterns].mean(axis=0)
        spread = np.sqrt(np.concatenate([variances, lacking * (1.0 - lacking)]))
        factors = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-12)
        return Scaling(means, factors * _balance(factors > 0, width), patterns, lacking)

    def apply(self, features: Floats) -> Floats:
        """Returns (n, d + m) columns."""
        missing = np.isnan(features)
        values = np.where(missing, 0.0, features - self.means)
        return np.hstack([values, missing[:, self.patterns] - self.lacking]) * self.factors


def _balance(used: Bools, width: int) -> Floats:
    """Returns (d + m,) what makes the variances of two blocks of used columns add up to a half each, of one to 1."""
    first = np.arange(len(used)) < width
    blocks = [used & first, used & ~first]
    several = max(sum(b.any() for b in blocks), 1)
    return np.asarray(np.where(first, *(1.0 / np.sqrt(max(b.sum(), 1) * several) for b in blocks)))


@dataclass(frozen=True)
class Distilled:
    """A fitted scorer, and how it was fitted: `card` has its held-out Spearman correlation."""

    scaling: Scaling
    landmarks: Floats  # (k, d + m) columns
    weights: Floats  # (k,)
    quantiles: Quantiles
    card: JsonObject

    def predict(self, features: Floats) -> Floats:
        """Returns (n,) scores of (n, d) features, on the scale of the scores that were fitted."""
        likeness = _kernel(self.scaling.apply(features), self.landmarks)
        return self.quantiles.restored(np.round(likeness @ self.weights, _DIGITS))

    def to_bytes(self) -> bytes:
        """Returns the scorer as a safetensors file: the same scorer is the same bytes."""
        from safetensors.numpy import save

        card = np.frombuffer(json.dumps(self.card, sort_keys=True).encode(), np.uint8)
        parts = {"scaling": self.scaling, "quantiles": self.quantiles}
        tensors = {f"{part}.{name}": value for part, found in parts.items() for name, value in vars(found).items()}
        return bytes(save({**tensors, "landmarks": self.landmarks, "weights": self.weights, "card": card}))

    @staticmethod
    def from_bytes(content: bytes) -> "Distilled":
        """Returns the scorer that `to_bytes` wrote."""
        from safetensors.numpy import load

        found = load(content)
        scaling = Scaling(*(found[f"scaling.{f.name}"] for f in fields(Scaling)))
        quantiles = Quantiles(*(found[f"quantiles.{f.name}"] for f in fields(Quantiles)))
        return Distilled(scaling, found["landmarks"], found["weights"], quantiles, json.loads(found["card"].tobytes()))


def fit(features: Floats, scores: Floats, ids: Sequence[str], config: DistillConfig, *, width: int = 0) -> Distilled:
    """Returns the scorer of (n, d) `features` fitted to (n,) `scores`; rows without a finite score are left out.

    Its Spearman correlation is that of rows with predictions made without them: each fifth, drawn by a hash of
    the id, from the other four. What comes back is fitted to all rows. It depends on the set of rows, not on
    their order; rows of one id are held out together. The first `width` features are an embedding.

    Raises:
      ConfigError: there are too few rows, all scores are the same, or they cannot be predicted.
    """
    rows = _picked(scores, ids, config)
    features, scores, ids = features[rows], scores[rows], [ids[k] for k in rows]
    if len(rows) < config.min_rows or scores.min() == scores.max():
        what = f"{len(rows)} rows have gradients" if len(rows) < config.min_rows else f"all scores are {scores[0]}"
        raise ConfigError(
            f"cannot fit a model to predict scores: {what}",
            where=f"lqs.distill.min_rows: {config.min_rows}",
            remedy="raise gradients.proxy_ratio, or set it to 1.0",
        )
    rho = _heldout(features, scores, ids, config, width)
    if not rho >= config.min_spearman:  # NaN too
        raise ConfigError(
            f"held-out Spearman of the predicted scores is too low: {rho:.3f} over {len(rows)} rows",
            where=f"lqs.distill.min_spearman: {config.min_spearman}",
            remedy="raise gradients.proxy_ratio, or set it to 1.0; a lower min_spearman orders the rest by noise",
        )
    found = _fitted(features, scores, _folds(ids, config.seed, "inner"), width)
    counts = {"rows": len(rows), "features": features.shape[1], "spearman_heldout": round(rho, 6)}
    return replace(found, card={**found.card, **counts})


def _heldout(features: Floats, scores: Floats, ids: Sequence[str], config: DistillConfig, width: int) -> float:
    outer, inner = (_folds(ids, config.seed, purpose) for purpose in ("outer", "inner"))
    unseen = np.full(len(scores), np.nan)
    for fold in np.unique(outer):
        own, rest = outer == fold, outer != fold
        unseen[own] = _fitted(features[rest], scores[rest], inner[rest], width).predict(features[own])
    return spearman(unseen, scores)


def _folds(ids: Sequence[str], seed: int, purpose: str) -> npt.NDArray[np.int64]:
    return np.array([hash64(seed, purpose, i) % _FOLDS for i in ids], np.int64)


def _picked(scores: Floats, ids: Sequence[str], config: DistillConfig) -> npt.NDArray[np.int64]:
    """Returns which rows to fit, in the order of their ids' hashes."""
    known = np.flatnonzero(np.isfinite(scores)).tolist()
    ranked = sorted((hash64(config.seed, "distill", ids[k]), ids[k], k) for k in known)
    return np.array([k for _, _, k in ranked[: config.max_rows]], np.int64)


def _fitted(features: Floats, scores: Floats, folds: npt.NDArray[np.int64], width: int) -> Distilled:
    """Returns the scorer with the penalty that does best over the `folds`, each predicted from the others."""
    scaling, quantiles = Scaling.of(features, width), Quantiles.of(scores)
    columns, target = scaling.apply(features), quantiles.normalised(scores)
    landmarks = columns[:_LANDMARKS]  # rows are in the order of a hash
    root = _inverse_root(_kernel(landmarks, landmarks))
    mapped = _kernel(columns, landmarks) @ root
    best = int(((_unseen(mapped, target, folds) - target) ** 2).sum(axis=1).argmin())
    weights = root @ _ridge(mapped.T @ mapped, mapped.T @ target, len(target))[:, best]
    return Distilled(scaling, landmarks, weights, quantiles, {"penalty": float(_STRENGTHS[best])})


def _kernel(columns: Floats, landmarks: Floats) -> Floats:
    """Returns (n, k) exp(-‖x - y‖²)."""
    squares = (columns**2).sum(axis=1)[:, None] + (landmarks**2).sum(axis=1)
    return np.asarray(np.exp(-np.maximum(squares - 2.0 * columns @ landmarks.T, 0.0)))


def _inverse_root(matrix: Floats) -> Floats:
    """Returns (k, r) R with R·Rᵀ the inverse of a (k, k) kernel matrix, directions without weight left out."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > values[-1] * 1e-9
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _unseen(columns: Floats, target: Floats, folds: npt.NDArray[np.int64]) -> Floats:
    """Returns (s, n) what each row is predicted to be by the folds that it isn't in, for each strength."""
    gram, right = columns.T @ columns, columns.T @ target
    found = np.zeros((len(_STRENGTHS), len(target)))
    for fold in np.unique(folds):
        own = np.flatnonzero(folds == fold)
        mine = columns[own]
        weights = _ridge(gram - mine.T @ mine, right - mine.T @ target[own], len(target) - len(own))
        found[:, own] = (mine @ weights).T
    return found


def _ridge(gram: Floats, right: Floats, rows: int) -> Floats:
    """Returns (p, s) the ridge weights of each strength, from XᵀX and Xᵀy of `rows` rows."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors @ ((vectors.T @ right)[:, None] / (np.maximum(values, 0.0)[:, None] + _STRENGTHS * rows)))


def feature_matrix(embeddings: pa.Array, width: int, columns: Sequence[Floats]) -> Floats:
    """Returns (n, width + k): the directions of a list array of embeddings beside k columns.

    An embedding that is null, zero or of another width is NaN. Its length says nothing, so it may be int8.
    """
    lengths = pc.fill_null(pc.list_value_length(embeddings), 0).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(lengths == width) if width else np.zeros(0, np.int64)
    flat = pc.list_flatten(embeddings.take(pa.array(rows, pa.int64()))).to_numpy(zero_copy_only=False)
    vectors = flat.astype(np.float64).reshape(len(rows), width)
    norms = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    found = np.full((len(embeddings), width), np.nan)
    found[rows] = np.divide(vectors, norms, out=np.full_like(vectors, np.nan), where=norms > 0)
    return np.column_stack([found, *columns])
