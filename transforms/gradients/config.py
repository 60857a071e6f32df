"""Section `gradients` of the params."""

import re
from typing import TYPE_CHECKING, Literal

from scoring.core.config import config
from scoring.models.config import MIN_TOKENS
from transforms.core.text_files import TextSource

if TYPE_CHECKING:
    from scoring.gradients.sketches import Projection

LAST_BLOCKS = "last:2"  # what precision `last_layers` scores where `layers` names no blocks itself


@config
class SketchConfig:
    """How gradients are kept."""

    keep: Literal["none", "last", "all"]  # of which checkpoints
    rank: int  # of the projection of a layer's inputs
    width: int  # bytes a sketch

    def __post_init__(self) -> None:
        if self.rank < 1 or self.width < 1:
            raise ValueError(f"rank {self.rank} and width {self.width} must be at least 1")


@config
class GradientsConfig:
    """Which gradients are computed, how precisely, and what they are compared with."""

    precision: Literal["exact", "last_layers", "sketch", "auto"]
    layers: str
    embeddings: bool
    dtype: Literal["float32", "bfloat16"]
    max_tokens: int
    batch_tokens: int
    target: TextSource | None
    target_rows: int
    contrast: float
    costate: Literal["first_order", "full"]
    costate_rate: float
    sketch: SketchConfig
    max_load: float
    proxy_ratio: float
    refresh_ratio: float
    seed: int

    def __post_init__(self) -> None:
        if not re.fullmatch(r"all|last:[1-9][0-9]*", self.layers):
            raise ValueError(f"layers must be all or last:K with K of at least 1, not {self.layers!r}")
        for name, least in (("max_tokens", MIN_TOKENS), ("batch_tokens", 1), ("target_rows", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        for name in ("refresh_ratio", "contrast", "costate_rate", "max_load"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], not {getattr(self, name)}")
        if not 0 < self.proxy_ratio <= 1:
            raise ValueError(f"proxy_ratio must lie above 0 and at most at 1, not {self.proxy_ratio}")

    @property
    def scored(self) -> str:
        """The layers that are scored, as `scoring.gradients.layers` takes them."""
        return LAST_BLOCKS if self.precision == "last_layers" and self.layers == "all" else self.layers

    @property
    def sketches(self) -> bool:
        """Whether a row may need a sketch."""
        return self.sketch.keep != "none" or self.precision in ("sketch", "auto")

    @property
    def projection(self) -> "Projection":
        """How a gradient becomes a sketch."""
        from scoring.gradients.sketches import Projection

        return Projection(rank=self.sketch.rank, width=self.sketch.width, seed=self.seed)
