"""Why a row has its score: its lowest windows and the values that pulled, as the real stage scored real prose."""

import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from support import builders, prose

from pipelines import quality
from pipelines.catalog.explain import explain
from pipelines.catalog.explain_quality import EXCERPT_CHARS, STALE, excerpts, lowest, strongest, token_places
from pipelines.core.project import Project
from scoring.core.errors import DataError
from scoring.models import encoding
from scoring.models import load as models
from transforms.clean import transform as clean
from transforms.clean.config import CleanConfig
from transforms.clean.transform import clean_batch, samples_of
from transforms.quality.config import QualityConfig

PART = "part-aa-0000.parquet"
LEARNED = 52
LONG, SHORT, BLANK = (f"s{LEARNED + k:04d}" for k in range(3))
JUNK = "Log in | Sign up | Menu » Next » Click here! BUY NOW!!! Add to cart | 0 comments " * 5
PARAMS = {
    "train_rows": 24, "folds": 3, "window_tokens": 64, "stride_tokens": 64, "max_windows": 0, "min_heldout_f1": 0.0,
}  # fmt: skip


def project(root: Path, **values: Any) -> Project:
    return builders.empty_project(root, quality={**PARAMS, **values})


def texts() -> list[str | None]:
    """Prose to learn from, a row whose second half is page furniture, one of a single window, and one without text."""
    found = prose.paragraphs()
    return [*found[:LEARNED], " ".join([*found[60:62], JUNK]), "Rain falls on the hills of the north.", None]


def write(found: Project, rows: list[str | None]) -> None:
    """Writes a corpus whose values of `clean` are real, every row of it kept."""
    prose.write_corpus(found, rows, part_rows=len(rows))
    config = found.section("clean", CleanConfig)
    told = clean_batch(samples_of([t or "" for t in rows], "prose"), config, clean.load()).to_pylist()
    cleaned = [{**row, **builders.KEPT, "sample_id": f"s{k:04d}"} for k, row in enumerate(told)]
    builders.write_rows(found, "clean", PART, cleaned)
    builders.write_rows(found, "rejects", PART, [])


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus scored once by a head fitted on it; tests copy it."""
    root = tmp_path_factory.mktemp("scored")
    found = project(root)
    write(found, texts())
    quality.run(found)
    return root


def again(scored: Path, root: Path, **values: Any) -> Project:
    shutil.copytree(scored, root, dirs_exist_ok=True)
    return project(root, **values)


def lines(found: Project, wanted: str) -> list[str]:
    """Returns the lines of a life, runs of spaces as one."""
    return [" ".join(line.split()) for line in explain(found, wanted).splitlines()]


def starting(found: list[str], words: str) -> list[str]:
    return [line for line in found if line.startswith(words)]


def row(root: Path, sample_id: str, columns: str) -> Any:
    path = root / "data/quality" / PART
    return duckdb.sql(f"SELECT {columns} FROM '{path}' WHERE sample_id = '{sample_id}'").fetchall()[0]


def test_the_junk_half_is_named_before_the_prose(scored: Path) -> None:
    shown = starting(lines(project(scored), LONG), "window ")
    assert 1 <= len(shown) <= 3
    assert all("Log in" in line or "BUY NOW" in line for line in shown)
    (scores,) = row(scored, LONG, "window_scores")
    worst = scores.index(min(scores))
    assert shown[0].startswith(f"window {worst + 1} of {len(scores)} {min(scores):.4g} ")


def test_one_window_is_shown_whole(scored: Path) -> None:
    (score,) = row(scored, SHORT, "quality_min")
    assert starting(lines(project(scored), SHORT), "window ") == [
        f"window 1 of 1 {score:.4g} Rain falls on the hills of the north."
    ]


def test_values_come_with_what_they_add(scored: Path) -> None:
    found = lines(project(scored), LONG)
    down, up = starting(found, "↓ "), starting(found, "↑ ")
    assert (len(down), len(up)) == (5, 3)
    added = [float(line.split()[-1].replace("−", "-")) for line in down + up]
    assert added[:5] == sorted(added[:5])
    assert added[5:] == sorted(added[5:], reverse=True)
    assert max(added[:5]) < 0 < min(added[5:])
    (alone,) = row(scored, LONG, "model_quality")
    assert starting(down, f"↓ model {alone:.4g} −")


def test_a_row_without_text_has_no_reasons(scored: Path) -> None:
    found = lines(project(scored), BLANK)
    assert not starting(found, "window")
    assert not starting(found, "values")


def test_a_project_without_a_head_has_no_reasons(tmp_path: Path) -> None:
    found = project(tmp_path)
    write(found, ["Rain falls on the hills."] * 3)
    quality.run(found)
    told = lines(found, "s0000")
    assert "quality: kept" in told
    assert not starting(told, "window") + starting(told, "values")


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize("harm", [damage, Path.unlink])
def test_a_head_that_cannot_be_read_is_one_line(scored: Path, tmp_path: Path, harm: Any) -> None:
    found = again(scored, tmp_path)
    harm(tmp_path / "data/quality/head/head.safetensors")
    told = lines(found, LONG)
    assert [line[:48] for line in starting(told, "values")] == ["values not shown: cannot read the quality head: "]
    assert starting(told, "window ")
    assert not starting(told, "↓")


def test_a_head_in_a_folder_of_its_own(scored: Path, tmp_path: Path) -> None:
    found = again(scored, tmp_path, head="mine")
    shutil.move(tmp_path / "data/quality/head", tmp_path / "mine")
    assert lines(found, LONG) == lines(project(scored), LONG)


def test_what_has_changed_since_is_not_shown(scored: Path, tmp_path: Path) -> None:
    found = again(scored, tmp_path, window_tokens=40, stride_tokens=40)
    told = lines(found, LONG)
    assert f"text of windows not shown: {STALE}" in told
    assert len(starting(told, "window ")[0].split()) == 5
    rows = texts()
    rows[LEARNED] = "Other words stand here now, and they are not what was scored. " * 12
    write(found, rows)
    assert f"values not shown: {STALE}" in lines(found, LONG)


def test_a_models_own_score_has_windows_alone(scored: Path, tmp_path: Path) -> None:
    own = {"window_tokens": 60, "stride_tokens": 60, "good_labels": ["fine"]}
    found = project(tmp_path, head="model", model="tiny", **own)
    prose.classifier(tmp_path / "tiny", ["junk", "fine"])
    write(found, texts()[LEARNED:])
    quality.run(found)
    (tmp_path / "tiny/model.safetensors").unlink()  # the tokenizer is enough
    told = lines(found, "s0001")
    assert "Rain falls on the hills" in starting(told, "window 1 of 1")[0]
    assert not starting(told, "values") + starting(told, "↓")
    shutil.rmtree(tmp_path / "tiny")
    told = lines(found, "s0001")
    [why] = starting(told, "text of windows")
    assert "model 'tiny' is neither a folder nor in the local Hugging Face cache" in why
    assert len(starting(told, "window 1 of 1")[0].split()) == 5


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([0.5], [0]), ([0.1] * 3, []), ([0.9, 0.1, 0.2, 0.1, 0.15], [1, 3, 4]), ([0.2, 0.9], [0])],
)
def test_which_windows_are_shown(scores: list[float], expected: list[int]) -> None:
    assert lowest(scores) == expected


def test_which_values_are_shown() -> None:
    added = np.array([-0.001, 0.2, -0.4, -0.1, 0.001, 0.3, -0.2, -0.3, -0.5, -0.6, 0.1, 0.4])
    assert strongest(added) == [9, 8, 2, 7, 6, 11, 5, 1]
    assert strongest(np.zeros(4)) == []


def test_an_excerpt_is_one_line_that_cannot_steer_the_terminal() -> None:
    tokenizer, text = models.load_tokenizer(prose.MINILM), "Rain\n falls\x1b[31m on the hills. " * 40
    config = project(Path()).section("quality", QualityConfig)
    count = len(token_places(tokenizer, text))
    scored = {"window_scores": [0.5] * -(-count // config.window_tokens), "coverage": 1.0}
    found = excerpts(tokenizer, config, scored, text, [1])
    assert list(found) == [1]
    assert "␛[31m on the hills. Rain  falls" in found[1]
    assert len(found[1]) == EXCERPT_CHARS
    with pytest.raises(DataError, match="changed after this row was scored"):
        excerpts(tokenizer, config, scored, text[:100], [1])


def test_tokens_lie_where_their_text_is_in_long_texts_too() -> None:
    tokenizer = models.load_tokenizer(prose.MINILM)
    text = "Vögel fliegen über 東京 " * 6_000
    assert len(text) > encoding.PIECE_CHARS
    places = token_places(tokenizer, text)
    [ids] = encoding.token_ids(tokenizer, [text])
    assert len(places) == len(ids)
    last = [text[start:end] for start, end in places[-2:]]
    assert last == ["東", "京"]
    assert token_places(tokenizer, "").shape == (0, 2)
