"""Section `report` of params."""

from scoring.core.config import config


@config
class ReportConfig:
    """Section `report` of params."""

    title: str
    examples: int  # rows shown from each end of the final score

    def __post_init__(self) -> None:
        if not 0 <= self.examples <= 100:
            raise ValueError(f"examples must be from 0 to 100, got {self.examples}")
