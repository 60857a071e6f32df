"""The learnability-quality score of a row, from its gradients on the reference checkpoints (docs/scoring.md).

Shapes: n rows, T checkpoints in training order. NaN marks missing values; it never leaves this module
as a score that a sort could meet.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.core.errors import ConfigError
from scoring.lqs.config import LqsConfig

BANDS = ("base", "reinforcement", "challenge")
BAND_FIFTHS = (2, 4)  # the lowest 40 % of the rows are base, the next 40 % reinforcement
LIMIT = 1e100  # a larger value comes from a vanishing gradient; its square must stay finite

Floats = npt.NDArray[np.float64]


class Gradients(NamedTuple):
    """What the gradients stage measured, each (n, T); the costate columns of the last checkpoint are NaN."""

    tokens: Floats  # (n,) that the gradients are of
    norm: Floats
    target_cosine: Floats
    costate_dot: Floats
    costate_cosine: Floats


class Scores(NamedTuple):
    """Learnability, quality and the score of a formula, each (n,); all NaN where one of them is missing or huge."""

    learnability: Floats
    quality: Floats
    lqs: Floats


class Moments(NamedTuple):
    """Mean and standard deviation of a score over the corpus."""

    mean: float
    sd: float


def weighted(gradients: Gradients, config: LqsConfig, *, mean_norm: float) -> Scores:
    """Returns 0.7 · ‖g‖/mean ‖g‖ + 0.3 · (cos(g, d) + 1)/2 at the last checkpoint (weights from `config`)."""
    learnability = relative_norm(gradients, mean_norm=mean_norm)
    quality = (_last(gradients.target_cosine) + 1.0) / 2.0
    with np.errstate(invalid="ignore", over="ignore"):  # `_finite` sees to it
        score = config.learnability_weight * learnability + config.quality_weight * quality
    return _finite(learnability, quality, score)


def delt(gradients: Gradients) -> Scores:
    """Returns the DELT scores (arXiv 2506.21545, eq. 6-9) over steps t = 1 … T − 1.

    Learnability Σ ‖g(θ_t)‖/‖g(θ_t+1)‖; quality Σ cos(g(θ_t), λ_t+1); score Σ λ_t+1·g(θ_t)/‖g(θ_t+1)‖.

    Raises:
      ConfigError: there is one checkpoint only, so nothing changes between two.
    """
    rows, checkpoints = gradients.norm.shape
    if checkpoints == 1:
        raise ConfigError(
            "lqs.formula: delt needs several checkpoints, but the reference model has one",
            remedy="set reference.model: train with reference.checkpoints of at least 3, or set lqs.formula: weighted",
        )
    learnability, quality, score = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    if not checkpoints:
        learnability += np.nan
    with np.errstate(invalid="ignore", over="ignore"):  # `_finite` sees to it
        for t in range(checkpoints - 1):  # one after another: the same bits in a batch of any size
            after = gradients.norm[:, t + 1]
            learnability += _divide(gradients.norm[:, t], after)
            quality += gradients.costate_cosine[:, t]
            score += _divide(gradients.costate_dot[:, t], after)
    return _finite(learnability, quality, score)


def lqs(gradients: Gradients, config: LqsConfig, *, mean_norm: float) -> Scores:
    """Returns the scores of the formula that `config` names."""
    return delt(gradients) if config.formula == "delt" else weighted(gradients, config, mean_norm=mean_norm)


def relative_norm(gradients: Gradients, *, mean_norm: float) -> Floats:
    """Returns (n,) ‖g‖ at the last checkpoint over the corpus mean; NaN where that is 0 or unknown."""
    with np.errstate(over="ignore"):
        return _divide(_last(gradients.norm), np.full(len(gradients.norm), mean_norm))


def log_norm(gradients: Gradients) -> Floats:
    """Returns (n,) ln(‖g‖·√tokens) at the last checkpoint; NaN where the norm is 0 or unknown.

    A row's gradient is the mean of its tokens' gradients: independent ones shrink like 1/√tokens, so what is left
    tells how much the tokens of a row pull the same way. Those of a repeated sentence do, and those of noise.
    """
    norm = _last(gradients.norm)
    known = norm > 0
    return np.where(known, np.log(np.where(known, norm, 1.0)) + np.log(np.maximum(gradients.tokens, 1)) / 2, np.nan)


def discounted(lqs_z: Floats, norm_z: Floats, config: LqsConfig) -> Floats:
    """Returns (n,) (z(LQS) − w·z(log norm))/√(1 + w²), w the `norm_discount`; the weighted formula takes none."""
    if config.formula == "weighted" or config.norm_discount == 0:
        return lqs_z
    return np.asarray((lqs_z - config.norm_discount * norm_z) / np.sqrt(1 + config.norm_discount**2))


def z_score(values: Floats, moments: Moments, *, clip: float) -> Floats:
    """Returns (n,) (x − mean)/sd within ± `clip`; 0 for all where sd is 0. NaN stays NaN."""
    if moments.sd == 0:
        return np.where(np.isnan(values), np.nan, 0.0)
    with np.errstate(over="ignore"):  # a tiny sd; what follows clips
        return np.clip((values - moments.mean) / moments.sd, -clip, clip)


def mix(static_z: Floats, lqs_z: Floats, *, alpha: float) -> Floats:
    """Returns (n,) (1 − α) · static + α · LQS; a missing score leaves its weight to the other; NaN without both."""
    both = (1.0 - alpha) * static_z + alpha * lqs_z
    found = np.where(np.isnan(lqs_z), static_z, np.where(np.isnan(static_z), lqs_z, both))
    return found + 0.0  # no negative zero: it would sort apart from zero


def band_ends(rows: int) -> tuple[int, int]:
    """Returns how many of `rows` rows, in ascending order, lie before the end of base and of reinforcement."""
    base, reinforcement = (-(-fifths * rows // 5) for fifths in BAND_FIFTHS)
    return base, reinforcement


def _last(values: Floats) -> Floats:
    return values[:, -1] if values.shape[1] else np.full(len(values), np.nan)


def _divide(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0))


def _finite(*scores: Floats) -> Scores:
    """Returns the scores with NaN in all of them where one is not finite or beyond `LIMIT`."""
    good = np.logical_and.reduce([np.abs(s) < LIMIT for s in scores])
    return Scores(*(np.where(good, s, np.nan) for s in scores))
