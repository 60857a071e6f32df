"""`gradsift quality export`: the model as ONNX files that the stage then scores with, and what it refuses."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import torch
from support import builders, command, prose

from pipelines import quality
from pipelines.core.project import Project
from scoring.models import encoders

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(p) is None for p in ("onnx", "onnxruntime")), reason="the extra onnx is not installed"
)
OWN = {
    "dtype": "float32",
    "head": "model",
    "model": "main",
    "good_labels": ["fine"],
    "window_tokens": 60,
    "stride_tokens": 60,
}
INT8 = "onnx/mine/model.int8.onnx"


def project(root: Path, rows: int = 12, **values: Any) -> Project:
    found = builders.empty_project(root, quality={**OWN, **values})
    builders.save_params(found)
    prose.write_corpus(found, prose.paragraphs()[:rows], part_rows=5)
    return found


def export(root: Path, *arguments: str) -> command.Outcome:
    return command.within(root, "quality", "export", "--out", "onnx/mine", *arguments)


def scores(found: Project) -> np.ndarray:
    quality.run(found)
    rows = duckdb.sql(f"SELECT quality FROM '{found.data}/quality/part-*.parquet' ORDER BY sample_id").fetchall()
    return np.array([q for (q,) in rows])


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier whose roundings do not grow to chaos."""
    folder = tmp_path_factory.mktemp("model") / "main"
    model = encoders.load_classifier(prose.classifier(folder, ["junk", "fine"]))
    with torch.no_grad():
        for layer in (m for m in model.modules() if isinstance(m, torch.nn.Linear)):
            layer.weight.mul_(0.3)
    model.save_pretrained(folder)
    return folder


def test_the_stage_scores_with_what_is_written_as_the_card_tells(main: Path, tmp_path: Path) -> None:
    wanted = scores(project(tmp_path, model=str(main)))
    out = export(tmp_path)
    assert out.returncode == 0, out.stderr
    assert f"in params.yaml: quality: {{model: {INT8}}}" in out.stdout
    found = scores(project(tmp_path, model=INT8))
    card = json.loads((tmp_path / "onnx/mine/model.int8.json").read_text())
    assert card["rows"] == 12
    assert card["largest_difference"] == pytest.approx(np.abs(wanted - found).max(), abs=2e-6)
    assert 0 < card["largest_difference"] < 0.1
    assert f"Spearman {card['spearman']:.3f} against torch on 12 rows" in out.stdout
    assert np.abs(scores(project(tmp_path, model="onnx/mine/model.onnx")) - wanted).max() < 1e-5


def test_rows_are_a_sample(main: Path, tmp_path: Path) -> None:
    project(tmp_path, model=str(main))
    assert export(tmp_path, "--rows", "3").returncode == 0
    assert json.loads((tmp_path / "onnx/mine/model.int8.json").read_text())["rows"] == 3


@pytest.mark.parametrize(
    ("arguments", "values", "rows", "code", "words"),
    [
        (["--rows", "0"], {}, 2, 2, "--rows is 0"),
        ([], {}, 0, 1, "no kept rows have text"),
        ([], {"head": "fitted", "min_quality": 0.5}, 2, 2, "cannot read the quality head"),
        (["--model", "nothing/here"], {}, 2, 3, "nothing/here"),
        (["--out", "main"], {"model": "main"}, 2, 2, "the model is inside the --out folder"),
    ],
)
def test_what_is_refused_leaves_no_file(
    main: Path, tmp_path: Path, arguments: list[str], values: dict[str, Any], rows: int, code: int, words: str
) -> None:
    (tmp_path / "main").symlink_to(main)
    project(tmp_path, rows, **{"model": str(main), **values})
    out = export(tmp_path, *arguments)
    assert (out.returncode, words in out.stderr) == (code, True), out.stderr
    assert "remedy:" in out.stderr
    assert not (tmp_path / "onnx").exists()


def test_help_shows_an_example() -> None:
    assert "example: gradsift quality export --out onnx/mine" in export(Path(), "--help").stdout
