"""The output folder of `gradsift quality fit`: what it may contain, how params refer to it, and how it is written."""

import json
import os
from pathlib import Path

from pipelines.quality_models import head_file
from pipelines.quality_models import unfreeze as quality_unfreeze
from pipelines.quality_models.head_file import HeadFile
from scoring.core import files
from scoring.core.errors import ConfigError, ToolError
from scoring.core.types import JsonObject
from scoring.models import files as model_files

README, CARD, HEAD, ENCODER = "README.md", "card.json", "head.safetensors", "encoder"


def require_free(out: Path) -> None:
    """Raises ConfigError unless `out` is missing, empty, or holds nothing but an earlier head."""
    if not out.exists():
        return
    remedy = "use a new folder, or one that holds only an earlier head"
    if not out.is_dir():
        raise ConfigError("--out is not a folder", where=str(out), remedy=remedy)
    foreign = sorted(_files(out) - _own(out))
    if foreign:
        shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        what = f"--out holds {len(foreign)} files that do not belong to an earlier head: {shown}"
        raise ConfigError(what, where=str(out), remedy=remedy)


def _files(out: Path) -> set[str]:
    """Returns all there is in `out`, but for what a run that was killed has left."""
    found = (p.relative_to(out) for p in out.rglob("*") if not p.is_dir() or p.is_symlink())
    return {p.as_posix() for p in found if not p.parts[0].startswith(files.TEMPORARY)}


def _own(out: Path) -> set[str]:
    """Returns the files that the card in `out` says belong to it; none if the card is not ours."""
    try:
        card = json.loads((out / CARD).read_bytes())
        return set(card["files"]) if card["head"] and card["model"] else set()
    except (OSError, ValueError, TypeError, KeyError):
        return set()


def require_outside(out: Path, model: str, root: Path) -> None:
    """Raises ConfigError if `model` is inside `out`: writing the new head would remove it."""

    try:
        found = model_files.resolve(model, root)
    except ToolError:
        return  # told when it is loaded
    if found.resolve().is_relative_to(out.resolve()):
        raise ConfigError(
            "the model is inside the --out folder", where=f"{model} ({out})", remedy="choose another --out"
        )


def named(root: Path, out: Path) -> str:
    """Returns how params in `root` name the folder `out`: relative to `root` if it is inside it."""
    whole, base = Path(os.path.abspath(out)), Path(os.path.abspath(root))
    return whole.relative_to(base).as_posix() if whole.is_relative_to(base) else whole.as_posix()


def write(out: Path, head: HeadFile, encoder: quality_unfreeze.Encoder | None, readme: str) -> JsonObject:
    """Writes the head, its encoder if there is one, its README and, last, its card; returns the card.

    A run that is killed meanwhile leaves a folder that no stage takes for a head, and that can be written again.
    """
    names = {f"{ENCODER}/{p.name}" for p in encoder.folder.iterdir()} if encoder else set()
    card = {**head.card, "files": sorted({README, CARD, HEAD, *names})}
    out.mkdir(parents=True, exist_ok=True)
    files.write_json(out / CARD, {**card, "head": "unfinished", "files": sorted({*card["files"], *_own(out)})})
    quality_unfreeze.publish(encoder, out)
    files.write_text(out / README, readme)
    head_file.write(out, HeadFile(head.content, card))
    return card
