"""Section `reference` of params."""

from scoring.core.config import config

MIN_ROWS = 8  # fewer texts teach nothing


CHARS_PER_TOKEN = 16  # no text needs more for a token; bounds what is read of a huge one


_MIN_VOCABULARY = 256 + 2  # every byte, and the two above


@config
class ReferenceConfig:
    """Section `reference` of the params: which model, and how it is trained."""

    model: str
    vocabulary: int
    layers: int
    width: int
    heads: int
    context: int
    train_rows: int
    steps: int
    batch_rows: int
    learning_rate: float
    muon_rate: float
    checkpoints: int
    refresh_ratio: float
    seed: int

    def __post_init__(self) -> None:
        least = {
            "vocabulary": _MIN_VOCABULARY, "layers": 1, "width": 2, "heads": 1, "context": 2, "train_rows": MIN_ROWS,
            "batch_rows": 1, "checkpoints": 3, "steps": self.checkpoints, "seed": 0,
        }  # fmt: skip
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ValueError(f"{name} must be at least {bound}, not {getattr(self, name)}")
        if self.width % (2 * self.heads):
            raise ValueError(f"width must be a multiple of 2 * heads = {2 * self.heads}, not {self.width}")
        for name in ("learning_rate", "muon_rate"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}")
        if not 0 <= self.refresh_ratio <= 1:
            raise ValueError(f"refresh_ratio must lie in [0, 1], not {self.refresh_ratio}")

    @property
    def checkpoint_steps(self) -> list[int]:
        """The steps after which a checkpoint is kept: evenly spaced, the last included."""
        return [round(self.steps * k / self.checkpoints) for k in range(1, self.checkpoints + 1)]

    def text_chars(self, rows: int) -> int:
        """Returns how much of a text training on `rows` texts can come to see, in characters."""
        epochs = -(-self.steps * self.batch_rows // max(1, rows))
        return epochs * self.context * CHARS_PER_TOKEN
