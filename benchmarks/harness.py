"""What the benchmarks share: flags, clocks, memory, and projects for commands to run in.

Its import puts the checkout first on the path, so that a benchmark measures the code that it stands beside.
"""

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(ROOT))

PROCESSES = 2  # of ours and of each peer, where both have as many as they like
GRADSIFT = (sys.executable, "-m", "pipelines.cli", "run")

T = TypeVar("T")
Clock = Callable[[], float]


def parser(doc: str | None, *, texts: str = "", folder: bool = False) -> argparse.ArgumentParser:
    """Returns the parser of a script whose docstring is its help; `texts` says what it reads without --texts."""
    found = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if texts:
        words = f"JSONL files with a column `text`; without, {texts}"
        found.add_argument("--texts", nargs="*", type=Path, default=[], metavar="FILE", help=words)
    if folder:
        words = "where to work; without, a temporary folder"
        found.add_argument("--folder", type=Path, metavar="FOLDER", help=words)
    return found


def race(
    ways: Mapping[str, Callable[[], T]], rounds: int, clock: Clock = time.perf_counter, *, warm: int = 0
) -> tuple[dict[str, float], dict[str, T]]:
    """Returns the least seconds of each way and its last answer; they take turns, and `warm` rounds do not count."""
    best, answers = dict.fromkeys(ways, math.inf), {}
    for n in range(warm + rounds):
        for name, way in ways.items():
            started = clock()
            answers[name] = way()
            seconds = clock() - started
            print(f"{name:<26} {seconds:9.3f} s" + ("" if n >= warm else "  (does not count)"), flush=True)
            if n >= warm:
                best[name] = min(best[name], seconds)
    return best, answers


def cpu_s(action: Callable[[], object], rounds: int) -> float:
    """Returns the least CPU seconds of `action` over `rounds` rounds."""
    return min(_spent(action) for _ in range(rounds))


def _spent(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def peak_mb() -> float:
    """Returns the peak of this process's memory; Linux's `ru_maxrss` would begin at the parent's."""
    import resource

    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def call(command: Sequence[str | Path]) -> None:
    """Runs a command to its end; stops the benchmark, with what it said, if it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=7200, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"{command} failed with {done.returncode}:\n{done.stderr[-3000:]}")


def shipped() -> dict[str, Any]:
    """Returns all default params, for a benchmark to change."""
    from pipelines.core import params

    return dict(params.read(params.DEFAULTS).tree)


def write_params(root: Path, tree: Mapping[str, Any]) -> Path:
    """Makes `root` a project with the params `tree`; returns its params file."""
    import yaml

    root.mkdir(parents=True, exist_ok=True)
    path = root / "params.yaml"
    path.write_text(yaml.safe_dump(dict(tree)), encoding="utf-8")
    return path
