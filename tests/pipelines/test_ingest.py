"""The stage: the bytes are a function of files and params, every input is accounted for."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image
from support.ingesting import ask, contents, corpus, lines, metrics, project
from support.places import SHIPPED

from pipelines import ingest
from pipelines.core import exits, params
from scoring.core.errors import ConfigError, DataError
from transforms.core import features, parts, schemas


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run over the corpus."""
    root = tmp_path_factory.mktemp("done")
    ingest.run(project(root, corpus(root)))
    return root


def test_every_input_is_a_sample_or_a_reject(done: Path) -> None:
    counts = metrics(done)
    assert counts["by_source"] == {
        "web": {"files": 2, "inputs": 48, "rows": 47, "rejects": 1, "partial": 0,
                "by_reason": {"bad_json": 1}, "by_modality": {"text": 47}},
        "captions": {"files": 1, "inputs": 6, "rows": 5, "rejects": 1, "partial": 0,
                     "by_reason": {"missing_media": 1}, "by_modality": {"image": 5}},
        "pics": {"files": 7, "inputs": 7, "rows": 5, "rejects": 2, "partial": 0,
                 "by_reason": {"broken_image": 1, "empty_file": 1}, "by_modality": {"image": 5}},
    }  # fmt: skip
    assert (counts["inputs"], counts["rows"], counts["rejects"], counts["files"]) == (61, 57, 4, 10)
    assert counts["by_modality"] == {"image": 10, "text": 47}
    assert ask(done, "samples", "count(*), count(DISTINCT sample_id)") == [(57, 57)]


def test_a_second_run_writes_nothing(done: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (done / "data").rglob("*.parquet")}
    ingest.run(project(done, corpus(done)))
    assert {p: p.stat().st_mtime_ns for p in (done / "data").rglob("*.parquet")} == before


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_bytes_do_not_depend_on_place_order_or_workers(done: Path, tmp_path: Path, engine: str) -> None:
    root = tmp_path / "elsewhere" / "deep"
    root.mkdir(parents=True)
    sources = corpus(root)
    sources[0]["paths"].reverse()
    ingest.run(project(root, sources, engine))
    assert contents(root) == contents(done)


def test_rows_do_not_depend_on_the_size_of_parts(done: Path, tmp_path: Path) -> None:
    ingest.run(project(tmp_path, corpus(tmp_path), rows_per_part=3, bytes_per_part=2000))
    columns = "* EXCLUDE (images), list_transform(images, lambda i: i.bytes)"
    rows = [sorted(ask(r, "samples", columns), key=repr) for r in (done, tmp_path)]
    assert rows[0] == rows[1]
    assert metrics(tmp_path) == metrics(done)
    assert max(parts.Footer(p).rows for p in (tmp_path / "data/samples").glob("*.parquet")) == 3


def test_a_new_source_and_a_new_file_leave_all_other_parts_alone(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "data").rglob("*.parquet")}
    sources = corpus(tmp_path)
    lines(tmp_path / "raw/new.jsonl", [{"text": "new"}])
    lines(tmp_path / "other/x.jsonl", [{"text": "other"}])
    sources[0]["paths"].append("raw/new.jsonl")
    ingest.run(project(tmp_path, [*sources, {"name": "other", "paths": ["other"]}]))
    after = {p: p.stat().st_mtime_ns for p in (tmp_path / "data").rglob("*.parquet")}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 4
    ingest.run(project(tmp_path, sources[:1]))
    assert set(metrics(tmp_path)["by_source"]) == {"web"}
    assert {s for (s,) in ask(tmp_path, "samples", "DISTINCT source")} == {"web"}


def test_only_units_with_media_hang_on_the_decoders(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "data/rejects").glob("*.parquet")}
    image = {**params.read(SHIPPED).tree["ingest"]["image"], "max_side": 4}
    ingest.run(project(tmp_path, corpus(tmp_path), image=image))
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "data/rejects").glob("*.parquet")}
    changed = {n for n in before if before[n] != after[n]}
    assert set(before) == set(after)
    assert {parts.Footer(tmp_path / "data/rejects" / n).meta["source"] for n in changed} == {"captions", "pics"}


def test_a_changed_picture_ingests_its_rows_again(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    Image.new("RGB", (99, 8)).save(tmp_path / "pics/0.png")
    Image.new("RGB", (50, 8)).save(tmp_path / "pics/5.png")
    ingest.run(project(tmp_path, [{"name": "captions", "paths": ["raw/captions.jsonl"]}]))
    assert ask(tmp_path, "samples", "width") == [(99,), (17,), (18,), (19,), (20,), (50,)]
    assert ask(tmp_path, "rejects", "*") == []


# Checks.


def test_too_many_rejects_fail_the_run_and_everything_stays(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", [{"text": "a"}, "x", "y", [1]])
    with pytest.raises(DataError) as caught:
        ingest.run(project(tmp_path, [{"name": "web", "paths": ["a.jsonl"]}]))
    for words in ("source web: 3 of 4 inputs are rejects (75.0%", "2 bad_json", "1 not_an_object", "gradsift query"):
        assert words in str(caught.value)
    assert ask(tmp_path, "samples", "text") == [("a",)]
    assert metrics(tmp_path)["rejects"] == 3
    ingest.run(project(tmp_path, [{"name": "web", "paths": ["a.jsonl"]}], max_reject_ratio=0.75))


def test_a_column_that_is_in_no_row_is_a_slip_of_the_pen(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", [{"text": "a", "label": "x"}])
    with pytest.raises(ConfigError) as caught:
        ingest.run(project(tmp_path, [{"name": "web", "paths": ["a.jsonl"], "columns": {"label": "lable"}}]))
    assert "source web: no row has the column 'lable' (for label)" in str(caught.value)
    assert "label, text" in str(caught.value)


def test_a_source_that_matches_nothing_changes_nothing(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match="source gone: 'gone' matches no files"):
        ingest.run(project(tmp_path, [{"name": "gone", "paths": ["gone"]}]))
    assert contents(tmp_path) == before


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_a_data_set_that_cannot_be_loaded_is_a_fault_of_params(
    tmp_path: Path, engine: str, capfd: pytest.CaptureFixture[str]
) -> None:
    lines(tmp_path / "set/a.jsonl", [{"text": "a"}])
    sources = [{"name": "hf", "paths": ["set"], "format": "huggingface", "split": "nowhere"}]
    assert exits.guard("ingest", lambda: ingest.run(project(tmp_path, sources, engine))) == 2
    assert "datasets cannot load" in capfd.readouterr().err


def test_a_lost_row_breaks_conservation(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    path = next(p for p in sorted((tmp_path / "data/samples").glob("*.parquet")) if parts.Footer(p).rows == 40)
    footer = parts.Footer(path)
    batch = pq.read_table(path).slice(1).combine_chunks().to_batches()[0]
    parts.write_part(path.parent, parts.Part(path.name, footer.fingerprint, batch), schemas.SAMPLES)
    with pytest.raises(DataError, match="source web: 48 rows were read, but 47 are samples or rejects"):
        ingest.run(project(tmp_path, corpus(tmp_path)))
    ingest.run(replace(project(tmp_path, corpus(tmp_path)), force=True))
    assert contents(tmp_path) == contents(done)


@pytest.mark.parametrize("damage", ["gone", "cut", "foreign"])
def test_a_damaged_part_is_made_again(done: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    for folder in ("samples", "rejects"):
        path = tmp_path / "data" / folder / parts.names(tmp_path / "data" / folder)[0]
        if damage == "gone":
            path.unlink()
        elif damage == "cut":
            path.write_bytes(path.read_bytes()[:-9])
        else:
            (path.parent / "part-0000000000000000-0000.parquet").write_bytes(path.read_bytes())
            (path.parent / ".tmp-rest.parquet").write_bytes(b"x")
            (path.parent / path.name.replace("-0000.", "-0009.")).write_bytes(path.read_bytes())
    ingest.run(project(tmp_path, corpus(tmp_path)))
    assert contents(tmp_path) == contents(done)
    assert not list((tmp_path / "data").rglob(".tmp-*"))


# What others read.


def test_datasets_yields_pictures_and_knows_the_features(done: Path, tmp_path: Path) -> None:
    import datasets
    from PIL.Image import Image as Picture

    files = sorted(str(p) for p in (done / "data/samples").glob("*.parquet"))
    rows = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path))
    built = datasets.Features.from_arrow_schema(schemas.SAMPLES)
    assert rows.features == built
    stored = json.loads(pq.read_schema(files[0]).metadata[b"huggingface"])
    assert stored == json.loads(built.arrow_schema.metadata[b"huggingface"])
    rows = rows.cast_column("audio", datasets.Audio(sampling_rate=features.AUDIO_RATE_HZ, decode=False))
    pictures = [row["images"][0] for row in rows if row["modality"] == "image"]
    assert len(pictures) == 10
    assert all(isinstance(p, Picture) and p.size[1] == 8 for p in pictures)
