"""Section `shard` of params."""

from scoring.core.config import config


@config
class ShardConfig:
    """Section `shard` of params."""

    row_group_bytes: int  # decoded; a larger row has a row group of its own

    def __post_init__(self) -> None:
        if not 1 <= self.row_group_bytes <= 2**30:  # nested values above 2 GiB a row group cannot be read back
            raise ValueError(f"row_group_bytes must be from 1 to {2**30}, got {self.row_group_bytes}")
