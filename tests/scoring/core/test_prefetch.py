"""Work ahead: the same items in order, errors in their place, no thread left, and never more than asked for."""

import threading
import time
from collections.abc import Iterator

import pytest

from scoring.core.prefetch import ahead


def counted(made: list[int], n: int) -> Iterator[int]:
    for k in range(n):
        made.append(k)
        yield k


@pytest.mark.parametrize("n", [0, 1, 7])
def test_the_same_items_in_order(n: int) -> None:
    assert list(ahead(range(n))) == list(range(n))


def test_no_more_than_depth_is_made_ahead() -> None:
    made: list[int] = []
    found = ahead(counted(made, 100), depth=3)
    assert next(found) == 0
    time.sleep(0.3)
    assert len(made) <= 1 + 3 + 1  # taken, waiting, and the one that finds the queue full
    found.close()  # type: ignore[attr-defined]


def test_an_error_comes_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("two is bad")

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(ValueError, match="two is bad"):
        next(found)


def test_closing_early_leaves_no_thread() -> None:
    found = ahead(iter(range(1000)), depth=1)
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name == "ahead"]
