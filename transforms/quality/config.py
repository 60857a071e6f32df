"""Section `quality` of params."""

import math
from typing import Literal

from scoring.core.config import config
from scoring.models.config import Wanted
from scoring.quality.config import Level
from transforms.core.text_files import TextSource
from transforms.quality import also_config
from transforms.quality.also_config import AlsoModel


@config
class LabelSource(TextSource):
    """Files of labelled texts, with one or more annotations per text."""

    format: Literal["auto", "jsonl", "json", "parquet", "csv", "text", "label_studio"] = "auto"  # type: ignore[assignment]
    label: str = "label"  # column of a label, a list of labels or counts {label: n}; label_studio: the control
    annotator: str | None = None  # annotator column
    bad_labels: tuple[str, ...] = ()  # if given, a label that is neither good nor bad is an error
    level: Level = "nominal"  # of the labels, for Krippendorff's alpha
    scale: tuple[str, ...] = ()  # labels from lowest to highest; level ordinal, where they are no numbers

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format == "label_studio" and self.annotator:
            raise ValueError(
                f"annotator of {self.name} must be null: a Label Studio export already contains annotators"
            )
        if self.scale and self.level != "ordinal":
            raise ValueError(f"scale of {self.name} requires level: ordinal")


@config
class ReviewConfig:
    """How the rows that lie near a labelled row are found."""

    clusters: int = 8
    neighbours: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("clusters", 1), ("neighbours", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")


FITTED, MODEL = "fitted", "model"  # what `head` may be, other than a folder


@config
class QualityConfig:
    """Section `quality` of the params."""

    model: str
    dtype: Wanted
    head: str
    labels: LabelSource | None
    min_alpha: float
    good_labels: tuple[str, ...]
    min_quality: float
    window_tokens: int
    stride_tokens: int
    max_windows: int
    aggregate: Literal["mean", "min", "max"]
    batch_tokens: int
    train_rows: int
    folds: int
    min_heldout_f1: float
    refresh_ratio: float
    review: ReviewConfig
    also: tuple[AlsoModel, ...]
    seed: int

    def __post_init__(self) -> None:
        for name in ("window_tokens", "stride_tokens", "batch_tokens", "train_rows"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.max_windows < 0:
            raise ValueError(f"max_windows must be at least 0 (0 scores every window), not {self.max_windows}")
        if not math.isfinite(self.min_quality):
            raise ValueError(f"min_quality must be a finite number, not {self.min_quality}")
        if self.head != MODEL and not 0 <= self.min_quality <= 1:
            raise ValueError(f"min_quality of a fitted head must lie in [0, 1], not {self.min_quality}")
        if self.folds < 3:  # each is left out of the others crosswise
            raise ValueError(f"folds must be at least 3, not {self.folds}")
        for name in ("min_heldout_f1", "refresh_ratio", "min_alpha"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], not {getattr(self, name)}")
        also_config.check(self.also, self)


SCORING_FIELDS = (
    "model", "head", "good_labels", "min_quality", "window_tokens", "stride_tokens", "max_windows", "aggregate",
    "batch_tokens",
)  # fmt: skip
