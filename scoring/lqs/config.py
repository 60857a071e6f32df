"""The formula of section `lqs` of params, and how it is spread."""

from typing import Literal

from scoring.core.config import config


@config
class LqsConfig:
    """Which formula, and how it is combined with the static score."""

    formula: Literal["delt", "weighted"]
    learnability_weight: float
    quality_weight: float
    norm_discount: float
    high_value: float
    alpha: float
    clip: float

    def __post_init__(self) -> None:
        if self.norm_discount < 0:
            raise ValueError(f"norm_discount {self.norm_discount} must not be negative")
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha {self.alpha} must be in [0, 1]")
        if self.clip <= 0:
            raise ValueError(f"clip {self.clip} must be above 0")
        if min(self.learnability_weight, self.quality_weight) < 0:
            raise ValueError(
                f"learnability_weight {self.learnability_weight} and quality_weight {self.quality_weight} "
                "must not be negative"
            )


@config
class DistillConfig:
    """Section `lqs.distill` of the params."""

    min_spearman: float
    min_rows: int
    max_rows: int
    seed: int

    def __post_init__(self) -> None:
        if not -1 <= self.min_spearman <= 1:
            raise ValueError(f"min_spearman must lie in [-1, 1], not {self.min_spearman}")
        if not 20 <= self.min_rows <= self.max_rows:
            raise ValueError(f"min_rows {self.min_rows} must be at least 20 and at most max_rows {self.max_rows}")
