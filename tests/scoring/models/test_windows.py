"""Windows and batches: covered tokens by a slow oracle, budgets by properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.models import windows

COUNTS = st.integers(0, 3000)
SIZES = st.integers(1, 600)


@pytest.mark.parametrize(
    ("tokens", "window", "stride", "most", "found"),
    [
        (0, 510, 510, 8, []),
        (1, 510, 510, 8, [(0, 1)]),
        (510, 510, 510, 8, [(0, 510)]),
        (511, 510, 510, 8, [(0, 510), (1, 511)]),  # the last one is moved back, not a stub
        (10, 4, 4, 0, [(0, 4), (4, 8), (6, 10)]),
        (10, 4, 2, 0, [(0, 4), (2, 6), (4, 8), (6, 10)]),
        (100, 10, 10, 3, [(0, 10), (40, 50), (90, 100)]),
        (100, 10, 10, 1, [(0, 10)]),
    ],
)
def test_spans(tokens: int, window: int, stride: int, most: int, found: list[windows.Span]) -> None:
    assert windows.spans(tokens, window, stride, most) == found


@given(COUNTS, SIZES)
def test_every_token_is_covered_when_windows_touch_and_are_not_bounded(tokens: int, window: int) -> None:
    found = windows.spans(tokens, window, window, 0)
    assert {t for start, end in found for t in range(start, end)} == set(range(tokens))
    assert windows.coverage(found, tokens) == (1.0 if tokens else 0.0)


@given(COUNTS, SIZES, SIZES, st.integers(0, 10))
def test_coverage_is_the_share_of_tokens_in_any_window(tokens: int, window: int, stride: int, most: int) -> None:
    found = windows.spans(tokens, window, stride, most)
    covered = {t for start, end in found for t in range(start, end)}
    assert windows.coverage(found, tokens) == (len(covered) / tokens if tokens else 0.0)
    assert all(start >= 0 and end - start == min(window, tokens) and end <= tokens for start, end in found)
    assert found == sorted(set(found))
    assert most == 0 or len(found) <= most


@given(st.lists(st.integers(1, 600), max_size=200), st.integers(1, 5000))
def test_batches_hold_every_window_once_within_the_budget(lengths: list[int], budget: int) -> None:
    found = windows.batches(lengths, budget)
    assert sorted(k for batch in found for k in batch) == list(range(len(lengths)))
    for batch in found:
        sizes = [lengths[k] for k in batch]
        assert len(batch) * max(sizes) <= budget or len(batch) == 1
        assert sum(sizes) >= (0.95 if len(batch) * max(sizes) > 256 else 0.75) * len(batch) * max(sizes)
