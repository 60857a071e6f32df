"""The load of other programs: seen when they work, not counted when it is our own."""

import subprocess
import sys
import time

from transforms.gradients.machine_load import Meter

BURN = "import time; end = time.time() + 4\nwhile time.time() < end: pass"


def orphan() -> None:
    """Starts a busy process that is no descendant of this one: its parent is gone."""
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURN!r}])"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_share_lies_between_0_and_1() -> None:
    meter = Meter()
    assert all(0 <= meter.share() <= 1 for _ in range(3))


def test_others_are_seen() -> None:
    orphan()
    meter = Meter()
    time.sleep(1.5)
    assert meter.share() > 0.02


def test_our_own_work_is_not_theirs() -> None:
    idle, busy = Meter(), 0.0
    time.sleep(0.5)
    rest = idle.share()
    burn(1.0)
    busy = idle.share()
    assert busy < rest + 0.6  # a core of two would be 0.5 more if it counted as theirs
