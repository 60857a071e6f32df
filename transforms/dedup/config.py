"""Section `dedup` of params."""

from scoring.core.config import config


@config
class NearConfig:
    """Shingles, signatures and the least similarity of near duplicates."""

    enabled: bool
    ngram: int  # tokens per shingle
    bands: int
    rows: int  # a band
    min_similarity: float  # Jaccard, of shingle sets
    max_leaders: int  # survivors of one band that a row is compared with
    seed: int

    def __post_init__(self) -> None:
        least = {"ngram": 1, "bands": 1, "rows": 1, "max_leaders": 1, "seed": 0}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ValueError(f"{name} must be at least {bound}, not {getattr(self, name)}")
        if not 0 < self.min_similarity <= 1:
            raise ValueError(f"min_similarity must be in (0, 1], not {self.min_similarity}")


@config
class DedupConfig:
    """What a near duplicate is, and how many duplicates a source may lose before the run fails."""

    max_source_loss: float  # of its rows that clean kept
    near: NearConfig

    def __post_init__(self) -> None:
        if not 0 <= self.max_source_loss <= 1:
            raise ValueError(f"max_source_loss must be in [0, 1], not {self.max_source_loss}")
