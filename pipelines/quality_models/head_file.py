"""The fitted head as it lies on disk: `head.safetensors`, and `card.json`, which says what it is and how good."""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from pipelines.core.project import Project
from scoring.core import files
from scoring.core.errors import ConfigError, DataError
from scoring.core.types import JsonObject, Record
from scoring.quality.head import Head
from transforms.quality import values as quality_values
from transforms.quality.config import QualityConfig

_REMEDY = "provide more or cleaner labels (quality.labels), use another quality.model, or lower min_heldout_f1"


class HeadFile(NamedTuple):
    """A head as stored on disk, and its card."""

    content: bytes
    card: JsonObject


def folder(project: Project) -> Path:
    """Returns the folder of the fitted head."""
    return project.folder("quality") / "head"


def read(path: Path) -> HeadFile:
    """Returns the head in folder `path`, whatever it was fitted on."""
    return HeadFile((path / "head.safetensors").read_bytes(), json.loads((path / "card.json").read_bytes()))


def load(path: Path, config: QualityConfig, model: str) -> HeadFile:
    """Returns the head that `gradsift quality fit` wrote into folder `path`, for the model of digest `model`.

    Raises:
      ConfigError: there is none, it is damaged, or it is of another model.
    """
    remedy = "fit one with gradsift quality fit LABELS --out FOLDER, or set quality.head to fitted"
    try:
        head = read(path)
        of, names = head.card["model_digest"], Head.from_bytes(head.content).names
    except Exception as error:  # safetensors has errors of its own
        raise ConfigError(f"cannot read the quality head: {error}", where=str(path), remedy=remedy) from error
    if head.card["head"] != digest(head.content):
        raise ConfigError("head.safetensors does not match the digest in card.json", where=str(path), remedy=remedy)
    if of != model or names[:-1] != quality_values.NAMES:
        what = f"model {head.card['model']}, not {config.model}" if of != model else "different text statistics"
        raise ConfigError(f"the quality head was fitted on {what}", where=str(path), remedy=remedy)
    return head


def digest(content: bytes) -> str:
    """Returns the 128-bit hex digest of a head file."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def check(config: QualityConfig, card: Record, remedy: str = _REMEDY) -> None:
    """Raises DataError if held-out F1 or inter-annotator agreement is below the minimum in params."""
    f1, alpha = card["heldout"]["f1"], card.get("agreement", {}).get("alpha")
    if f1 < config.min_heldout_f1:
        raise DataError(
            f"held-out F1 {f1:.3f} is below quality.min_heldout_f1 {config.min_heldout_f1:g}",
            where=f"quality head, {card['rows']['unseen']} unseen rows; by origin: {card['detected']}",
            remedy=remedy,
        )
    if alpha is not None and alpha < config.min_alpha:
        raise DataError(
            f"inter-annotator agreement is too low: Krippendorff's alpha is {alpha:.3f}, below {config.min_alpha}",
            where="quality.labels, quality.min_alpha",
            remedy="relabel the disputed rows, clarify the annotation guideline, or lower quality.min_alpha",
        )


def write(path: Path, head: HeadFile) -> None:
    """Writes head and card, the card last: it names the head that it belongs to."""
    files.write_atomic(path / "head.safetensors", lambda place: Path(place).write_bytes(head.content))
    files.write_json(path / "card.json", head.card)
