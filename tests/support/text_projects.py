"""Projects of seeded texts up to the stage `quality`, and the sizes of a reference that trains in a second."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support import builders

from pipelines.core.project import Project
from transforms.core import parts, schemas

TINY: Mapping[str, Any] = {
    "vocabulary": 300, "layers": 2, "width": 16, "heads": 2, "context": 24, "train_rows": 40, "steps": 6,
    "batch_rows": 4, "learning_rate": 0.01, "muon_rate": 0.02, "checkpoints": 3,
}  # fmt: skip
SKETCH = {"keep": "last", "rank": 4, "width": 64}
SHORT: Mapping[str, Any] = {"max_tokens": 24, "batch_tokens": 256, "target_rows": 10, "contrast": 0.0, "sketch": SKETCH}

_WORDS = (
    "river", "hill", "stone", "water", "people", "walk", "under", "bright", "cold", "morning", "they", "tell", "of",
    "old", "roads", "and", "the", "sea",
)  # fmt: skip


def text(number: int) -> str:
    """Returns a seeded text of a few sentences."""
    rng = random.Random(number)
    sentences = [" ".join(rng.choices(_WORDS, k=rng.randint(3, 9))).capitalize() for _ in range(rng.randint(1, 6))]
    return ". ".join(sentences) + "."


def texts(count: int) -> dict[str, str]:
    """Returns `count` seeded texts by sample id."""
    return {f"t{n:04d}": text(n) for n in range(count)}


def project(
    root: Path,
    rows: Mapping[str, str | None],
    *,
    part_rows: int = 16,
    dropped: Sequence[str] = (),
    quality: Mapping[str, float] | None = None,
    threads: int = 1,
    **sections: Mapping[str, Any],
) -> Project:
    """Returns a project of `rows`, `dropped` ones dropped by quality, with tiny `reference` and `gradients`."""
    tiny = {
        "reference": {**TINY, **sections.pop("reference", {})},
        "gradients": {**SHORT, **sections.pop("gradients", {})},
    }
    found = builders.empty_project(root, **tiny, **sections)
    ids = list(rows)
    for start in range(0, max(1, len(ids)), part_rows):
        write_part(
            found,
            f"part-aa-{start:04d}.parquet",
            {i: rows[i] for i in ids[start : start + part_rows]},
            dropped,
            quality,
        )
    return dataclasses.replace(found, runtime=dataclasses.replace(found.runtime, threads=threads))


def write_part(
    target: Project,
    name: str,
    rows: Mapping[str, str | None],
    dropped: Sequence[str] = (),
    quality: Mapping[str, float] | None = None,
) -> None:
    """Writes part `name` of the folders that the stage `reference` reads."""
    scores = quality or {}
    for folder, values in {
        "samples": [{"text": t, "source": "web", "modality": "text"} for t in rows.values()],
        "clean": [{"clean_text": t, "chars": None if t is None else len(t), **builders.KEPT} for t in rows.values()],
        "dedup": [builders.KEPT for _ in rows],
        "quality": [{**_verdict(i in dropped), "quality": scores.get(i)} for i in rows],
    }.items():
        records = [{"sample_id": i, **v} for i, v in zip(rows, values, strict=True)]
        builders.write_rows(target, folder, name, records)


def _verdict(dropped: bool) -> dict[str, Any]:
    return {"kept": False, "reasons": ["low_quality"]} if dropped else dict(builders.KEPT)


def files(folder: Path) -> dict[str, bytes]:
    """Returns the content of every file below `folder`, by its path there."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def gradient_rows(project: Project) -> dict[str, dict[str, Any]]:
    """Returns what the stage `gradients` wrote of every row, by sample id."""
    folder = project.folder("gradients")
    batches = [parts.read_part(folder / n, schemas.GRADIENTS.names) for n in parts.names(folder)]
    return {row["sample_id"]: row for batch in batches for row in batch.to_pylist()}
