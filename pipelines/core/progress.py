"""Progress of a stage: a live bar on a terminal, plain lines elsewhere.

It watches the folder that the stage writes, so it works on every engine.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scoring.core.errors import DataError

POLL_S = 0.5
LINE_S = 10.0


@dataclass
class Watcher:
    """Counts the finished parts of `wanted` in `folder`, and the rows in them."""

    folder: Path
    wanted: set[str]
    started: float = field(default_factory=time.time)
    rows: int = 0
    seen: set[str] = field(default_factory=set)

    def poll(self) -> int:
        """Returns how many of the wanted parts were written since the start."""
        from transforms.core import parts

        for path in self.folder.glob("*.parquet"):
            if path.name in self.wanted and path.name not in self.seen and path.stat().st_mtime >= self.started - 1:
                footer = parts.Footer(path)
                try:
                    self.rows += int(str(footer.meta.get("inputs", footer.rows)))  # a part of rejects stands for a unit
                except DataError:  # a damaged part that has not been rewritten yet
                    continue
                self.seen.add(path.name)
        return len(self.seen)

    def rate(self) -> float:
        """Returns rows per second since the start."""
        return self.rows / max(1e-9, time.time() - self.started)

    def eta_s(self) -> float | None:
        """Returns the estimated seconds for the remaining parts."""
        left = len(self.wanted) - len(self.seen)
        return left * (time.time() - self.started) / len(self.seen) if self.seen else None


def say(message: str) -> None:
    """Prints one plain line on standard error."""
    print(message, file=sys.stderr, flush=True)


def clock(seconds: float | None) -> str:
    """Returns `seconds` as m:ss, or ?:?? when unknown."""
    return "?:??" if seconds is None else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@contextmanager
def watch(stage: str, folder: Path, wanted: set[str]) -> Iterator[None]:
    """Shows the progress of `stage` while the block runs."""
    if not wanted:
        yield
        return
    watcher, stop = Watcher(folder, wanted), threading.Event()
    show = _bar if sys.stderr.isatty() else _lines
    thread = threading.Thread(target=show, args=(stage, watcher, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _lines(stage: str, watcher: Watcher, stop: threading.Event) -> None:
    while not stop.wait(LINE_S):
        done = watcher.poll()
        say(f"{stage}: {done}/{len(watcher.wanted)} parts, {watcher.rate():,.0f} rows/s, {clock(watcher.eta_s())} left")


def _bar(stage: str, watcher: Watcher, stop: threading.Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("parts  {task.fields[rate]:>9} rows/s  {task.fields[eta]} left"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(stage, total=len(watcher.wanted), rate="–", eta="?:??")
        while not stop.wait(POLL_S):
            done = watcher.poll()
            progress.update(bar, completed=done, rate=f"{watcher.rate():,.0f}", eta=clock(watcher.eta_s()))
        progress.update(bar, completed=watcher.poll(), rate=f"{watcher.rate():,.0f}", eta="0:00")
