"""Cleans every sample's text and applies the text rules.

Reads:      samples (modality, source, text, images, image_times_s, audio), the benchmarks that params name
Writes:     clean/ (schemas.CLEAN; lines/ and boilerplate.parquet: pipelines.passes.boilerplate; benchmarks.arrow:
            pipelines.passes.decontaminate), metrics/clean.json
Guarantees: one row per sample, in order; the value of every rule is stored, also of rows that pass; the
            metrics count kept and dropped rows by source and reason, and their sum is the input.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict

import pyarrow as pa

from pipelines.core import conserve, progress, stage
from pipelines.core.project import Project
from pipelines.passes import boilerplate, decontaminate
from scoring.core import jit
from scoring.core.types import JsonObject
from transforms.clean.config import CleanConfig
from transforms.clean.transform import READS, Clean
from transforms.core import schemas
from transforms.text.normal.normalize import normalize_batch
from transforms.text.pii import redact as pii


def run(project: Project) -> None:
    """Writes the sidecar `clean` of every part of `samples`."""
    config = project.section("clean", CleanConfig)
    if not jit.is_compiled("transforms.text.rules.measure"):
        progress.say("clean: compiling the text kernels; done once per machine, takes about a minute")
    repeated = boilerplate.find(project, config.boilerplate)
    index = _index(project, config)
    sidecar = stage.Sidecar(
        folder="clean",
        schema=schemas.CLEAN,
        reads=READS,
        code="pipelines.clean",
        config=_decisive(config, repeated),
        depends=[index.digest],
        own=repeated.shares,
    )
    stage.map_parts(project, sidecar, Clean(config, repeated.path, index.path))
    found = {"boilerplate": boilerplate.summary(repeated), "benchmarks": index.counts}
    stage.write_metrics(project, "clean", {**conserve.verdicts(project, "clean"), **found})


def _index(project: Project, config: CleanConfig) -> decontaminate.Prepared:
    """Returns the index of the benchmarks, normalised like the texts."""

    def clean(texts: pa.LargeStringArray) -> pa.LargeStringArray:
        return normalize_batch(texts, config.normalize).texts

    return decontaminate.prepare(project, config.decontaminate, clean, asdict(config.normalize))


def _decisive(config: CleanConfig, repeated: boilerplate.Found) -> JsonObject:
    """Returns what of params decides the bytes of every part; the sets of lines and items have digests of their own."""
    values = asdict(config)
    values["boilerplate"] = {"on": repeated.path is not None, "remove": config.boilerplate.remove}
    values["decontaminate"] = {"max_overlap": config.decontaminate.max_overlap}
    values["pii"] |= {"key": pii.key_check(config.pii), "key_env": None}
    return values


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "clean", argv)


if __name__ == "__main__":
    sys.exit(main())
