"""Stage `reference`: the model for gradients, trained here or set in params.

Reads: data/samples (ids), data/clean, data/dedup, data/quality; the model that params name, if not `train`.
Writes: data/reference (checkpoints, and last of all reference.json), metrics/reference.json.
Guarantees: where there is a reference.json, the checkpoints it lists are whole; training depends on the kept
rows, the params and the number of threads alone, so a run that was killed starts again and ends in the same
bytes. A reference is kept until its training rows have changed by more than `refresh_ratio`.
"""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pipelines.core import progress, stage
from pipelines.core.project import Project
from pipelines.passes import kept_texts, reference_marker
from pipelines.passes.kept_texts import Chosen
from pipelines.passes.reference_marker import TRAIN, Marker
from scoring.core import drift, files
from scoring.core.errors import DataError
from scoring.models import files as model_files
from scoring.models import load as models
from scoring.models.types import Model, Tokenizer
from scoring.reference import train as reference
from scoring.reference.config import MIN_ROWS, ReferenceConfig

_SAY_STEPS = 25


def run(project: Project) -> None:
    """Trains, keeps or resolves the reference, and writes its marker and metrics."""
    config = project.section("reference", ReferenceConfig)
    marker = _trained(project, config) if config.model == TRAIN else _named(project, config)
    files.write_json(reference_marker.path(project), marker)
    hidden = ("ids", "inputs", "fingerprint")
    stage.write_metrics(project, "reference", {k: v for k, v in marker.items() if k not in hidden})


def _trained(project: Project, config: ReferenceConfig) -> Marker:
    key, inputs = _fingerprint(config), kept_texts.inputs(project)
    old = None if project.force else _reusable(project, key)
    if old and old["inputs"] == inputs:
        return old
    chosen = kept_texts.choose(project, config.train_rows, config.seed, better_half=False)
    ids = [c.sample_id for c in chosen]
    if old and old["checkpoints"] and drift.distance(old["ids"], ids) <= config.refresh_ratio:
        progress.say(f"reference: reused; at most {config.refresh_ratio:.0%} of its training rows changed")
        return old | {"inputs": inputs}
    _clear(project)
    stamp = {"model": TRAIN, "fingerprint": key, "inputs": inputs, "ids": ids, "rows": len(ids)}
    if len(ids) < MIN_ROWS:
        why = f"{len(ids)} rows with text, {MIN_ROWS} needed"
        progress.say(f"reference: skipped, {why}")
        return stamp | {"checkpoints": [], "skipped": why}
    with reference.deterministic():
        return stamp | _train(project, config, chosen)


def _fingerprint(config: ReferenceConfig) -> str:
    settings = {k: v for k, v in asdict(config).items() if k != "refresh_ratio"}
    return stage.fingerprint("pipelines.reference", settings, [])


def _reusable(project: Project, key: str) -> Marker | None:
    """Returns the marker on disk if its fingerprint is `key` and its checkpoints are complete."""
    try:
        marker = reference_marker.read(project)
    except DataError:
        return None
    same = marker.get("fingerprint") == key and all(_is_whole(project, c) for c in marker["checkpoints"])
    return marker if same else None


def _is_whole(project: Project, checkpoint: dict[str, str]) -> bool:
    folder = project.folder("reference") / checkpoint["name"]
    return folder.is_dir() and model_files.digest(str(folder)) == checkpoint["digest"]


def _clear(project: Project) -> None:
    """Removes the old reference, its marker first."""
    reference_marker.path(project).unlink(missing_ok=True)
    for pattern in ("checkpoint-*", f"{files.TEMPORARY}*"):
        for path in project.folder("reference").glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _train(project: Project, config: ReferenceConfig, chosen: Sequence[Chosen]) -> Marker:
    """Writes the checkpoints; returns what the marker says of them."""
    models.use_threads(project.runtime.threads)
    texts, held_texts = reference.split(kept_texts.read(project, chosen, config.text_chars(len(chosen))))
    tokenizer = reference.train_tokenizer(texts, config.vocabulary)
    model = reference.new_model(config, tokenizer)
    seen, held = (reference.chunks(tokenizer, t, config.context) for t in (texts, held_texts))
    losses: list[float] = []
    heldout: list[list[float]] = [[0, round(reference.mean_loss(model, held), 6)]]
    saved: list[dict[str, str]] = []
    for step, loss in enumerate(reference.train(model, seen, config), start=1):
        losses.append(loss)
        if step in config.checkpoint_steps:
            saved.append(_save(project, step, model, tokenizer))
            heldout.append([step, round(reference.mean_loss(model, held), 6)])
        if step in config.checkpoint_steps or step % _SAY_STEPS == 0:
            progress.say(f"reference: step {step}/{config.steps}, loss {loss:.3f}, held-out loss {heldout[-1][1]:.3f}")
    return {
        "checkpoints": saved,
        "vocabulary": len(tokenizer),
        "parameters": model.num_parameters(),
        "rows_heldout": len(held),
        "loss": reference.curve(losses),
        "heldout_loss": heldout,
    }


def _save(project: Project, step: int, model: Model, tokenizer: Tokenizer) -> dict[str, str]:
    folder = project.folder("reference") / f"checkpoint-{step:05d}"
    reference.save_checkpoint(folder, model, tokenizer)
    return {"name": folder.name, "digest": model_files.digest(str(folder))}


def _named(project: Project, config: ReferenceConfig) -> Marker:
    """Returns the marker of the model that params name: one checkpoint, or a folder of several."""
    _clear(project)
    folder = project.root / Path(config.model).expanduser()
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: (len(path.name), path.name))
    names = [f"{config.model.rstrip('/')}/{path.name}" for path in found if path.is_dir()] or [config.model]
    saved = [{"name": name, "digest": model_files.digest(name, project.root)} for name in names]
    return {"model": config.model, "checkpoints": saved}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage; returns the exit code."""
    return stage.main(run, "reference", argv)


if __name__ == "__main__":
    sys.exit(main())
