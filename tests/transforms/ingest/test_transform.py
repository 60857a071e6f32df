"""One unit: parts cut by rows and bytes, rejects closed last, ids settled within it."""

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to
from support.builders import empty_project
from support.reading import source

from scoring.core.errors import ConfigError
from transforms.core import parts, schemas
from transforms.ingest.config import IngestConfig
from transforms.ingest.reading import UnitTask, ingest_unit
from transforms.ingest.transform import IngestUnits
from transforms.ingest.units import Unit, plan
from transforms.ingest.writers import SeenIds, to_batch


def config(root: Path, *sources: dict[str, Any], **keys: Any) -> IngestConfig:
    return empty_project(root, ingest={"sources": list(sources), **keys}).section("ingest", IngestConfig)


def units(root: Path, found: IngestConfig) -> list[Unit]:
    return [u for s in found.sources for u in plan(root, s, found.max_row_bytes)]


def task(unit: Unit, excluded: str = "[]", fingerprint: str = "f") -> UnitTask:
    return UnitTask(unit.to_json(), excluded, "base", fingerprint)


def ingest(root: Path, found: IngestConfig, excluded: str = "[]") -> Unit:
    [unit] = units(root, found)
    ingest_unit(task(unit, excluded), root, root / "data", found)
    return unit


def rows_of(root: Path, folder: str) -> list[dict[str, Any]]:
    names = parts.names(root / "data" / folder)
    return [row for n in names for row in pq.read_table(root / "data" / folder / n).to_pylist()]


def lines(path: Path, *rows: Any) -> None:
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))


def test_samples_and_rejects_of_a_unit(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {"id": "x", "text": "a", "lang": "en"}, "rubbish", {"body": 1}, {"text": "b"})
    found = config(tmp_path, {"name": "web", "paths": ["a.jsonl"], "columns": {"label": "lang"}})
    unit = ingest(tmp_path, found)
    samples, rejects = rows_of(tmp_path, "samples"), rows_of(tmp_path, "rejects")
    digest = unit.files[0].digest
    assert [(r["sample_id"], r["position"], r["text"], r["label"]) for r in samples] == [
        ("web/x", 0, "a", "en"), (f"{digest[:16]}-59", 59, "b", None),
    ]  # fmt: skip
    assert {(r["source"], r["uri"], r["source_digest"], r["modality"], r["segment"]) for r in samples} == {
        ("web", "a.jsonl", digest, "text", 0)
    }
    assert [(r["position"], r["reason"], r["stage"], r["excerpt"], r["partial"], r["sample_id"]) for r in rejects] == [
        (39, "bad_json", "ingest", "rubbish", False, None), (47, "missing_column", "ingest", '{"body":1}', False, None),
    ]  # fmt: skip
    meta = parts.Footer(tmp_path / "data/rejects" / unit.part(0)).meta
    assert meta == {
        "fingerprint": "f", "base": "base", "parts": 1, "source": "web", "inputs": 4,
        "columns": ["body", "id", "lang", "text"], "named_columns": ["lang"],
    }  # fmt: skip


def test_parts_are_cut_by_rows(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", *({"text": str(k)} for k in range(10)))
    unit = ingest(tmp_path, config(tmp_path, {"name": "web", "paths": ["a.jsonl"]}, rows_per_part=4))
    assert parts.names(tmp_path / "data/samples") == [unit.part(k) for k in range(3)]
    assert [parts.Footer(tmp_path / "data/samples" / unit.part(k)).rows for k in range(3)] == [4, 4, 2]
    assert [r["text"] for r in rows_of(tmp_path, "samples")] == [str(k) for k in range(10)]


def test_parts_are_cut_by_bytes_and_a_larger_row_stands_alone(tmp_path: Path) -> None:
    sizes = [10, 10, 5000, 10, 1000, 1000, 1000]
    lines(tmp_path / "a.jsonl", *({"text": "é" * (n // 2)} for n in sizes))
    unit = ingest(tmp_path, config(tmp_path, {"name": "web", "paths": ["a.jsonl"]}, bytes_per_part=3000))
    counts = [parts.Footer(p).rows for p in sorted((tmp_path / "data/samples").glob("*.parquet"))]
    assert counts == [2, 1, 3, 1]
    assert unit.part(3) in parts.names(tmp_path / "data/samples")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"rubbish\n[1]\n"])
def test_a_file_without_samples_has_a_part_of_no_rows(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(data)
    unit = ingest(tmp_path, config(tmp_path, {"name": "web", "paths": ["a.jsonl"]}))
    table = pq.read_table(tmp_path / "data/samples" / unit.part(0))
    assert table.num_rows == 0
    assert table.schema.equals(schemas.SAMPLES)
    assert parts.read_part(tmp_path / "data/samples" / unit.part(0), ["sample_id"]).num_rows == 0
    assert parts.read_part(tmp_path / "data/rejects" / unit.part(0), ["reason"])["reason"].to_pylist() == (
        {b"": ["empty_file"], b"\n\n": []}.get(data, ["bad_json", "not_an_object"])
    )


def test_an_id_that_stands_twice_is_a_reject(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {"id": 1, "text": "a"}, {"id": 2, "text": "b"}, {"id": "1", "text": "c"}, {"text": "d"})
    ingest(tmp_path, config(tmp_path, {"name": "web", "paths": ["a.jsonl"]}))
    assert [r["text"] for r in rows_of(tmp_path, "samples")] == ["a", "b", "d"]
    [reject] = rows_of(tmp_path, "rejects")
    assert (reject["reason"], reject["sample_id"], reject["position"]) == ("duplicate_id", "web/1", 46)


def test_a_row_that_fails_gives_its_id_back(tmp_path: Path) -> None:
    lines(
        tmp_path / "a.jsonl",
        {"id": 1, "text": "a", "image": "gone.png"},
        {"id": 1, "text": "b"},
        {"id": 1, "text": "c"},
    )
    ingest(tmp_path, config(tmp_path, {"name": "web", "paths": ["a.jsonl"]}))
    assert [r["text"] for r in rows_of(tmp_path, "samples")] == ["b"]
    assert [r["reason"] for r in rows_of(tmp_path, "rejects")] == ["missing_media", "duplicate_id"]


def test_two_files_of_the_same_content_in_a_group(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("words")
    ingest(tmp_path, config(tmp_path, {"name": "web", "paths": ["*.txt"]}))
    assert [r["uri"] for r in rows_of(tmp_path, "samples")] == ["a.txt"]
    [reject] = rows_of(tmp_path, "rejects")
    assert (reject["uri"], reject["reason"], reject["error"]) == (
        "b.txt",
        "duplicate_id",
        "another file has the same content",
    )


def test_excluded_rows_are_rejects_and_are_not_decoded(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {"id": 1, "text": "a", "image": "gone.png"}, {"id": 2, "text": "b"})
    ingest(tmp_path, config(tmp_path, {"name": "web", "paths": ["a.jsonl"]}), excluded="[[0, 0]]")
    assert [r["reason"] for r in rows_of(tmp_path, "rejects")] == ["duplicate_id"]
    assert [r["text"] for r in rows_of(tmp_path, "samples")] == ["b"]


def test_many_rejects_stream_into_row_groups(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("x\n" * 9000)
    unit = ingest(tmp_path, config(tmp_path, {"name": "web", "paths": ["a.jsonl"]}))
    path = tmp_path / "data/rejects" / unit.part(0)
    assert pq.read_metadata(path).num_row_groups == 3
    assert pq.read_table(path).schema.equals(schemas.REJECTS)
    assert parts.Footer(path).rows == parts.Footer(path).meta["inputs"] == 9000
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_failed_unit_leaves_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines(tmp_path / "a.jsonl", {"text": "a"})
    monkeypatch.setattr("transforms.ingest.reading.SampleWriter.close", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ingest(tmp_path, config(tmp_path, {"name": "web", "paths": ["a.jsonl"]}))
    assert list((tmp_path / "data/rejects").iterdir()) == []


def test_the_transform_does_what_the_function_does(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {"text": "a"}, "rubbish")
    lines(tmp_path / "b.jsonl", {"text": "b"})
    found = config(tmp_path, {"name": "web", "paths": ["*.jsonl"]})
    planned = units(tmp_path, found)
    for unit in planned:
        ingest_unit(task(unit), tmp_path, tmp_path / "data", found)
    with beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner") as pipeline:
        tasks = pipeline | beam.Create([task(u) for u in planned]).with_output_types(UnitTask)
        receipts = tasks | IngestUnits(tmp_path, tmp_path / "again", found)
        expected = [(u.part(0), n) for u, n in zip(planned, (2, 1), strict=True)]
        assert_that(receipts | beam.Map(lambda r: (r.name, r.rows)), equal_to(expected))
    assert contents(tmp_path / "again") == contents(tmp_path / "data")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.parquet")}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"sources": []}, "at least one source is needed"),
    ({"sources": [{"name": "a", "paths": ["x"]}] * 2}, "each with a unique name; duplicates: a"),
    ({"sources": [{"name": "A", "paths": ["x"]}]}, "ingest.sources[0]: name 'A'"),
    ({"sources": [{"name": "a", "path": "x"}]}, "ingest.sources[0].path: unknown key"),
    ({"sources": [{"name": "a", "paths": ["x"], "format": "arc"}]}, "ingest.sources[0].format"),
    ({"rows_per_part": 0}, "rows_per_part 0"),
    ({"rows_per_part": 5000}, "rows_per_part 5000"),
    ({"bytes_per_part": 0}, "bytes_per_part 0"),
    ({"max_row_bytes": 0}, "max_row_bytes 0"),
    ({"max_reject_ratio": 1.5}, "max_reject_ratio 1.5"),
]


@pytest.mark.parametrize(("keys", "words"), BAD, ids=lambda v: str(v)[:60])
def test_bad_params_name_the_field(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        empty_project(tmp_path, ingest=keys).section("ingest", IngestConfig)
    assert words in str(caught.value)


def test_seen_ids() -> None:
    seen = SeenIds()
    assert [seen.add(i) for i in ("a", "b", "a", "é")] == [True, True, False, True]
    seen.discard("a")
    assert seen.add("a")
    seen.close()


def test_a_batch_of_no_rows() -> None:
    assert to_batch([], schemas.REJECTS).num_rows == 0
    assert source().name == "src"
