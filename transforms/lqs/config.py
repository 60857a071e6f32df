"""Section `lqs` of the params."""

from collections.abc import Sequence
from dataclasses import fields

from scoring.core.config import config
from scoring.lqs.config import DistillConfig, LqsConfig
from transforms.core.text_files import TextSource


@config
class LabelledSource(TextSource):
    """Human-labelled texts."""

    label: str = "label"  # the column of the judgement
    good_labels: Sequence[str] = ("1", "good", "clean")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.good_labels:
            raise ValueError(f"good_labels of {self.name} must not be empty")


@config
class CanaryConfig:
    """The canaries: junk made from `rows` good rows, and rows labelled bad by people."""

    rows: int  # 0 tries nothing
    chars: int  # of a row
    labelled: LabelledSource | None
    seed: int

    def __post_init__(self) -> None:
        for name, least in (("rows", 0), ("chars", 100), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"canaries.{name} must be at least {least}, not {getattr(self, name)}")


@config
class LqsSection(LqsConfig):
    """The formula and its mix, the canaries, and how scores are predicted for rows without gradients."""

    min_canary_auc: float
    canaries: CanaryConfig
    distill: DistillConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.min_canary_auc <= 1:
            raise ValueError(f"min_canary_auc {self.min_canary_auc} must lie in [0, 1]")

    @property
    def mix(self) -> LqsConfig:
        """The formula and its mix alone: all of the params that a row's score depends on."""
        return LqsConfig(**{f.name: getattr(self, f.name) for f in fields(LqsConfig)})
