"""Selection: how many of the best rows a share contains."""

import math

from scoring.core.errors import ConfigError


def share(rows: int, ratio: float) -> int:
    """Returns `ratio` of `rows`, rounded half up."""
    return math.floor(ratio * rows + 0.5)


def top_share(rows: int, ratio: float, *, name: str) -> int:
    """Returns how many of `rows` the best `ratio` are; a ratio of 0 selects nothing.

    Raises:
      ConfigError: the ratio is above 0, and rounds to 0 rows. `name` is its dotted path in params.
    """
    count = share(rows, ratio)
    if rows and ratio > 0 and not count:
        raise ConfigError(
            f"{name} = {ratio} selects no rows: the share of {rows} rows rounds to 0",
            where=name,
            remedy=f"set it to {0.5 / rows:.2g} or more, or to 0 to select nothing",
        )
    return count
