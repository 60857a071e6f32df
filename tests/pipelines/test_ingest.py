"""The stage: the bytes are a function of files and params, ids are settled, every input is accounted for."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
import yaml
from builders import REPO, empty_project
from PIL import Image

from pipelines import ingest, params
from pipelines.project import Project
from scoring.errors import ConfigError, DataError
from transforms import parts, schemas

Row = Mapping[str, Any]


def lines(path: Path, rows: Sequence[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))


def corpus(root: Path) -> list[dict[str, Any]]:
    """Writes a small corpus of every kind; returns the sources that read it."""
    lines(root / "raw/web.jsonl", [{"id": k, "text": f"text {k}", "extra": [k]} for k in range(40)] + ["rubbish"])
    lines(root / "raw/more.jsonl", [{"text": f"more {k}"} for k in range(7)])
    for k in range(5):
        picture = Image.new("RGB", (16 + k, 8), (40 * k, 0, 0))
        (root / "pics").mkdir(exist_ok=True)
        picture.save(root / f"pics/{k}.png")
    (root / "pics/broken.png").write_bytes(b"\x89PNG\r\n\x1a\nrubbish")
    (root / "pics/empty.png").write_bytes(b"")
    lines(root / "raw/captions.jsonl", [{"id": k, "text": f"red {k}", "image": f"../pics/{k}.png"} for k in range(6)])
    return [
        {"name": "web", "paths": ["raw/web.jsonl", "raw/more.jsonl"]},
        {"name": "captions", "paths": ["raw/captions.jsonl"]},
        {"name": "pics", "paths": ["pics"]},
    ]


def project(root: Path, sources: Sequence[dict[str, Any]], engine: str = "local", **keys: Any) -> Project:
    found = empty_project(root, ingest={"sources": list(sources), **keys})
    return replace(found, runtime=replace(found.runtime, engine=engine))


def contents(root: Path) -> dict[str, bytes]:
    """Returns every part and the metrics."""
    files = [*(root / "data").rglob("part-*.parquet"), *(root / "metrics").glob("*.json")]
    return {str(p.relative_to(root)): p.read_bytes() for p in files}


def ask(root: Path, folder: str, sql: str) -> list[Any]:
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT {sql} FROM '{root}/data/{folder}/part-*.parquet'").fetchall()


def metrics(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "metrics/ingest.json").read_text()))


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
    image = {**params.read(REPO / "params.yaml").tree["ingest"]["image"], "max_side": 4}
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


# Ids.


def test_an_id_in_two_files_goes_to_the_first_and_back_when_it_leaves(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", [{"id": 1, "text": "a1"}, {"id": 2, "text": "a2"}])
    lines(tmp_path / "b.jsonl", [{"id": 2, "text": "b2"}, {"id": 3, "text": "b3"}, {"id": 2, "text": "b2 again"}])
    lines(tmp_path / "c.jsonl", [{"id": 3, "text": "c3"}, {"id": 1, "text": "c1"}])

    def run(*names: str) -> tuple[list[str], list[tuple[str, int]]]:
        ingest.run(project(tmp_path, [{"name": "s", "paths": [f"{n}.jsonl" for n in names]}], max_reject_ratio=1.0))
        texts = sorted(t for (t,) in ask(tmp_path, "samples", "text"))
        return texts, sorted(ask(tmp_path, "rejects", "uri, position"))

    all_three = run("c", "b", "a")
    assert all_three == (["a1", "a2", "b3"], [("b.jsonl", 0), ("b.jsonl", 48), ("c.jsonl", 0), ("c.jsonl", 24)])
    bytes_of_three = contents(tmp_path)
    assert run("b", "c") == (["b2", "b3", "c1"], [("b.jsonl", 48), ("c.jsonl", 0)])
    bytes_of_two = contents(tmp_path)
    assert run("c") == (["c1", "c3"], [])
    assert run("b", "c")[0] == ["b2", "b3", "c1"]
    assert contents(tmp_path) == bytes_of_two
    run("a", "b", "c")
    assert contents(tmp_path) == bytes_of_three
    shutil.rmtree(tmp_path / "data")
    run("a", "b", "c")
    assert contents(tmp_path) == bytes_of_three


def test_a_lost_row_may_cost_a_part(tmp_path: Path) -> None:
    for name, last in (("a", 3), ("b", 0)):
        lines(
            tmp_path / f"{name}.jsonl", [{"id": f"{name if k else ''}{k}", "text": f"{name}{k}"} for k in (1, 2, last)]
        )
    ingest.run(project(tmp_path, [{"name": "s", "paths": ["a.jsonl", "b.jsonl"]}], rows_per_part=2))
    lines(tmp_path / "a.jsonl", [{"id": k, "text": f"a{k}"} for k in range(3)])
    ingest.run(project(tmp_path, [{"name": "s", "paths": ["a.jsonl", "b.jsonl"]}], rows_per_part=2))
    assert [t for (t,) in ask(tmp_path, "samples", "text")].count("b0") == 0
    assert len(parts.names(tmp_path / "data/samples")) == 3
    resumed = contents(tmp_path)
    shutil.rmtree(tmp_path / "data")
    ingest.run(project(tmp_path, [{"name": "s", "paths": ["a.jsonl", "b.jsonl"]}], rows_per_part=2))
    assert contents(tmp_path) == resumed


def test_the_same_file_in_two_sources_belongs_to_the_first(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", [{"text": "a"}, {"text": "b"}])
    shutil.copy(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    sources = [{"name": n, "paths": [p]} for n, p in (("z", "b.jsonl"), ("a", "a.jsonl"))]
    ingest.run(project(tmp_path, sources, max_reject_ratio=1.0))
    assert set(ask(tmp_path, "samples", "source, uri")) == {("z", "b.jsonl")}
    assert [r for (r,) in ask(tmp_path, "rejects", "reason")] == ["duplicate_id"] * 2
    ingest.run(project(tmp_path, sources[::-1], max_reject_ratio=1.0))
    assert set(ask(tmp_path, "samples", "source, uri")) == {("a", "a.jsonl")}


def test_pieces_of_one_file_share_its_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": k % 60, "text": f"t{k}"} for k in range(80)]
    lines(tmp_path / "a.jsonl", rows)
    monkeypatch.setattr("transforms.units.PIECE_BYTES", 500)
    ingest.run(project(tmp_path, [{"name": "s", "paths": ["a.jsonl"]}]))
    texts = [t for (t,) in ask(tmp_path, "samples", "text")]
    assert sorted(texts) == sorted(f"t{k}" for k in range(60))
    assert metrics(tmp_path)["by_reason"] == {"duplicate_id": 20}
    assert len(parts.names(tmp_path / "data/samples")) > 4


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
    with pytest.raises(ConfigError, match="source gone: 'gone' matches no file"):
        ingest.run(project(tmp_path, [{"name": "gone", "paths": ["gone"]}]))
    assert contents(tmp_path) == before


def test_a_lost_row_breaks_conservation(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    path = next(p for p in sorted((tmp_path / "data/samples").glob("*.parquet")) if parts.Footer(p).rows == 40)
    footer = parts.Footer(path)
    batch = pq.read_table(path).slice(1).combine_chunks().to_batches()[0]
    parts.write_part(path.parent, parts.Part(path.name, footer.fingerprint, batch), schemas.SAMPLES)
    with pytest.raises(DataError, match="source web: 48 rows were read, 47 are samples or rejects"):
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


# From the command line.


def write_params(root: Path, sources: Sequence[dict[str, Any]], **keys: Any) -> None:
    tree = dict(params.read(REPO / "params.yaml").tree)
    tree["ingest"] = {**tree["ingest"], "sources": list(sources), **keys}
    (root / "params.yaml").write_text(yaml.safe_dump(tree))


def command(root: Path) -> list[str]:
    return [sys.executable, "-m", "pipelines.ingest", "--params", str(root / "params.yaml")]


def test_killed_at_any_moment_a_run_ends_in_the_same_bytes(tmp_path: Path) -> None:
    def write(root: Path) -> None:
        for k in range(4):
            rows = [{"id": f"{k}-{n % 900}", "text": f"{k} {n} " + "words " * 20} for n in range(1000)]
            lines(root / f"raw/{k}.jsonl", [*rows, {"id": "0-5", "text": "claimed"}])
        write_params(root, [{"name": "web", "paths": ["raw"]}], rows_per_part=100)

    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    write(calm)
    write(stormy)
    started = time.monotonic()
    assert subprocess.run(command(calm), check=False, capture_output=True).returncode == 0
    whole_s = time.monotonic() - started
    dice, kills = random.Random(7), 0
    for _ in range(3):
        child = subprocess.Popen(command(stormy), stderr=subprocess.PIPE, start_new_session=True)
        try:
            child.wait(whole_s * dice.uniform(0.5, 0.95))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            kills += 1
        child.communicate()
    assert kills
    assert subprocess.run(command(stormy), check=False, capture_output=True).returncode == 0
    assert contents(stormy) == contents(calm)
    assert not list((stormy / "data").rglob(".tmp-*"))


def test_what_the_user_may_not_read(tmp_path: Path) -> None:
    lines(tmp_path / "raw/a.jsonl", [{"text": "a"}])
    lines(tmp_path / "raw/secret.jsonl", [{"text": "b"}])
    lines(tmp_path / "raw/vault/c.jsonl", [{"text": "c"}])
    write_params(tmp_path, [{"name": "web", "paths": ["raw"]}])
    humble = command(tmp_path)
    if os.geteuid() == 0:  # root reads everything, unless it gives up that power
        if not shutil.which("setpriv"):
            pytest.skip("root, and no setpriv")
        powers = "-dac_override,-dac_read_search"
        humble = ["setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}", *humble]
    (tmp_path / "raw/vault").chmod(0)
    refused = subprocess.run(humble, check=False, capture_output=True, text=True)
    (tmp_path / "raw/vault").chmod(0o755)
    assert refused.returncode == 2, refused.stderr
    assert "source web: no permission to list" in refused.stderr
    assert "raw/vault" in refused.stderr
    assert "remedy" in refused.stderr
    (tmp_path / "raw/secret.jsonl").chmod(0)
    done = subprocess.run(humble, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert metrics(tmp_path)["by_reason"] == {"unreadable_file": 1}
    assert ask(tmp_path, "rejects", "uri, error") == [("raw/secret.jsonl", "Permission denied")]


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
    rows = rows.cast_column("audio", datasets.Audio(sampling_rate=schemas.AUDIO_RATE_HZ, decode=False))
    pictures = [row["images"][0] for row in rows if row["modality"] == "image"]
    assert len(pictures) == 10
    assert all(isinstance(p, Picture) and p.size[1] == 8 for p in pictures)


def test_every_shared_file_is_accounted_for(shared: Path, tmp_path: Path) -> None:
    names = ["text_zh", "parquet", "web", "multimodal"]
    sources = [{"name": n, "paths": [str(shared / n)]} for n in names]
    ingest.run(project(tmp_path, sources, max_reject_ratio=1.0))
    counts = metrics(tmp_path)
    assert counts["files"] == sum(p.is_file() for n in names for p in (shared / n).rglob("*"))
    seen = set(ask(tmp_path, "samples", "DISTINCT uri")) | set(ask(tmp_path, "rejects", "DISTINCT uri"))
    assert len(seen) == counts["files"]
    assert counts["by_source"]["text_zh"]["rejects"] == 0
    assert counts["by_source"]["web"]["by_reason"] == {"unsupported_format": 29}


def test_shared_rows_with_mappings(shared: Path, tmp_path: Path) -> None:
    alpaca = "{instruction}\n{input}\n{output}"
    sources = [
        {"name": "alpaca", "paths": [str(shared / "labelled/alpaca_en.jsonl")], "columns": {"text": alpaca}},
        {"name": "zh", "paths": [str(shared / "labelled/alpaca_zh_demo.json")], "columns": {"text": alpaca}},
        {"name": "dpo", "paths": [str(shared / "labelled/preference_dpo_en.jsonl")],
         "columns": {"text": "{conversations}\n{chosen}"}},
        {"name": "talk", "paths": [str(shared / "multimodal/llama_factory/mllm_demo.json")],
         "columns": {"text": "messages"}},
        {"name": "bytes", "paths": [str(shared / "multimodal/data_juicer/*.parquet")],
         "columns": {"images": "image_bytes"}},
        {"name": "saved", "paths": [str(shared / "parquet")], "format": "huggingface",
         "kwargs": {"data_files": {"train": [str(shared / "parquet/dj-demo.parquet")]}}},
    ]  # fmt: skip
    ingest.run(project(tmp_path, sources))
    found = {s: (c["inputs"], c["rows"]) for s, c in metrics(tmp_path)["by_source"].items()}
    assert found == {
        "alpaca": (999, 999),
        "zh": (1000, 1000),
        "dpo": (140, 140),
        "talk": (6, 6),
        "bytes": (3, 3),
        "saved": (6, 6),
    }
    assert ask(tmp_path, "samples", "count(*) FILTER (source = 'bytes' AND modality = 'image')") == [(3,)]
