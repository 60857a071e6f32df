"""Work that overlaps: an iterator that a thread runs ahead of, by a bounded number of items."""

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.1  # how soon the thread sees that nobody waits for it any more


def ahead(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """Yields `items` in order; a thread makes up to `depth` of them before they are asked for.

    What making an item raises is raised here, in its place. Closing the iterator ends the thread.
    """
    found: queue.Queue[tuple[bool, T | BaseException | None]] = queue.Queue(depth)
    closed = threading.Event()

    def put(more: bool, item: T | BaseException | None) -> bool:
        while not closed.is_set():
            try:
                found.put((more, item), timeout=_POLL_S)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            for item in items:
                if not put(True, item):
                    return
        except BaseException as error:  # noqa: BLE001 (whatever it is, it belongs to the one who asks)
            put(False, error)
        else:
            put(False, None)

    thread = threading.Thread(target=make, name="ahead", daemon=True)
    thread.start()
    try:
        yield from _taken(found)
    finally:
        closed.set()
        thread.join()


def _taken(found: "queue.Queue[tuple[bool, T | BaseException | None]]") -> Iterator[T]:
    while True:
        more, item = found.get()
        if more:
            yield item  # type: ignore[misc]
        elif isinstance(item, BaseException):
            raise item
        else:
            return
