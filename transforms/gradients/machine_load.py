"""CPU load of other programs on the machine."""

import os
import time
from dataclasses import dataclass, field


def _own_s() -> float:
    """Returns the CPU seconds of this run so far: of its first process, and of the workers that live."""
    import psutil

    try:
        first = psutil.Process(int(os.environ.get("GRADSIFT_PID", os.getpid())))
        family = [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        family = [psutil.Process()]
    total = 0.0
    for process in family:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def _busy_s() -> float:
    """Returns the CPU seconds that all processes of the machine have used so far."""
    import psutil

    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "nice", 0.0))


@dataclass
class Meter:
    """Measures the share of the machine that other processes take, from one question to the next."""

    _last: tuple[float, float, float] = field(default_factory=lambda: (time.monotonic(), _busy_s(), _own_s()))

    def share(self) -> float:
        """Returns the share since the last question, from 0 to 1."""
        now = (time.monotonic(), _busy_s(), _own_s())
        wall, busy, own = (b - a for a, b in zip(self._last, now, strict=True))
        self._last = now
        cores = os.cpu_count() or 1
        return min(1.0, max(0.0, (busy - own) / (wall * cores))) if wall > 0 else 0.0
