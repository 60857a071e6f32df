"""Fine-tunes the last layers of `quality.model` on labelled rows and saves the encoder next to the head.

Reads: the model.
Writes: a folder `encoder` of safetensors, config and tokenizer.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipelines.core import progress
from pipelines.core.project import Project
from pipelines.quality_models.fit import learned_windows
from scoring.core import files
from scoring.core.types import JsonObject
from scoring.models import encoders
from scoring.models import files as model_files
from scoring.models.types import Model, Module, Tokenizer
from scoring.quality import unfreeze
from scoring.quality.head import Bools
from transforms.quality import scorer as quality_scorer
from transforms.quality.config import QualityConfig


class Encoder(NamedTuple):
    """A trained encoder in a temporary folder, and its part of the card."""

    folder: Path
    card: JsonObject


@contextmanager
def trained(
    project: Project, config: QualityConfig, texts: Sequence[str], good: Bools, layers: int | None, out: Path
) -> Iterator[Encoder | None]:
    """Yields the encoder of `config`, its last `layers` trained on clean `texts`, in a temporary folder in `out`.

    None where no layers are to be trained.

    Raises:
      ConfigError: the model has fewer layers, or cannot be fine-tuned.
    """
    if layers is None:
        yield None
        return
    whole = replace(config, dtype="float32")  # bfloat16 would round the small steps of training away
    tokenizer, model = quality_scorer.load_model(whole, project.root, project.runtime.threads, encoders.load_encoder)
    chosen = unfreeze.last_layers(model, config.model, layers)
    made = not out.exists()
    folder = _temporary(out)
    try:
        count = _train(config, (tokenizer, model), chosen, texts, good)
        _save(folder, tokenizer, model)
        card = {"base": config.model, "base_digest": model_files.digest(config.model, project.root), "layers": layers,
                "of": len(unfreeze.layers_of(model, config.model)), "epochs": unfreeze.EPOCHS, "windows": count,
                "digest": model_files.digest(str(folder))}  # fmt: skip
        yield Encoder(folder, card)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if made and not any(out.iterdir()):
            out.rmdir()


def _temporary(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=files.TEMPORARY, dir=out))
    except OSError as error:
        raise files.cannot_write(out, error) from error


def _train(
    config: QualityConfig, loaded: tuple[Tokenizer, Model], layers: Sequence[Module], texts: Sequence[str], good: Bools
) -> int:
    """Trains on the windows that a head learns from; returns how many there are."""
    tokenizer, model = loaded
    cuts = learned_windows(tokenizer, config, texts)
    found = [window for row in cuts for window in row]
    each = np.repeat(good, [len(row) for row in cuts])
    progress.say(f"quality: fine-tuning {len(layers)} layers of {config.model} on {len(found)} windows")
    unfreeze.train(model, tokenizer, layers, found, each, seed=config.seed, say=progress.say)
    return len(found)


def _save(folder: Path, tokenizer: Tokenizer, model: Model) -> None:
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # embeddings do without, and some models have none of their own: it was drawn at random
    try:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        for path in folder.iterdir():
            files.sync(path)
    except OSError as error:
        raise files.cannot_write(folder, error) from error


def embedded(config: QualityConfig, encoder: Encoder | None) -> QualityConfig:
    """Returns `config` with the trained encoder as its model, if there is one."""
    return replace(config, model=str(encoder.folder.resolve())) if encoder else config


def publish(encoder: Encoder | None, out: Path) -> None:
    """Moves the encoder to `out/encoder`, replacing an earlier one."""
    shutil.rmtree(out / "encoder", ignore_errors=True)
    if encoder:
        encoder.folder.chmod(0o755)
        encoder.folder.rename(out / "encoder")
        files.sync(out)
