"""How far the rows that a model was fitted on are from those it would be fitted on now."""

from collections.abc import Collection


def distance(before: Collection[str], now: Collection[str]) -> float:
    """Returns the Jaccard distance of two sets of sample ids: 0 the same, 1 nothing in common."""
    union = set(before) | set(now)
    return 1.0 - len(set(before) & set(now)) / len(union) if union else 0.0
