"""How far the gradient scores can be trusted: do they rank rows the same if something irrelevant changes?

Rank correlations (Spearman) over a seeded sample of the scored rows: of neighbouring checkpoints, of the exact cosine
with that of the sketches, and of the cosine with a direction that another seed would have chosen.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.core import stage
from pipelines.core.project import Project
from pipelines.passes import directions
from scoring.core import files
from scoring.core.hashing import hash64
from scoring.core.ranks import spearman
from scoring.core.types import JsonObject, Record
from scoring.gradients import sketches
from transforms.core import parts
from transforms.gradients.checkpoints import read_directions
from transforms.gradients.config import GradientsConfig

MODULE = "pipelines.passes.stability"
ROWS = 2000
_COLUMNS = ("loss", "grad_norm", "target_cosine")

Floats = npt.NDArray[np.floating]


def figures(project: Project, config: GradientsConfig, marker: directions.Marker) -> JsonObject:
    """Returns the correlations, and the share of row pairs with opposing gradients.

    They are kept on disk, and taken again when a row, the params or the code changes.
    """
    path = _path(project)
    key = stage.fingerprint(MODULE, config, [marker["files"], stage.corpus_digest(project, _reads(config))])
    try:
        kept = json.loads(path.read_bytes())
        if kept["key"] == key and kept["digest"] == parts.digest(kept["figures"]) and not project.force:
            return dict(kept["figures"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # the first time, or a damaged file: they are taken again
    found = _figures(project, config, marker)
    files.write_json(path, {"key": key, "digest": parts.digest(found), "figures": found})
    return found


def remove(project: Project) -> None:
    """Removes the figures that were kept."""
    _path(project).unlink(missing_ok=True)


def _path(project: Project) -> Path:
    return project.folder("gradients") / "stability.json"


def _reads(config: GradientsConfig) -> dict[str, list[str]]:
    sketches_read = {"gradients/sketches": ["sketch"]} if config.sketch.keep != "none" else {}
    return {"gradients": list(_COLUMNS), **sketches_read}


def _figures(project: Project, config: GradientsConfig, marker: directions.Marker) -> JsonObject:
    rows = _sample(project, config)
    if len(rows) < 3:
        return {}
    values = {c: np.array([r[c] for r in rows], np.float64) for c in _COLUMNS}
    found: JsonObject = {"rows": len(rows), "checkpoints": {c: _neighbours(v) for c, v in values.items()}}
    if config.sketch.keep != "none":
        found |= _sketched(project, config, marker, rows, values["target_cosine"][:, -1])
    return found


def _sample(project: Project, config: GradientsConfig) -> list[Record]:
    """Returns the values of the scored rows of the smallest seeded hashes."""
    smallest: list[tuple[int, Record]] = []
    for batch in parts.iter_columns(project.data, parts.names(project.folder("gradients")), _reads(config)):
        scored = batch.filter(batch["gradients.grad_norm"].is_valid())
        hashes = [hash64(config.seed, i) for i in scored["sample_id"].to_pylist()]
        bound = smallest[-1][0] if len(smallest) == ROWS else 2**64
        near = [n for n, h in enumerate(hashes) if h < bound]
        rows = zip((hashes[n] for n in near), _rows(scored.take(pa.array(near, pa.int64()))), strict=True)
        smallest = sorted([*smallest, *rows], key=lambda item: item[0])[:ROWS]
    return [row for _, row in smallest]


def _rows(batch: pa.RecordBatch) -> Iterator[JsonObject]:
    """Yields the rows of a batch by column, without the folders' names."""
    for row in batch.to_pylist():
        yield {name.split(".")[-1]: value for name, value in row.items()}


def _neighbours(values: Floats) -> list[float | None]:
    """Returns the correlation of each checkpoint's values (n, T) with the next one's."""
    return [correlation(values[:, t], values[:, t + 1]) for t in range(values.shape[1] - 1)]


def _sketched(
    project: Project, config: GradientsConfig, marker: directions.Marker, rows: list[Record], exact: Floats
) -> JsonObject:
    codes = np.stack([np.frombuffer(r["sketch"][-1], np.int8) for r in rows])
    last = read_directions(directions.folder(project) / max(marker["files"]))
    target = config.projection.of({n: d[:1] for n, d in last.items()})
    found = sketches.cosines(codes, np.concatenate([target, directions.other_sketch(project)]))
    return {
        "sketch_against_exact": correlation(found[:, 0], exact),
        "seed_against_seed": correlation(found[:, 0], found[:, 1]),
        "conflict_rate": round(sketches.conflict_rate(codes), 6) if codes.any(1).sum() > 1 else None,
    }


def correlation(a: Floats, b: Floats) -> float | None:
    """Returns the rank correlation of the rows that have both; None where one of them is constant."""
    both = np.isfinite(a) & np.isfinite(b)
    found = spearman(np.asarray(a[both], np.float64), np.asarray(b[both], np.float64))
    return None if np.isnan(found) else round(found, 6)
