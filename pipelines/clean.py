"""Clean every sample's text and judge it by the text rules.

Reads:      samples (modality, text, images, image_times_s, audio)
Writes:     clean/ (schemas.CLEAN), metrics/clean.json
Guarantees: one row a sample, in order; the value of every rule is stored, also of rows that pass; the
            metrics count kept and dropped rows by source and reason, and their sum is the input.
"""

import sys
from collections.abc import Sequence

from pipelines import conserve, stage
from pipelines.project import Project
from transforms import schemas
from transforms.clean import READS, Clean, CleanConfig


def run(project: Project) -> None:
    """Writes the sidecar `clean` of every part of `samples`."""
    config = project.section("clean", CleanConfig)
    stage.map_parts(
        project,
        Clean(config),
        module="pipelines.clean",
        folder="clean",
        schema=schemas.CLEAN,
        reads=READS,
        config=config,
    )
    stage.write_metrics(project, "clean", conserve.verdicts(project, "clean"))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "clean", argv)


if __name__ == "__main__":
    sys.exit(main())
