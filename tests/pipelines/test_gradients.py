"""Stage `gradients`, from a trained reference to sidecars: exact, the same twice, reused, quarantined."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support import text_projects
from support.text_projects import TINY, files, texts
from support.text_projects import gradient_rows as sidecar

from pipelines import gradients, reference
from pipelines.core.project import Project
from pipelines.passes import reference_marker
from scoring.core.errors import ConfigError, DataError
from scoring.gradients import oracle as gradients_oracle
from scoring.gradients.layers import scored_layers
from scoring.models import load as models
from transforms.core import parts
from transforms.gradients.checkpoints import read_directions, token_rows
from transforms.gradients.notes import NO_TEXT, NOT_FINITE, TOO_SHORT

ROWS: dict[str, str | None] = {**texts(40), "media": None, "empty": "", "letter": "a", "dropped": "Old roads."}
DROPPED = ["dropped"]
C = TINY["checkpoints"]


def run(root: Path, rows: dict[str, str | None] | None = None, **options: Any) -> Project:
    project = text_projects.project(root, ROWS if rows is None else rows, dropped=DROPPED, **options)
    reference.run(project)
    gradients.run(project)
    return project


def outputs(project: Project) -> dict[str, bytes]:
    return {**files(project.folder("gradients")), "metrics": project.metrics("gradients").read_bytes()}


def assert_close(found: dict[str, Any], truth: dict[str, Any]) -> None:
    """Values agree to 1e-5: cosines absolutely, dot products relative to the norm."""
    assert found.keys() == truth.keys()
    for sample_id, row in truth.items():
        for name in ("loss", "grad_norm", "target_cosine", "costate_dot", "costate_cosine"):
            one, other = (np.array(r[name] or [], float) for r in (found[sample_id], row))
            scale = np.array(row["grad_norm"] or [], float) if name == "costate_dot" else 1.0
            np.testing.assert_allclose(one / scale, other / scale, rtol=1e-5, atol=1e-5)
        assert found[sample_id]["gradient_note"] == row["gradient_note"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A finished project; no test changes it."""
    return run(tmp_path_factory.mktemp("gradients"))


def copied(project: Project, root: Path) -> Project:
    """Returns a copy of the finished project at `root`, for a test that goes on from it."""
    shutil.copytree(project.root, root, dirs_exist_ok=True)
    return text_projects.project(root, ROWS, dropped=DROPPED)


def test_every_row_has_values_or_a_note(project: Project) -> None:
    rows = sidecar(project)
    notes = {i: r["gradient_note"] for i, r in rows.items() if r["gradient_note"]}
    assert notes == {"media": NO_TEXT, "empty": NO_TEXT, "letter": TOO_SHORT}
    for sample_id, row in rows.items():
        values = [row[n] for n in ("gradient_tokens", "loss", "grad_norm", "target_cosine", "costate_dot")]
        if sample_id in (*notes, *DROPPED):
            assert values == [None] * 5
        else:
            assert 2 <= row["gradient_tokens"] <= 24
            assert [len(v) for v in values[1:]] == [C] * 4
            assert None not in (*row["loss"], *row["grad_norm"], *row["target_cosine"])
            assert [v is None for v in row["costate_cosine"]] == [False, False, True]
            assert [v is None for v in row["costate_dot"]] == [False, False, True]


def test_values_are_those_of_autograd(project: Project) -> None:
    marker = json.loads((project.folder("gradients") / "directions" / "directions.json").read_bytes())
    names = reference_marker.checkpoints(project, reference_marker.read(project))
    found, ids = sidecar(project), ["t0000", "t0017", "t0039"]
    targets = token_rows(models.load_tokenizer(names[0]), [ROWS[i] for i in marker["ids"]], 24).ids
    rows = token_rows(models.load_tokenizer(names[0]), [ROWS[i] for i in ids], 24).ids
    loaded = [models.load_causal(n).double() for n in names]
    layers = [scored_layers(m, "all") for m in loaded]
    target = [
        mean([gradients_oracle.gradient(m, r, ls) for r in targets]) for m, ls in zip(loaded, layers, strict=True)
    ]
    for sample_id, row in zip(ids, rows, strict=True):
        for t, (model, ls) in enumerate(zip(loaded, layers, strict=True)):
            g = gradients_oracle.gradient(model, row, ls)
            assert found[sample_id]["loss"][t] == pytest.approx(gradients_oracle.loss(model, row).item(), rel=1e-5)
            assert found[sample_id]["grad_norm"][t] == pytest.approx(dot(g, g) ** 0.5, rel=1e-5)
            assert found[sample_id]["target_cosine"][t] == pytest.approx(cosine(g, target[t]), abs=1e-5)
            if t < C - 1:
                costate = {n: sum(target[s][n] for s in range(t + 1, C)) for n in g}
                assert found[sample_id]["costate_cosine"][t] == pytest.approx(cosine(g, costate), abs=1e-5)
                assert found[sample_id]["costate_dot"][t] == pytest.approx(dot(g, costate), abs=1e-5 * dot(g, g) ** 0.5)


def mean(all_gradients: list[dict[str, Any]]) -> dict[str, Any]:
    return {n: sum(g[n] for g in all_gradients) / len(all_gradients) for n in all_gradients[0]}


def dot(one: dict[str, Any], other: dict[str, Any]) -> float:
    return sum(float((one[n] * other[n]).sum()) for n in one)


def cosine(one: dict[str, Any], other: dict[str, Any]) -> float:
    return dot(one, other) / (dot(one, one) * dot(other, other)) ** 0.5


def test_metrics(project: Project) -> None:
    rows = sidecar(project)
    norms = np.array([r["grad_norm"] for r in rows.values() if r["grad_norm"]])
    found = json.loads(project.metrics("gradients").read_bytes())
    assert found["notes"] == {NO_TEXT: 2, TOO_SHORT: 1}
    assert (found["rows"], found["scored"], found["checkpoints"], found["target_rows"]) == (44, 40, C, 10)
    np.testing.assert_allclose(found["mean_grad_norm"], norms.mean(axis=0), rtol=1e-8)


def test_the_same_twice(project: Project, tmp_path: Path) -> None:
    assert outputs(run(tmp_path)) == outputs(project)


def test_rerun_skips_and_force_ends_in_the_same_bytes(project: Project, tmp_path: Path) -> None:
    project = copied(project, tmp_path)
    first = outputs(project)
    times = {p: p.stat().st_mtime_ns for p in project.folder("gradients").rglob("*.parquet")}
    gradients.run(project)
    assert outputs(project) == first
    assert {p: p.stat().st_mtime_ns for p in times} == times
    gradients.run(dataclasses.replace(project, force=True))
    assert outputs(project) == first
    assert all(p.stat().st_mtime_ns > t for p, t in times.items())


def test_values_do_not_depend_on_parts_and_their_order(project: Project, tmp_path: Path) -> None:
    other = run(tmp_path, dict(reversed(ROWS.items())), part_rows=7, gradients={"batch_tokens": 40})
    assert_close(sidecar(other), sidecar(project))


def test_worker_processes_write_the_same_bytes(project: Project, tmp_path: Path) -> None:
    other = text_projects.project(tmp_path, ROWS, dropped=DROPPED)
    other = dataclasses.replace(other, runtime=dataclasses.replace(other.runtime, engine="processes"))
    reference.run(other)
    gradients.run(other)
    assert outputs(other) == outputs(project)


def test_a_part_without_rows(tmp_path: Path) -> None:
    project = text_projects.project(tmp_path, texts(20))
    text_projects.write_part(project, "part-zz-0000.parquet", {})
    reference.run(project)
    gradients.run(project)
    assert parts.Footer(project.folder("gradients") / "part-zz-0000.parquet").rows == 0
    assert json.loads(project.metrics("gradients").read_bytes())["rows"] == 20


@pytest.mark.parametrize("rows", [{}, {"media": None, "few": "Too few texts."}])
def test_without_a_reference_every_kept_row_says_so(tmp_path: Path, rows: dict[str, str | None]) -> None:
    project = run(tmp_path, {**rows, "dropped": "Old roads."})
    found = sidecar(project)
    assert found.pop("dropped")["gradient_note"] is None
    notes = {"media": NO_TEXT, "few": "no reference: 1 rows with text, 8 needed"}
    assert {i: r["gradient_note"] for i, r in found.items()} == {i: notes[i] for i in rows}
    assert all(r["loss"] is None for r in found.values())
    assert json.loads(project.metrics("gradients").read_bytes())["scored"] == 0
    assert not (project.folder("gradients") / "directions").exists()


def test_without_having_run_the_reference(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no reference model"):
        gradients.run(text_projects.project(tmp_path, ROWS))


def test_target_rows_are_of_the_better_half(tmp_path: Path) -> None:
    ids = list(texts(40))
    project = run(tmp_path, dict(texts(40)), quality={i: n / 40 for n, i in enumerate(ids)})
    marker = json.loads((project.folder("gradients") / "directions" / "directions.json").read_bytes())
    assert len(marker["ids"]) == 10
    assert set(marker["ids"]) <= set(ids[20:])


def test_new_rows_leave_old_ones_until_the_target_drifts(tmp_path: Path) -> None:
    rows = dict(texts(40))
    project = run(tmp_path, rows, reference={"refresh_ratio": 1.0}, gradients={"target_rows": 40})
    first = {p: p.stat().st_mtime_ns for p in project.folder("gradients").glob("part-*")}
    text_projects.write_part(project, "part-bb-0000.parquet", {"new0": "A new text of the sea.", "new1": "Old roads."})
    reference.run(project)
    gradients.run(project)
    assert {p: p.stat().st_mtime_ns for p in first} == first
    assert sidecar(project)["new0"]["loss"]
    text_projects.write_part(project, "part-cc-0000.parquet", {f"n{n}": text_projects.text(n) for n in range(60, 90)})
    reference.run(project)
    gradients.run(project)
    assert all(p.stat().st_mtime_ns > t for p, t in first.items())


def test_another_reference_makes_new_directions(project: Project, tmp_path: Path) -> None:
    project = copied(project, tmp_path)
    first = outputs(project)
    run(tmp_path, reference={"seed": 9})
    assert all(outputs(project)[name] != first[name] for name in first)


def test_a_damaged_file_of_directions_is_written_again(project: Project, tmp_path: Path) -> None:
    project = copied(project, tmp_path)
    first = outputs(project)
    damaged = project.folder("gradients") / "directions" / "checkpoint-02.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-4])
    gradients.run(project)
    assert outputs(project) == first


def broken_reference(root: Path, tokens: slice) -> Project:
    """A project whose reference has infinite weights for `tokens` of its vocabulary, at the last checkpoint."""
    source = text_projects.project(root, ROWS, dropped=DROPPED)
    reference.run(source)
    folder = root / "broken"
    source.folder("reference").rename(folder)
    path = folder / "checkpoint-00006" / "model.safetensors"
    weights = load_file(path)
    weights["model.embed_tokens.weight"][tokens] = torch.finfo(torch.float32).max
    weights["model.embed_tokens.weight"][tokens, ::2] *= -1
    save_file(weights, path, {"format": "pt"})
    project = text_projects.project(root, ROWS, dropped=DROPPED, reference={"model": "broken"})
    reference.run(project)
    gradients.run(project)
    return project


def test_rows_whose_gradient_overflows_are_quarantined(tmp_path: Path) -> None:
    names = [f"checkpoint-{n:05d}" for n in (2, 4, 6)]
    token = ord("S") - ord("!") + 2  # of the letter that some texts begin with
    project = broken_reference(tmp_path, slice(token, token + 1))
    tokenizer = models.load_tokenizer(str(tmp_path / "broken" / names[0]))
    found = sidecar(project)
    hit = {i for i, t in ROWS.items() if t and token in token_rows(tokenizer, [t], 24).ids[0]} - set(DROPPED)
    assert {i for i, r in found.items() if r["gradient_note"] == NOT_FINITE} == hit
    assert 0 < len(hit) < 40
    for sample_id in hit:
        assert found[sample_id]["loss"] is found[sample_id]["gradient_tokens"] is None
    values = [v for r in found.values() for v in (*(r["target_cosine"] or []), *(r["grad_norm"] or []))]
    assert np.isfinite(values).all()


def test_a_reference_that_overflows_everywhere(tmp_path: Path) -> None:
    found = sidecar(broken_reference(tmp_path, slice(None)))
    assert {r["gradient_note"] for i, r in found.items() if i.startswith("t")} == {NOT_FINITE}


def test_one_checkpoint_has_no_costate(tmp_path: Path) -> None:
    source = text_projects.project(tmp_path, ROWS)
    reference.run(source)
    source.folder("reference").rename(tmp_path / "named")
    project = run(tmp_path, reference={"model": "named/checkpoint-00006"})
    row = sidecar(project)["t0000"]
    assert len(row["grad_norm"]) == 1
    assert (row["costate_dot"], row["costate_cosine"]) == ([None], [None])
    assert row["target_cosine"][0] is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_tokens": 25}, "gradients.max_tokens is 25, but the reference model accepts at most 24"),
        ({"layers": "last:3"}, "2 transf"),
    ],
)
def test_params_that_do_not_fit_the_reference(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(tmp_path, gradients=change)


def test_last_block_alone(project: Project, tmp_path: Path) -> None:
    found = sidecar(run(tmp_path, gradients={"layers": "last:1"}))
    whole = sidecar(project)
    assert found["t0003"]["loss"] == whole["t0003"]["loss"]
    assert all(a < b for a, b in zip(found["t0003"]["grad_norm"], whole["t0003"]["grad_norm"], strict=True))
    directions = read_directions(tmp_path / "data" / "gradients" / "directions" / "checkpoint-01.safetensors")
    assert {n.split(".")[2] for n in directions} == {"1"}
