"""Stage `gradients`: loss, gradient norm and direction of every kept text on the reference's checkpoints.

Reads: data/samples (ids), data/clean, data/dedup, data/quality, data/reference; the files of `gradients.target`.
Writes: data/gradients (parts), data/gradients/sketches (parts), data/gradients/directions
(pipelines.passes.directions), metrics/gradients.json.
Guarantees: a row's values depend on its text, the reference and the directions alone, to 1e-5, but for
`precision: auto`, where they also depend on the mode that stands beside them; a row whose gradient is not finite
has a note and no values. A nightly increment scores new rows only.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.core import stage
from pipelines.core.project import Project
from pipelines.passes import directions, reference_marker, stability
from scoring.core.sums import ExactSum
from scoring.core.types import JsonObject
from transforms.core import parts
from transforms.core.schemas import GRADIENTS
from transforms.core.schemas import SKETCHES as SKETCHES_SCHEMA
from transforms.gradients import transform as gradients
from transforms.gradients.checkpoints import Recipe
from transforms.gradients.config import GradientsConfig

READS = {"clean": ["clean_text", "kept"], "dedup": ["kept"], "quality": ["kept"]}
SKETCHES = "gradients/sketches"


def run(project: Project) -> None:
    """Brings the directions up to date, scores what is not scored yet, and writes the metrics."""
    config = project.section("gradients", GradientsConfig)
    found = reference_marker.read(project)
    names = reference_marker.checkpoints(project, found)
    if names:
        marker = directions.prepare(project, config, names, [c["digest"] for c in found["checkpoints"]])
        recipe = make_recipe(project, config, marker)
        models = [c["digest"] for c in found["checkpoints"]]
        _map(project, config, gradients.ScoreGradients(recipe), [*models, *marker["files"].values()])
    else:
        marker, note = {"files": {}, "ids": []}, f"no reference: {found['skipped']}"
        directions.remove(project)
        stability.remove(project)
        _map(project, config, gradients.NoteUnscored(note), [note])
    trust = {"stability": stability.figures(project, config, marker)} if names else {}
    stage.write_metrics(project, "gradients", {**_metrics(project, marker), **trust})


def make_recipe(project: Project, config: GradientsConfig, marker: directions.Marker) -> Recipe:
    """Returns how a process loads the checkpoints of the reference with the directions of `marker`."""
    names = reference_marker.checkpoints(project, reference_marker.read(project))
    paths = tuple(directions.folder(project) / name for name in marker["files"])
    return Recipe(config, project.root, project.runtime.threads, tuple(names), paths)


def _map(project: Project, config: GradientsConfig, transform: beam.PTransform, depends: Sequence[str]) -> None:
    sketched = config.sketch.keep != "none"
    folder = project.folder(SKETCHES)
    if not sketched:
        parts.remove_strays(folder, [])
    sidecar = stage.Sidecar(
        folder="gradients",
        schema=GRADIENTS,
        reads=READS,
        code="pipelines.gradients",
        config={k: v for k, v in asdict(config).items() if k not in ("refresh_ratio", "target")},
        depends=[*depends, str(SKETCHES_SCHEMA)] if sketched else depends,
        also={SKETCHES: SKETCHES_SCHEMA} if sketched else {},
    )
    sink = gradients.WriteGradients(project.folder("gradients"), folder if sketched else None)
    stage.map_parts(project, sidecar, transform, sink)


def _metrics(project: Project, marker: directions.Marker) -> JsonObject:
    """Returns how many rows were scored and how, why others were not, and means over the scored rows by checkpoint."""
    notes: Counter[str] = Counter()
    modes: Counter[str] = Counter()
    sums = {name: [ExactSum() for _ in marker["files"]] for name in ("loss", "grad_norm", "target_cosine")}
    gain, rows = ExactSum(), 0
    for name in parts.names(project.folder("gradients")):
        columns = ["gradient_note", "gradient_mode", "order_gain", *sums]
        batch = parts.read_part(project.folder("gradients") / name, columns)
        rows += batch.num_rows
        notes.update(n for n in batch["gradient_note"].to_pylist() if n)
        modes.update(m for m in batch["gradient_mode"].to_pylist() if m)
        gain.add(_floats(batch["order_gain"]))
        for column, totals in sums.items():
            for k, total in enumerate(totals):
                total.add(_floats(pc.list_element(batch[column].drop_null(), k)))
    means = {f"mean_{c}": [round(total.mean(), 9) for total in totals] for c, totals in sums.items()}
    counts = {"rows": rows, "scored": sum(modes.values()), "modes": dict(sorted(modes.items()))}
    kept = {"notes": dict(sorted(notes.items())), "checkpoints": len(marker["files"])}
    return {**counts, **kept, "target_rows": len(marker["ids"]), "mean_order_gain": round(gain.mean(), 9), **means}


def _floats(values: pa.Array) -> npt.NDArray[np.float64]:
    return np.asarray(values.drop_null().to_numpy(zero_copy_only=False))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage; returns the exit code."""
    return stage.main(run, "gradients", argv)


if __name__ == "__main__":
    sys.exit(main())
