"""Several models at once: their columns, their life on disk, the catalog, `explain`, `doctor`, and their faults."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from support import builders, prose

from pipelines import quality
from pipelines.catalog import current
from pipelines.catalog.explain import explain
from pipelines.commands import doctor
from pipelines.core.project import Project
from pipelines.reporting import head_figures
from pipelines.reporting.figure import FigureData
from scoring.core.errors import ConfigError, ToolError
from transforms.core import parts

MAIN = {"head": "model", "model": "main", "good_labels": ["fine"], "window_tokens": 60, "stride_tokens": 60}
KIND = {"name": "kind", "model": "three", "good_labels": ["b", "c"]}
EDU = {"name": "edu", "model": "one", "window_tokens": 30, "max_windows": 2}
TOXIC = {"name": "toxic", "model": "many", "good_labels": ["insult", "threat"], "aggregate": "max"}
ALSO = [KIND, EDU, TOXIC]
GONE, TWICE, BLANK = "s0001", "s0002", "s0003"  # dropped by clean, by dedup, without text
COLUMNS = ["sample_id", *(f"{n}{end}" for n in ("kind", "edu", "toxic") for end in ("", "_label", "_coverage"))]


def project(root: Path, also: Any = ALSO, **values: Any) -> Project:
    return builders.empty_project(root, quality={**MAIN, "also": also, **values}, tokens={"tokenizer": "main"})


def write(found: Project, *, part_rows: int) -> None:
    """Writes ten rows of prose, three of them not scored."""
    texts: list[str | None] = list(prose.paragraphs()[:10])
    texts[3] = None
    prose.write_corpus(found, texts, part_rows=part_rows)
    for folder, sample_id, verdict in (("clean", GONE, False), ("dedup", GONE, None), ("dedup", TWICE, False)):
        for name in parts.names(found.folder(folder)):
            schema = builders.schemas.PARTS[folder]
            rows = parts.read_part(found.folder(folder) / name, schema.names).to_pylist()
            builders.write_rows(
                found, folder, name, [{**r, "kept": verdict} if r["sample_id"] == sample_id else r for r in rows]
            )


def models(root: Path) -> None:
    """Saves a main model, one of three labels, a regression, and one whose labels do not exclude each other."""
    labels = {"main": ["junk", "fine"], "three": ["a", "b", "c"], "one": ["x"], "many": ["insult", "threat", "none"]}
    for name, own in labels.items():
        prose.classifier(root / name, own)
    path = root / "many/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "problem_type": "multi_label_classification"}))


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus in parts of four rows, scored once; tests copy it."""
    root = tmp_path_factory.mktemp("scored")
    models(root)
    write(project(root), part_rows=4)
    quality.run(project(root))
    return root


@pytest.fixture
def again(scored: Path, tmp_path: Path) -> Path:
    shutil.copytree(scored, tmp_path, dirs_exist_ok=True)
    return tmp_path


def rows(root: Path, folder: str = "quality/also") -> list[dict[str, Any]]:
    found = duckdb.sql(f"SELECT * FROM '{root}/data/{folder}/part-*.parquet' ORDER BY sample_id")
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def stamps(root: Path, folder: str = "quality") -> dict[str, int]:
    return {str(p.relative_to(root)): p.stat().st_mtime_ns for p in (root / "data" / folder).glob("**/part-*.parquet")}


def ask(found: Project, sql: str) -> list[tuple[Any, ...]]:
    with current.reading(found) as connection:
        return list(connection.execute(sql).fetchall())


def test_each_model_has_columns_of_its_own(scored: Path) -> None:
    found = rows(scored)
    assert [list(r) for r in found] == [COLUMNS] * 10
    unscored = [r for r in found if r["kind"] is None]
    assert [r["sample_id"] for r in unscored] == [GONE, TWICE, BLANK]
    assert {v for r in unscored for k, v in r.items() if k != "sample_id"} == {None}
    there = [r for r in found if r["kind"] is not None]
    assert {r["kind_label"] for r in there} <= {"a", "b", "c"}
    assert {r["toxic_label"] for r in there} <= {"insult", "threat", "none"}
    assert {r["edu_label"] for r in there} == {None}
    assert all(0 <= r["kind"] <= 1 and 0 <= r["toxic"] <= 1 for r in there)
    assert any(not 0 <= r["edu"] <= 1 for r in there)
    assert {r["kind_coverage"] for r in there} == {1.0}
    assert any(r["edu_coverage"] < 1 for r in there)


def test_a_model_says_what_it_would_say_as_the_main_one(scored: Path, again: Path) -> None:
    own = {"model": "many", "good_labels": ["insult", "threat"], "aggregate": "max"}
    quality.run(project(again, [], **own))
    main, also = rows(again, "quality"), rows(scored)
    assert [r["quality"] for r in main] == [r["toxic"] for r in also]
    assert [r["quality_label"] for r in main] == [r["toxic_label"] for r in also]
    assert [r["kept"] for r in rows(scored, "quality")][1:3] == [None, None]


def test_metrics_and_report_tell_what_each_model_says(scored: Path) -> None:
    told = json.loads((scored / "metrics/quality.json").read_text())["also"]
    found = [r for r in rows(scored) if r["kind"] is not None]
    assert list(told) == ["edu", "kind", "toxic"]
    for name, entry in told.items():
        assert entry["rows"] == len(found) == 7
        wanted = np.quantile([r[name] for r in found], [0, 0.25, 0.5, 0.75, 1])
        assert entry["quartiles"] == pytest.approx(wanted, abs=1e-6)
        assert entry["coverage"] == pytest.approx(np.mean([r[f"{name}_coverage"] for r in found]), abs=1e-6)
        assert entry["by_label"] == dict(sorted(Counter(r[f"{name}_label"] for r in found if name != "edu").items()))
    figure = head_figures.further(FigureData(project(scored), None, frozenset(), None))  # type: ignore[arg-type]
    assert figure is not None
    assert [row[:3] for row in figure.rows] == [("edu", "one", "7"), ("kind", "three", "7"), ("toxic", "many", "7")]


def test_a_corpus_without_text_has_figures_all_the_same(again: Path) -> None:
    shutil.rmtree(again / "data")
    prose.write_corpus(project(again), [None], part_rows=4)
    quality.run(project(again))
    told = json.loads((again / "metrics/quality.json").read_text())["also"]["kind"]
    assert told == {"model": "three", "good_labels": ["b", "c"], "rows": 0, "quartiles": [], "coverage": None,
                    "by_label": {}}  # fmt: skip
    assert head_figures.further(FigureData(project(again), None, frozenset(), None)) is not None  # type: ignore[arg-type]


def test_a_second_run_writes_nothing(again: Path) -> None:
    before = stamps(again)
    quality.run(project(again))
    assert stamps(again) == before


def test_a_change_of_one_entry_scores_the_further_models_anew(again: Path) -> None:
    main, also = stamps(again, "quality"), stamps(again, "quality/also")
    quality.run(project(again, [{**KIND, "good_labels": ["a"]}, EDU, TOXIC]))
    now = stamps(again, "quality/also")
    assert not set(also.items()) & set(now.items())
    assert {k: v for k, v in stamps(again).items() if k not in now} == {k: v for k, v in main.items() if k not in now}
    for old, new in zip(rows(again), rows(again), strict=True):
        assert old["edu"] == new["edu"]
    quality.run(project(again, [{**KIND, "good_labels": ["a"]}, EDU, TOXIC], min_quality=0.1))
    assert stamps(again, "quality/also") == now


def test_an_interrupted_run_goes_on_where_it_was(scored: Path, again: Path) -> None:
    lost = again / "data/quality/also/part-aa-0001.parquet"
    lost.unlink()
    (lost.parent / "part-zz-0000.parquet").write_bytes(b"of no samples")
    before = stamps(again)
    quality.run(project(again))
    after = stamps(again)
    assert lost.read_bytes() == (scored / lost.relative_to(again)).read_bytes()
    assert {k for k in after if after[k] != before.get(k)} == {str(lost.relative_to(again))}
    assert "data/quality/also/part-zz-0000.parquet" not in after


def test_part_size_changes_no_score(scored: Path, again: Path) -> None:
    shutil.rmtree(again / "data")
    write(project(again), part_rows=7)
    quality.run(project(again))
    for ours, theirs in zip(rows(again), rows(scored), strict=True):
        numbers = [n for n in COLUMNS if isinstance(theirs[n], float)]
        assert [ours[n] for n in numbers] == pytest.approx([theirs[n] for n in numbers], abs=1e-5)
        assert {**ours, **{n: theirs[n] for n in numbers}} == theirs


def test_without_entries_the_folder_goes(again: Path) -> None:
    found = project(again, [])
    assert ask(project(again), "SELECT count(kind) FROM samples_all") == [(7,)]
    quality.run(found)
    assert not (again / "data/quality/also").exists()
    assert ("quality_also",) not in ask(found, "SHOW TABLES")
    assert "edu" not in {name for (name, *_) in ask(found, "DESCRIBE samples_all")}


def test_the_catalog_has_the_scores(again: Path) -> None:
    found = project(again)
    wanted = [(r["sample_id"], r["edu"], r["toxic_label"]) for r in rows(again)]
    assert ask(found, "SELECT sample_id, edu, toxic_label FROM samples_all ORDER BY 1") == wanted
    assert ask(found, "SELECT sample_id, edu, toxic_label FROM quality_also ORDER BY 1") == wanted
    (again / "data/quality/also/part-aa-0001.parquet").unlink()
    assert ("quality_also",) not in ask(found, "SHOW TABLES")
    assert ask(found, "SELECT count(quality) FROM samples_all") == [(7,)]


def test_parts_of_two_params_are_no_view(again: Path) -> None:
    one, two = (again / f"data/quality/also/part-aa-000{k}.parquet" for k in range(2))
    old = one.read_bytes()
    quality.run(project(again, [EDU]))
    one.write_bytes(old)
    assert two.exists()
    assert ("quality_also",) not in ask(project(again, [EDU]), "SHOW TABLES")


def test_explain_has_a_line_a_model(scored: Path) -> None:
    found = {name: told for name, *told in map(str.split, explain(project(scored), "s0000").splitlines()) if told}
    row = rows(scored)[0]
    assert found["kind"][:3] == [f"{row['kind']:.4g},", "label", f"{row['kind_label']},"]
    assert found["edu"][0] == f"{row['edu']:.4g},"
    assert found["edu"][-4:] == ["of", "the", "tokens", "scored"]
    assert not {"kind", "edu", "toxic"} & {line.split()[0] for line in explain(project(scored), GONE).splitlines()}


def test_doctor_looks_for_the_models(again: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.main(builders.save_params(project(again)))
    assert f"three at {again / 'three'}" in capsys.readouterr().out
    shutil.rmtree(again / "three")
    with pytest.raises(ToolError, match="models: model 'three' is neither a folder"):
        doctor.main(builders.save_params(project(again)))


@pytest.mark.parametrize(
    ("entry", "kind", "message"),
    [
        ({**KIND, "model": "nowhere"}, ToolError, "quality.also.kind: model 'nowhere' is neither a folder"),
        ({**KIND, "good_labels": ["z"]}, ConfigError, r"none of quality.also.kind.good_labels \['z'\]; it has \['a'"),
        (
            {**KIND, "window_tokens": 63},
            ConfigError,
            "quality.also.kind.window_tokens is 63, but the model accepts at most 62",
        ),
    ],
)
def test_faults_name_the_entry(again: Path, entry: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        quality.run(project(again, [EDU, entry]))
    assert caught.type is kind


@pytest.mark.parametrize(
    ("also", "message"),
    [
        ([{**EDU, "name": "Edu"}], r"quality.also\[0\]: name must be lower-case letters"),
        ([{**EDU, "name": "windows"}], "also.windows: column windows already exists"),
        ([{**EDU, "name": "quality"}], "also.quality: column quality already exists"),
        ([{**EDU, "name": "tokens"}], "also.tokens: column tokens already exists"),
        ([EDU, EDU], "also.edu: column edu already exists"),
        ([EDU, {**KIND, "name": "edu_label"}], "column edu_label already exists"),
        ([{**EDU, "window_tokens": 0}], "also.edu: window_tokens must be at least 1, not 0"),
        ([{**EDU, "min_score": 3}], r"quality.also\[0\].min_score: unknown key"),
    ],
)
def test_params_that_cannot_be(tmp_path: Path, also: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        quality.run(project(tmp_path, also))
