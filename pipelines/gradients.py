"""Stage `gradients`: loss, gradient norm and direction of every kept text on the reference's checkpoints.

Reads: data/samples (ids), data/clean, data/dedup, data/quality, data/reference.
Writes: data/gradients (parts), data/gradients/directions (one file a checkpoint, and directions.json),
metrics/gradients.json.
Guarantees: a row's values depend on its text, the reference and the directions alone, to 1e-5; a row whose
gradient is not finite has a note and no values. Directions are kept until their target rows have changed by
more than `refresh_ratio`, so a nightly increment scores new rows only.
"""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from pipelines import kept_texts, progress, reference, stage
from pipelines.project import Project
from scoring import drift, files, models
from scoring.files import file_digest
from scoring.gradients import costates
from scoring.reference import CHARS_PER_TOKEN
from scoring.sums import ExactSum
from transforms import gradients, parts
from transforms.gradients import GradientsConfig
from transforms.schemas import GRADIENTS

READS = {"clean": ["clean_text", "kept"], "dedup": ["kept"], "quality": ["kept"]}

Marker = dict[str, Any]


def run(project: Project) -> None:
    """Brings the directions up to date, scores what is not scored yet, and writes the metrics."""
    config = project.section("gradients", GradientsConfig)
    found = reference.read_marker(project)
    names = reference.checkpoints(project, found)
    if names:
        marker = _directions(project, config, names, [c["digest"] for c in found["checkpoints"]])
        paths = tuple(_folder(project) / name for name in marker["files"])
        recipe = gradients.Recipe(config, project.root, project.runtime.threads, tuple(names), paths)
        _map(project, config, gradients.ScoreGradients(recipe), [marker["fingerprint"], *marker["files"].values()])
    else:
        marker, note = {"files": {}, "ids": []}, f"no reference: {found['skipped']}"
        shutil.rmtree(_folder(project), ignore_errors=True)
        _map(project, config, gradients.NoteUnscored(note), [note])
    stage.write_metrics(project, "gradients", _metrics(project, marker))


def _map(project: Project, config: GradientsConfig, transform: Any, depends: Sequence[str]) -> None:
    stage.map_parts(
        project, transform, module="pipelines.gradients", folder="gradients", schema=GRADIENTS, reads=READS,
        config=_settings(config), depends=depends,
    )  # fmt: skip


def _settings(config: GradientsConfig) -> dict[str, Any]:
    """Returns the params that values depend on."""
    return {k: v for k, v in asdict(config).items() if k != "refresh_ratio"}


def _folder(project: Project) -> Path:
    return project.folder("gradients") / "directions"


def _directions(project: Project, config: GradientsConfig, names: Sequence[str], digests: Sequence[str]) -> Marker:
    """Returns what directions.json says: of the directions on disk if they are still good, else of new ones."""
    key, inputs = stage.fingerprint("pipelines.gradients", _settings(config), digests), kept_texts.inputs(project)
    old = None if project.force else _reusable(project, key)
    if old and old["inputs"] == inputs:
        return old
    chosen = kept_texts.choose(project, config.target_rows, config.seed, better_half=True)
    ids = [c.sample_id for c in chosen]
    if old and drift.distance(old["ids"], ids) <= config.refresh_ratio:
        marker = old | {"inputs": inputs}
    else:
        shutil.rmtree(_folder(project), ignore_errors=True)
        texts = kept_texts.read(project, chosen, config.max_tokens * CHARS_PER_TOKEN)
        marker = {"fingerprint": key, "inputs": inputs, "ids": ids, "files": _write(project, config, names, texts)}
    files.write_json(_folder(project) / "directions.json", marker)
    return marker


def _reusable(project: Project, key: str) -> Marker | None:
    """Returns the marker on disk if it is of the fingerprint `key` and its files are whole."""
    folder = _folder(project)
    try:
        marker = dict(json.loads((folder / "directions.json").read_bytes()))
        whole = all(file_digest(folder / name) == digest for name, digest in marker["files"].items())
    except (OSError, ValueError):
        return None
    return marker if whole and marker["fingerprint"] == key else None


def _write(project: Project, config: GradientsConfig, names: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Writes one file of directions a checkpoint; returns their digests by name."""
    progress.say(f"gradients: directions of {len(texts)} target rows at {len(names)} checkpoints")
    models.use_threads(project.runtime.threads)
    rows = gradients.token_rows(models.load_tokenizer(names[0], project.root), texts, config.max_tokens)
    found = [gradients.target_gradient(gradients.load_model(config, n, project.root), rows, config) for n in names]
    digests = {}
    for number, (target, costate) in enumerate(zip(found, costates(found), strict=True), start=1):
        path = _folder(project) / f"checkpoint-{number:02d}.safetensors"
        files.write_atomic(path, partial(gradients.write_directions, target=target, costate=costate))
        digests[path.name] = file_digest(path)
    return digests


def _metrics(project: Project, marker: Marker) -> dict[str, Any]:
    """Returns how many rows were scored, why others were not, and means over the scored rows by checkpoint."""
    notes: Counter[str] = Counter()
    sums = {name: [ExactSum() for _ in marker["files"]] for name in ("loss", "grad_norm", "target_cosine")}
    rows = scored = 0
    for name in parts.names(project.folder("gradients")):
        batch = parts.read_part(project.folder("gradients") / name, ["gradient_note", *sums])
        rows += batch.num_rows
        notes.update(n for n in batch["gradient_note"].to_pylist() if n)
        scored += batch.num_rows - batch["loss"].null_count
        for column, totals in sums.items():
            for k, total in enumerate(totals):
                values = pc.list_element(batch[column].drop_null(), k).drop_null()
                total.add(values.to_numpy(zero_copy_only=False))
    means = {f"mean_{c}": [round(total.mean(), 9) for total in totals] for c, totals in sums.items()}
    counts = {"rows": rows, "scored": scored, "notes": dict(sorted(notes.items()))}
    return {**counts, "checkpoints": len(marker["files"]), "target_rows": len(marker["ids"]), **means}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage; returns the exit code."""
    return stage.main(run, "gradients", argv)


if __name__ == "__main__":
    sys.exit(main())
