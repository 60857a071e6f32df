"""Rules: bounds keep their own value, null never fails, reasons come in order."""

import numpy as np
import pytest

from transforms.core.rules import Rule, verdict


@pytest.mark.parametrize(
    ("bound", "dropped"), [("min", [True, False, False, False]), ("max", [False, False, True, False])]
)
def test_a_bound_keeps_the_threshold_itself(bound: str, dropped: list[bool]) -> None:
    rule = Rule("code", "clean", "v", bound, "a.b", "sentence")
    assert rule.drops(np.array([1.0, 2.0, 3.0, np.nan]), {"a": {"b": 2}}).tolist() == dropped


def test_a_verdict_lists_every_reason_in_the_rules_order() -> None:
    kept, reasons = verdict({"z": np.array([True, False]), "a": np.array([True, False])}, 2)
    assert kept.to_pylist() == [False, True]
    assert reasons.to_pylist() == [["z", "a"], []]


def test_no_rules_keep_everything() -> None:
    kept, reasons = verdict({}, 2)
    assert kept.to_pylist() == [True, True]
    assert reasons.to_pylist() == [[], []]
