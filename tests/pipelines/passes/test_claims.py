"""Sample ids that several rows claim: one has it, the same one whatever was ingested before."""

import shutil
from pathlib import Path

import pytest
from support.ingesting import ask, contents, lines, metrics, project

from pipelines import ingest
from transforms.core import parts


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
    monkeypatch.setattr("transforms.ingest.units.PIECE_BYTES", 500)
    ingest.run(project(tmp_path, [{"name": "s", "paths": ["a.jsonl"]}]))
    texts = [t for (t,) in ask(tmp_path, "samples", "text")]
    assert sorted(texts) == sorted(f"t{k}" for k in range(60))
    assert metrics(tmp_path)["by_reason"] == {"duplicate_id": 20}
    assert len(parts.names(tmp_path / "data/samples")) > 4
