"""Rescoring from sketches: against plain vectors, a direction chosen by SQL, pairs, and what is refused."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import scored_corpus
from support.command import gradsift

from pipelines.catalog import rescore
from pipelines.core.project import Project
from scoring.core.errors import ConfigError, DataError
from scoring.gradients import sketches
from transforms.core import parts, schemas

WIDTH = 96
ROWS = [scored_corpus.with_static(scored_corpus.row(n), n) for n in range(48)]


def vectors() -> np.ndarray:
    """Two bundles of gradients, and row 1 the twin of row 0."""
    rng = np.random.default_rng(3)
    found = rng.normal(size=(48, WIDTH)) + np.where(np.arange(48)[:, None] % 2, 1.5, -1.5) * np.ones(WIDTH)
    found[1] = 3 * found[0]
    return np.asarray(found, np.float32)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A scored corpus with a sketch of every row but the last ten."""
    found = scored_corpus.write(tmp_path_factory.mktemp("rescore"), ROWS, 10)
    codes, scale = sketches.quantize(vectors())
    for name in parts.names(found.folder("samples")):
        ids = pq.read_table(found.folder("samples") / name)["sample_id"].to_pylist()
        numbers = [int(i[1:]) for i in ids]
        batch = pa.record_batch(
            {
                "sample_id": pa.array(ids, pa.string()),
                "sketch": [[codes[n].tobytes()] if n < 38 else None for n in numbers],
                "sketch_scale": [[float(scale[n])] if n < 38 else None for n in numbers],
            },
            schema=schemas.SKETCHES,
        )
        parts.write_part(found.folder("gradients/sketches"), parts.Part(name, "x", batch), schemas.SKETCHES)
    return found


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_cosines_are_those_of_the_vectors(project: Project) -> None:
    found = rescore.rescore(project, "sample_id IN ('s000', 's002')").to_pylist()
    v = vectors()
    direction = (v[0] + v[2]) / 2
    assert len(found) == 38
    assert [r["cosine"] for r in found] == sorted((r["cosine"] for r in found), reverse=True)
    for row in found:
        assert row["cosine"] == pytest.approx(cosine(v[int(row["sample_id"][1:])], direction), abs=0.02)


def test_away_is_taken_off(project: Project) -> None:
    found = rescore.rescore(project, "sample_id = 's001'", "sample_id = 's003'").to_pylist()
    v = vectors()
    truth = {f"s{n:03d}": cosine(v[n], v[1] - v[3]) for n in range(38)}
    assert {r["sample_id"]: r["cosine"] for r in found} == pytest.approx(truth, abs=0.02)


def test_twins_are_found_and_nothing_else(project: Project) -> None:
    assert rescore.duplicates(project, "true", 0.95).to_pylist() == [
        {"sample_id": "s000", "other_id": "s001", "cosine": pytest.approx(1.0, abs=0.01)}
    ]
    assert rescore.duplicates(project, "sample_id <> 's000'", 0.95).num_rows == 0
    assert rescore.duplicates(project, "false", 0.5).num_rows == 0


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("sample_id = 'nobody'", r"(?s)none of the 0 matching rows.*remedy"),
        ("sample_id = 's040'", "none of the 1 matching rows"),
        ("no_column > 1", "no_column"), ("true); DROP TABLE fates; --", "statement"),
    ],
)  # fmt: skip
def test_what_chooses_nothing_or_is_no_condition(project: Project, where: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        rescore.rescore(project, where)


def test_without_sketches(tmp_path: Path) -> None:
    bare = scored_corpus.write(tmp_path, ROWS[:3], 10)
    with pytest.raises(DataError, match=r"(?s)no gradient sketches.*gradients.sketch.keep"):
        rescore.rescore(bare, "true")


def test_too_many_pairs_are_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rescore, "MAX_CHOSEN", 5)
    with pytest.raises(ConfigError, match=r"(?s)48 rows match; at most 5"):
        rescore.duplicates(project, "true", 0.9)


def test_the_command_writes_parquet_and_prints(project: Project, tmp_path: Path) -> None:
    import yaml

    (project.root / "params.yaml").write_text(yaml.safe_dump(dict(project.params.tree), sort_keys=False))
    out = tmp_path / "wanted.parquet"
    found = gradsift(project.root, "rescore", "sample_id = 's000'", "--parquet", str(out))
    assert found.returncode == 0, found.stderr
    assert pq.read_table(out).num_rows == 38
    shown = gradsift(project.root, "rescore", "true", "--duplicates", "0.95")
    assert "s000" in shown.stdout
    assert "s001" in shown.stdout
