"""Stage `reference`: trained twice the same, killed and run again, kept while rows drift, named, skipped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import text_projects
from support.places import ROOT
from support.text_projects import TINY, files, texts

from pipelines import reference
from pipelines.core.project import Project
from pipelines.passes import reference_marker
from scoring.core.errors import DataError, ToolError
from scoring.models import files as model_files
from scoring.models import load as models

ROWS = texts(48)


def outputs(project: Project) -> dict[str, bytes]:
    return {**files(project.folder("reference")), "metrics": project.metrics("reference").read_bytes()}


def metrics(project: Project) -> dict[str, Any]:
    return json.loads(project.metrics("reference").read_bytes())


def times(project: Project) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in project.folder("reference").glob("checkpoint-*/*.safetensors")}


def test_trains_checkpoints_that_learn(tmp_path: Path) -> None:
    project = text_projects.project(tmp_path, ROWS, reference={"steps": 30})
    reference.run(project)
    found = metrics(project)
    assert [c["name"] for c in found["checkpoints"]] == ["checkpoint-00010", "checkpoint-00020", "checkpoint-00030"]
    assert [step for step, _ in found["heldout_loss"]] == [0, 10, 20, 30]
    assert [step for step, _ in found["loss"]] == list(range(1, 31))
    assert found["heldout_loss"][-1][1] < found["heldout_loss"][0][1] - 0.3
    assert (found["rows"], found["rows_heldout"], found["vocabulary"]) == (40, 3, 300)
    names = reference_marker.checkpoints(project, reference_marker.read(project))
    assert [model_files.digest(n) for n in names] == [c["digest"] for c in found["checkpoints"]]
    assert models.load_causal(names[0]).num_parameters() == found["parameters"]
    assert str(tmp_path).encode() not in b"".join(outputs(project).values())


def test_the_same_rows_in_other_parts_and_order_leave_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for n, (rows, part_rows) in enumerate([(ROWS, 16), (dict(reversed(ROWS.items())), 5)]):
        project = text_projects.project(tmp_path / str(n), rows, part_rows=part_rows)
        reference.run(project)
        marker = json.loads((project.folder("reference") / "reference.json").read_bytes())
        found.append({**outputs(project), "reference.json": {k: v for k, v in marker.items() if k != "inputs"}})
    assert found[0] == found[1]


def test_rerun_keeps_everything_and_force_trains_the_same_again(tmp_path: Path) -> None:
    project = text_projects.project(tmp_path, ROWS)
    reference.run(project)
    first, trained = outputs(project), times(project)
    project.metrics("reference").unlink()
    reference.run(project)
    assert (outputs(project), times(project)) == (first, trained)
    reference.run(Project(project.root, project.params, project.runtime, force=True))
    assert outputs(project) == first
    assert times(project) != trained


def test_dropped_rows_and_rows_without_text_teach_nothing(tmp_path: Path) -> None:
    rows = {**texts(20), "media": None, "empty": "", "dropped": "xylophone " * 50}
    project = text_projects.project(tmp_path, rows, dropped=["dropped"])
    reference.run(project)
    assert set(reference_marker.read(project)["ids"]) == set(texts(20))


@pytest.mark.parametrize("change", [{"seed": 8}, {"steps": 7}, {"learning_rate": 0.02}])
def test_another_config_trains_anew(tmp_path: Path, change: dict[str, Any]) -> None:
    project = text_projects.project(tmp_path, ROWS)
    reference.run(project)
    first = outputs(project)
    reference.run(text_projects.project(tmp_path, ROWS, reference=change))
    assert outputs(project)["metrics"] != first["metrics"]


def test_is_kept_until_its_rows_have_drifted(tmp_path: Path) -> None:
    rows = texts(40)
    project = text_projects.project(tmp_path, rows, reference={"refresh_ratio": 0.2})
    reference.run(project)
    trained, ids = times(project), reference_marker.read(project)["ids"]
    text_projects.write_part(project, "part-bb-0000.parquet", {"new0": "A new text of the sea.", "new1": "Old roads."})
    reference.run(project)
    assert times(project) == trained
    assert reference_marker.read(project)["ids"] == ids  # what it was trained on: drift adds up
    text_projects.write_part(project, "part-cc-0000.parquet", {f"new{n}": text_projects.text(n) for n in range(50, 90)})
    reference.run(project)
    assert times(project) != trained
    assert reference_marker.read(project)["ids"] != ids


def test_a_damaged_checkpoint_is_trained_again(tmp_path: Path) -> None:
    project = text_projects.project(tmp_path, ROWS)
    reference.run(project)
    first = outputs(project)
    damaged = project.folder("reference") / "checkpoint-00002" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-4])
    reference.run(project)
    assert outputs(project) == first


@pytest.mark.parametrize("count", [0, 1, 7])
def test_too_few_texts_leave_no_reference(tmp_path: Path, count: int) -> None:
    project = text_projects.project(tmp_path, {**texts(count), "media": None})
    reference.run(project)
    marker = reference_marker.read(project)
    assert marker["checkpoints"] == []
    assert marker["skipped"] == metrics(project)["skipped"] == f"{count} rows with text, 8 needed"
    text_projects.write_part(project, "part-bb-0000.parquet", {f"n{n}": text_projects.text(n) for n in range(9)})
    reference.run(project)
    assert len(reference_marker.read(project)["checkpoints"]) == 3


def test_without_any_part(tmp_path: Path) -> None:
    project = text_projects.project(tmp_path, {})
    for path in project.data.rglob("part-*"):
        path.unlink()
    reference.run(project)
    assert reference_marker.read(project)["skipped"].startswith("0 rows")


def test_named_models(tmp_path: Path) -> None:
    source = text_projects.project(tmp_path / "source", ROWS)
    reference.run(source)
    (tmp_path / "named").mkdir()
    folder = tmp_path / "named" / "all"
    source.folder("reference").rename(folder)

    several = text_projects.project(tmp_path / "named", ROWS, reference={"model": "all/"})
    reference.run(several)
    marker = reference_marker.read(several)
    assert reference_marker.checkpoints(several, marker) == [f"all/checkpoint-{n:05d}" for n in (2, 4, 6)]
    assert model_files.digest("all/checkpoint-00002", several.root) == marker["checkpoints"][0]["digest"]

    one = text_projects.project(tmp_path / "named", ROWS, reference={"model": str(folder / "checkpoint-00006")})
    reference.run(one)
    assert [c["name"] for c in metrics(one)["checkpoints"]] == [str(folder / "checkpoint-00006")]

    with pytest.raises(ToolError, match="neither a folder nor in the local Hugging Face cache"):
        reference.run(text_projects.project(tmp_path / "named", ROWS, reference={"model": "no/such"}))


def test_reading_what_was_never_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gradsift run reference"):
        reference_marker.read(text_projects.project(tmp_path, ROWS))


_RUN = """
import sys
from pathlib import Path
from support import text_projects
from pipelines import reference
reference.run(text_projects.project(Path(sys.argv[1]), text_projects.texts(48), reference={"steps": 150}))
"""


def _start(root: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _RUN, str(root)], cwd=ROOT, stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def test_killed_and_run_again_ends_in_the_bytes_of_an_undisturbed_run(tmp_path: Path) -> None:
    process = _start(tmp_path / "killed")
    folder = tmp_path / "killed" / "data" / "reference"
    deadline = time.monotonic() + 120
    while not list(folder.glob("checkpoint-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert list(folder.glob("checkpoint-*"))
    assert not (folder / "reference.json").exists()
    (folder / ".tmp-left").mkdir()
    for name in ("killed", "whole"):
        project = text_projects.project(tmp_path / name, ROWS, reference={"steps": 150})
        reference.run(project)
    assert outputs(project) == outputs(text_projects.project(tmp_path / "killed", ROWS, reference={"steps": 150}))


def test_main_reads_the_params_file(tmp_path: Path) -> None:
    project = text_projects.project(tmp_path, ROWS)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(dict(project.params.tree)))
    assert reference.main(["--params", str(tmp_path / "params.yaml")]) == 0
    assert len(metrics(project)["checkpoints"]) == TINY["checkpoints"]
