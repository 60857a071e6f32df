"""`clean.decontaminate` of params."""

from scoring.core.config import config
from transforms.core.text_files import TextSource


@config
class DecontaminateConfig:
    """Which benchmarks, and when a text counts as containing one of their items."""

    benchmarks: tuple[TextSource, ...]  # none: nothing is measured
    ngram: int  # words
    min_words: int  # shorter items are left out
    max_overlap: float  # of an item's n-grams; a text with more is dropped
    max_item_ratio: float  # of a benchmark's items; n-grams that more of them share are its template, not its content

    def __post_init__(self) -> None:
        names = [b.name for b in self.benchmarks]
        if len(set(names)) < len(names):
            raise ValueError(f"benchmarks must have unique names, got {names}")
        if not 1 <= self.min_words <= self.ngram <= 1000:
            raise ValueError(f"1 <= min_words {self.min_words} <= ngram {self.ngram} <= 1000 must hold")
        if not 0 <= self.max_overlap <= 1:
            raise ValueError(f"max_overlap must be in [0, 1], not {self.max_overlap}")
        if not 0 <= self.max_item_ratio <= 1:
            raise ValueError(f"max_item_ratio must be in [0, 1], not {self.max_item_ratio}")
