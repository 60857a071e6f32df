"""Entries of `quality.also`: additional models that score every text, each with its own columns."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, Literal, TypeVar

from scoring.core.config import config

S = TypeVar("S")

_OWN = ("name", "good_labels", "stride_tokens")  # what is not simply the section's where it is null
# Of the catalog's wide views: a model's columns stand there beside all others.
_VIEWS = ("part", "row", "selected", "dropped_by", "shard_position")
_PREFIXES = ("raw_", "clean_", "dedup_", "quality_")


@config
class AlsoModel:
    """A sequence classifier or regression beside the main score; null or empty: as the section has it."""

    name: str
    model: str
    good_labels: tuple[str, ...] = ()
    dtype: Literal["auto", "float32", "bfloat16"] | None = None
    window_tokens: int | None = None
    stride_tokens: int | None = None
    max_windows: int | None = None
    aggregate: Literal["mean", "min", "max"] | None = None
    batch_tokens: int | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ValueError(
                f"name must be lower-case letters, digits and _, starting with a letter, not {self.name!r}"
            )

    @property
    def at(self) -> str:
        """The params key of the entry, for messages."""
        return f"quality.also.{self.name}"

    @property
    def columns(self) -> tuple[str, str, str]:
        """The columns of the score, of the label and of the share of tokens that were scored."""
        return self.name, f"{self.name}_label", f"{self.name}_coverage"

    def settings(self, section: S) -> S:
        """Returns the section `quality` (a QualityConfig) that this model scores by.

        Raises:
          ValueError: a value is out of range.
        """
        base: Any = section
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _OWN}
        own = {name: value for name, value in own.items() if value is not None}
        own["good_labels"] = self.good_labels or base.good_labels
        window = own.get("window_tokens", base.window_tokens)
        own["stride_tokens"] = min(base.stride_tokens, window) if self.stride_tokens is None else self.stride_tokens
        try:
            found: S = replace(base, **own, head="model", labels=None, also=())
        except ValueError as error:
            raise ValueError(f"also.{self.name}: {error}") from error
        return found


def check(entries: Sequence[AlsoModel], section: object) -> None:
    """Checks the entries of `section` against it and one another.

    Raises:
      ValueError: two columns would have one name, or a value is out of range.
    """
    counts = Counter(column for entry in entries for column in entry.columns)
    for entry in entries:
        entry.settings(section)
        for column in entry.columns:
            if counts[column] > 1 or column in _taken() or column.startswith(_PREFIXES):
                raise ValueError(f"also.{entry.name}: column {column} already exists; rename the entry")


@cache
def _taken() -> frozenset[str]:
    """Returns the columns of all other tables; without entries nobody asks, and pyarrow stays unloaded."""
    from transforms.core.schemas import PARTS, PLAN

    return frozenset({*_VIEWS, *(name for schema in (*PARTS.values(), PLAN) for name in schema.names)})
