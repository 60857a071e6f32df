"""Section `plan` of params."""

from typing import Literal

from scoring.core.config import config

MAX_SECTIONS = 1024  # of `stair` and `saw`


@config
class MixedConfig:
    """How `mixed` draws: the strata's shares of the rows, lowest scores first, and the rows drawn a turn."""

    base: float
    reinforcement: float
    challenge: float
    draw: tuple[int, int, int]  # rows per turn, of each stratum in the order above
    rest: Literal["spread", "last"]  # where the rows go that no full turn has drawn

    def __post_init__(self) -> None:
        shares = (self.base, self.reinforcement, self.challenge)
        if min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise ValueError(f"base, reinforcement and challenge must be at least 0 and add up to 1, got {shares}")
        if min(self.draw) < 1:
            raise ValueError(f"draw must hold numbers of at least 1, got {self.draw}")


@config
class SegmentConfig:
    """Shares of the rows that `segment` keeps for the beginning and for the end."""

    low_ratio: float  # the lowest scores
    high_ratio: float  # the highest

    def __post_init__(self) -> None:
        if min(self.low_ratio, self.high_ratio) < 0 or self.low_ratio + self.high_ratio > 1:
            raise ValueError(
                f"low_ratio and high_ratio must be at least 0 and add up to at most 1, "
                f"got {self.low_ratio} and {self.high_ratio}"
            )


@config
class TransitionConfig:
    """Where `stair` and `saw` go back to easier rows: a zone around each border of equal sections."""

    sections: int
    transition_ratio: float  # of all rows, on either side of a border
    layers: int  # passes over a zone

    def __post_init__(self) -> None:
        if not 1 <= self.sections <= MAX_SECTIONS:
            raise ValueError(f"sections must be from 1 to {MAX_SECTIONS}, got {self.sections}")
        if not 0 <= self.transition_ratio <= 1:
            raise ValueError(f"transition_ratio must be from 0 to 1, got {self.transition_ratio}")
        if self.layers < 1:
            raise ValueError(f"layers must be at least 1, got {self.layers}")


@config
class OrderConfig:
    """Which order, and the settings of each."""

    order: Literal["mixed", "sorting", "folding", "zigzag", "segment", "stair", "saw", "shuffle"]
    folding_layers: int
    zigzag_layers: int
    segment: SegmentConfig
    stair: TransitionConfig
    saw: TransitionConfig
    mixed: MixedConfig
    jitter_window: int  # rows, of whatever order; 0 and 1 leave it as it is
    seed: int

    def __post_init__(self) -> None:
        bounds = {"folding_layers": (1, 2**31), "zigzag_layers": (1, 2**31), "jitter_window": (0, 2**31)}
        for name, (least, most) in {**bounds, "seed": (0, 2**63)}.items():
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} must be from {least} to {most}, got {getattr(self, name)}")


@config
class PlanConfig(OrderConfig):
    """Section `plan` of params: an order, what is selected for it, and where it is cut."""

    top_ratio: float  # share of the kept rows that is selected, best first
    shard_rows: int  # base of the adaptive size
    complexity_threshold: float
    hot_ratio: float  # share of the selected rows in the hot tier, best first

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("top_ratio", "hot_ratio"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, got {getattr(self, name)}")
        if not 1 <= self.shard_rows <= 2**29:
            raise ValueError(f"shard_rows must be from 1 to {2**29}, got {self.shard_rows}")
        if not self.complexity_threshold > 0:
            raise ValueError(f"complexity_threshold must be above 0, got {self.complexity_threshold}")
