"""A corpus on disk as the stage `static` finds it: texts that every stage before it has kept."""

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from harness import cpu_s, shipped

from pipelines import static
from pipelines.core import params
from pipelines.core.options import RuntimeConfig
from pipelines.core.project import Project
from transforms.core import parts, schemas

PART_ROWS = 2000
MORE = 3  # times the texts of the smaller corpus


def stage_rate(texts: Sequence[str], rounds: int) -> float:
    """Returns the MB of text a CPU second by which a larger corpus takes longer: Parquet and Beam, but no start."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = (_write(Path(folder, str(n)), [*texts] * n) for n in (1, MORE))
        spent = [cpu_s(partial(static.run, project), rounds + 1) for project in (few, many)]
    return (MORE - 1) * sum(len(t.encode()) for t in texts) / 1e6 / (spent[1] - spent[0])


def _write(root: Path, texts: Sequence[str]) -> Project:
    """Returns a project of `texts`, which computes everything each time."""
    runtime = RuntimeConfig(engine="local", workers=1, threads=1, beam_args=())
    project = Project(root, params.Params(root / "params.yaml", shipped()), runtime, force=True)
    for start in range(0, len(texts), PART_ROWS):
        rows = [_row(k, text) for k, text in enumerate(texts[start : start + PART_ROWS], start)]
        for folder in rows[0]:
            schema = schemas.PARTS[folder]
            columns = [pa.array([row[folder].get(f.name) for row in rows], f.type) for f in schema]
            part = parts.Part(f"part-{start:016x}-0000.parquet", "made", pa.record_batch(columns, schema=schema))
            parts.write_part(project.folder(folder), part, schema)
    return project


def _row(number: int, text: str) -> Mapping[str, Mapping[str, Any]]:
    kept = {"sample_id": f"s{number}", "kept": True, "reasons": []}
    return {
        "samples": {"sample_id": kept["sample_id"], "source": "web", "modality": "text", "meta": "{}"},
        "clean": {**kept, "clean_text": text, "language": "en", "dup_5_gram_char_ratio": 0.01},
        "dedup": kept, "quality": kept,
        "tokens": {"sample_id": kept["sample_id"], "text_tokens": len(text) // 5},
        "gradients": {"sample_id": kept["sample_id"], "order_gain": 1.0, "loss": [5.0, 4.0]},
    }  # fmt: skip
