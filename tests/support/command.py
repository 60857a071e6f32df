"""The `gradsift` command, as a process of its own, or within this one, which spares the imports."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from support.places import ROOT

from pipelines import cli

ENV = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}


class Outcome(NamedTuple):
    """What a command ended with and said."""

    returncode: int
    stdout: str
    stderr: str


def argv(*arguments: str) -> list[str]:
    """Returns the command line of a process that runs `gradsift` with `arguments`."""
    return [sys.executable, "-m", "pipelines.cli", *arguments]


def gradsift(root: Path, *arguments: str) -> Outcome:
    """Returns the outcome of a process in `root`."""
    out = subprocess.run(argv(*arguments), cwd=root, env=ENV, capture_output=True, text=True, check=False)
    return Outcome(out.returncode, out.stdout, out.stderr)


def within(root: Path, *arguments: str) -> Outcome:
    """Returns the outcome of the same entry point, called here in `root`; raises what a process would die of."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["gradsift", *arguments]
    try:
        with contextlib.chdir(root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as end:
        return Outcome(int(end.code or 0), out.getvalue(), err.getvalue())
    finally:
        sys.argv = before
    raise AssertionError("main came back without an exit code")
