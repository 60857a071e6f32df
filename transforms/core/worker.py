"""A worker process of the engine `processes`: quiet, one thread per library, dead when its parent is.

Beam's own worker prints its start-up at INFO and outlives a killed parent; this one runs the same
harness with three additional settings.
"""

import ctypes
import logging
import os
import signal
import sys

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"), "1")
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Asks Linux to kill this process when the one that started it ends; does nothing elsewhere."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1 and os.environ.get("GRADSIFT_PID") != "1":  # it ended before we asked
        sys.exit(1)


def main() -> None:
    """Runs Beam's worker harness until the runner lets it go."""
    die_with_parent()
    logging.disable(logging.WARNING)
    os.environ |= ONE_THREAD
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
