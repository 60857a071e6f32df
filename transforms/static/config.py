"""Section `static` of params."""

from typing import TYPE_CHECKING, Literal

from scoring.core.config import config
from scoring.static.dimensions import DIMENSIONS

if TYPE_CHECKING:  # NumPy costs a start more than all else; the matrix alone needs it
    from scoring.static.ahp import Floats, Priorities
    from scoring.static.scale import Scale

_SCALE = (0.1, 9.0)  # Saaty's 1/9 … 9, with room for a rounded reciprocal


@config
class StaticConfig:
    """How the twelve dimensions are measured, scaled and weighted."""

    max_tokens: int
    vocabulary: int
    low_quantile: float
    high_quantile: float
    mean: Literal["product", "sum"]
    floor: float  # of a dimension on [0, 1], in a product
    alignment: str | None  # a CLIP-like model: folder, package or cached Hugging Face id
    ahp: dict[str, tuple[float, ...]]  # dimension → its importance against each one after it
    max_consistency_ratio: float

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or self.vocabulary < 1:
            raise ValueError(f"max_tokens {self.max_tokens} and vocabulary {self.vocabulary} must be at least 1")
        if not 0 <= self.low_quantile < self.high_quantile <= 1:
            raise ValueError(
                f"low_quantile {self.low_quantile} and high_quantile {self.high_quantile} must ascend in [0, 1]"
            )
        if not 0 < self.floor < 1:
            raise ValueError(f"floor {self.floor} must lie between 0 and 1")
        from scoring.static.ahp import require_consistent

        self._check_matrix()
        require_consistent(self.matrix, DIMENSIONS, max_ratio=self.max_consistency_ratio, where="params, static.ahp")

    def _check_matrix(self) -> None:
        wanted = {d: len(DIMENSIONS) - 1 - k for k, d in enumerate(DIMENSIONS[:-1])}
        if set(self.ahp) != set(wanted):
            missing, unknown = sorted(set(wanted) - set(self.ahp)), sorted(set(self.ahp) - set(wanted))
            raise ValueError(
                f"ahp needs one row for each dimension except the last: missing {missing}, unknown {unknown}"
            )
        for dimension, row in self.ahp.items():
            if len(row) != wanted[dimension]:
                raise ValueError(f"ahp.{dimension} has {len(row)} values, must have {wanted[dimension]}")
            if not all(_SCALE[0] <= v <= _SCALE[1] for v in row):
                raise ValueError(f"ahp.{dimension} {list(row)} must lie on Saaty's scale, 1/9 to 9")

    @property
    def matrix(self) -> "Floats":
        """The (12, 12) reciprocal matrix."""
        from scoring.static.ahp import reciprocal

        return reciprocal([self.ahp[d] for d in DIMENSIONS[:-1]])

    @property
    def priorities(self) -> "Priorities":
        """The weights and their consistency."""
        from scoring.static.ahp import priorities

        return priorities(self.matrix)

    @property
    def scale(self) -> "Scale":
        """How dimensions become a score."""
        from scoring.static.scale import Scale

        return Scale(self.weights, self.floor if self.mean == "product" else None)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each dimension; they sum to 1."""
        return dict(zip(DIMENSIONS, self.priorities.weights.tolist(), strict=True))
