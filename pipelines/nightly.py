"""`gradsift nightly`: one unattended run with a lock, a log line per stage and an exit code.

Only what new or changed sources need is computed: fingerprints skip the parts of everything else.
"""

import time
from pathlib import Path

from pipelines import runner
from pipelines.core import progress
from pipelines.core.project import locked, open_project


def main(path: Path) -> None:
    """Runs every stage of the project of params file `path` under its lock.

    Raises:
      GradsiftError: the first stage that fails; finished parts are kept, and the next run resumes there.
    """
    project = open_project(path)
    progress.say(f"nightly: {project.root} at {time.strftime('%Y-%m-%d %H:%M:%S')}")
    with locked(project):
        runner.run_stages(project, runner.needed(project))
