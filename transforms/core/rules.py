"""A rule: the value that is measured, its bound, and the reason code that a dropped row carries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from scoring.core.arrays import Array


@dataclass(frozen=True)
class Rule:
    """Drops a row whose `value` passes `threshold`: a `min` keeps ≥, a `max` keeps ≤."""

    code: str  # the reason code, e.g. "gopher_short_doc"
    stage: str  # the folder whose sidecar holds the value
    value: str  # column of that sidecar
    bound: Literal["min", "max"]
    threshold: str  # the field in the stage's section of params, dotted, e.g. "gopher.min_words"
    sentence: str  # what it means, for a person
    origin: str = "gradsift"  # who published it

    def limit(self, params: object) -> float:
        """Returns the threshold in `params` (a config object or a nested mapping); NaN if there is none."""
        found: Any = params
        for key in self.threshold.split("."):
            found = _get(found, key)
        return math.nan if found is None else float(found)

    def is_on(self, params: object) -> bool:
        """Returns whether the rule drops rows: it has a threshold, and its family is not switched off."""
        *path, _ = self.threshold.split(".")
        found = params
        for key in path:
            found = _get(found, key)
        return _get(found, "drop") is not False and not math.isnan(self.limit(params))

    def drops(self, values: Array, params: object) -> Array:
        """Returns (n,) bool: which of `values` (n,) fail; null (NaN) values never fail, nor any at a NaN limit."""
        limit = self.limit(params)
        return values < limit if self.bound == "min" else values > limit


def _get(section: object, key: str) -> Any:
    return section.get(key) if isinstance(section, Mapping) else getattr(section, key, None)


def verdict(failed: Mapping[str, Array], rows: int) -> tuple[pa.Array, pa.Array]:
    """Returns `(kept, reasons)` from (n,) bool arrays keyed by reason code, codes in the mapping's order."""
    codes: Sequence[str] = list(failed)
    matrix = np.stack([failed[c] for c in codes]) if codes else np.zeros((0, rows), bool)
    ends = np.concatenate(([0], np.cumsum(matrix.sum(axis=0))))
    which = pa.array(np.nonzero(matrix.T)[1])
    reasons = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(codes, pa.string()).take(which))
    return pa.array(~matrix.any(axis=0), pa.bool_()), reasons
