"""What every benchmark prints last: one JSON line a claim; and how it ends where something that it needs is missing.

    from claim import claim, need

    need("datatrove", "peers")                                  # or exit code 3, with the command that installs it
    claim("sketch over bare", 1.03, limit=1.15, unit="CPU s")   # {"claim": "sketch over bare", "ratio": 1.03, …}

`bar` in a line is the least that its ratio should be, `limit` the most. Exit codes: 0 measured, 1 nothing measured,
2 wrong flags, 3 a peer is missing.
"""

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

NOTHING, MISSING = 1, 3  # exit codes


def claim(name: str, ratio: float, **more: object) -> None:
    """Prints one claim, its ratio to four digits, then `more` by name; ends the benchmark if the ratio is no number.

    Call it when everything is measured: these lines are the last.
    """
    if not (math.isfinite(ratio) and ratio > 0):
        _end(NOTHING, f"{name}: nothing was measured (the ratio is {ratio})")
    line = {"claim": name, "ratio": float(f"{ratio:.4g}"), **dict(sorted(more.items()))}
    print(json.dumps(line, ensure_ascii=False), flush=True)


def need(module: str, extra: str) -> None:
    """Ends the benchmark with exit code 3, and the extra to install, where `module` is not installed."""
    if importlib.util.find_spec(module) is None:
        missing(f"{module} is not installed: pip install 'gradsift[{extra}]'")


def need_in(python: Path, module: str, flag: str, install: str) -> None:
    """Ends the benchmark with exit code 3 where the interpreter that `flag` names does not have `module`."""
    try:
        found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, timeout=600, check=False)
    except OSError as error:
        missing(f"{flag} {python} does not start: {error.strerror}. It names a Python that has the peer: {install}")
    if found.returncode:
        missing(f"{flag} {python} does not have {module}: {install}")


def missing(words: str) -> NoReturn:
    """Ends the benchmark with exit code 3 and what to install or to name."""
    _end(MISSING, words)


def nothing(words: str) -> NoReturn:
    """Ends the benchmark with exit code 1: it measured nothing, so it claims nothing."""
    _end(NOTHING, words)


def _end(code: int, words: str) -> NoReturn:
    print(words, file=sys.stderr, flush=True)
    raise SystemExit(code)
