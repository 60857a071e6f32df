"""The stage dedup after clean, on small projects on disk: clusters, bytes, skips, and the loss of a source."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.builders import KEPT, empty_project, sample, write_rows
from support.text_corpus import NEWS, STORIES, real, rows_of

from pipelines import dedup
from pipelines.core.project import Project
from scoring.core.errors import DataError
from transforms.core import parts, schemas
from transforms.text.keys import keys


def written(project: Project) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(project.folder("dedup").iterdir()) if p.is_file()}


def table(project: Project) -> dict[str, dict[str, Any]]:
    folder = project.folder("dedup")
    found = [parts.read_part(folder / name, schemas.DEDUP.names) for name in parts.names(folder)]
    return {row["sample_id"]: row for batch in found for row in batch.to_pylist()}


def build(root: Path, size: int = 4, order: int | None = None, **sections: Any) -> Project:
    """Returns a project whose samples are cut into parts of `size`, in an order of their own, and cleaned."""
    project = empty_project(root, **sections)
    rows = rows_of(NEWS)
    if order is not None:
        random.Random(order).shuffle(rows)
    for k in range(0, len(rows), size):
        cleaned(project, f"part-aa-{k:04d}.parquet", rows[k : k + size])
    return project


def cleaned(project: Project, part: str, rows: list[dict[str, Any]]) -> None:
    """Writes a part of samples, and the part of clean that belongs to it: short and repeated texts are dropped."""
    write_rows(project, "samples", part, rows)
    texts = pa.array([row["text"] for row in rows], pa.large_string())
    hashes = keys.key_hashes(texts, [[b"m" + row["sample_id"].encode()] * (row["modality"] != "text") for row in rows])
    found = [
        {"sample_id": row["sample_id"], "clean_text": row["text"], "key_hash": key, **verdict(row["text"])}
        for row, key in zip(rows, hashes.to_pylist(), strict=True)
    ]
    write_rows(project, "clean", part, found)


def verdict(text: str | None) -> dict[str, Any]:
    """Returns columns of clean; what has fewer than 20 words fails a rule, and so does what repeats itself."""
    few = text is None or len(text.split()) < 20
    if few or "buy now" in (text or ""):
        return {"rule_quality": 0.5, "kept": False, "reasons": ["gopher_short_doc"]}
    return {"rule_quality": 1.0, **KEPT}


def keyed(project: Project, part: str, rows: list[tuple[str, str, bytes | None]]) -> None:
    """Writes a part of kept (sample_id, source, key) rows."""
    write_rows(project, "samples", part, [sample(0, sample_id=i, source=s) for i, s, _ in rows])
    kept = [{"sample_id": i, "key_hash": k, "rule_quality": 1.0, **KEPT} for i, _, k in rows]
    write_rows(project, "clean", part, kept)


def test_clusters_span_parts_and_sources(tmp_path: Path) -> None:
    project = build(tmp_path)
    dedup.run(project)
    found = table(project)
    lost = {s: row["matched_id"] for s, row in found.items() if row["kept"] is False}
    assert lost == {"s06": "s00", "s07": "s00", "s09": "s01", "s12": "s11"}
    assert all(found[s]["similarity"] == 1.0 and found[s]["reasons"] == ["duplicate_exact"] for s in lost)
    assert all(found[s]["kept"] and found[s]["cluster"] == s for s in ("s00", "s01", "s02", "s11"))
    assert found["s04"] == dict.fromkeys(schemas.DEDUP.names) | {"sample_id": "s04"}, "dropped by clean"
    metrics = json.loads(project.metrics("dedup").read_text())
    assert metrics["by_reason"] == {"duplicate_exact": 4}
    assert metrics["inputs"] == metrics["kept"] + metrics["dropped"]


def test_verdicts_do_not_depend_on_parts_their_order_or_workers(tmp_path: Path) -> None:
    found = []
    for number, (size, order, workers) in enumerate([(4, None, 2), (1, None, 1), (3, 7, 2), (50, 8, 1)]):
        project = build(tmp_path / str(number), size, order)
        dedup.run(replace(project, runtime=replace(project.runtime, workers=workers)))
        found.append(table(project))
    assert found[0] == found[1] == found[2] == found[3]


def test_worker_processes_write_the_same_bytes(tmp_path: Path) -> None:
    local, many = build(tmp_path / "local", 2), build(tmp_path / "many", 2)
    for project in (local, many):
        near = [("web", text.replace("mayor", "major")) for text in STORIES[:3]]
        cleaned(project, "part-zz-0000.parquet", rows_of(near, "z"))
    dedup.run(local)
    dedup.run(replace(many, runtime=replace(many.runtime, engine="processes")))
    assert table(local)["z02"]["reasons"] == ["duplicate_near"]
    assert written(local) == written(many)


def test_many_buckets_choose_the_same_survivors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, many = build(tmp_path / "one"), build(tmp_path / "many")
    dedup.run(one)
    monkeypatch.setattr(dedup, "KEYS_PER_BUCKET", 1)
    dedup.run(many)
    assert written(one) == written(many)


def test_a_second_run_computes_nothing_and_a_forced_one_the_same_bytes(tmp_path: Path) -> None:
    project = build(tmp_path)
    dedup.run(project)
    before = {p: p.stat().st_mtime_ns for p in project.folder("dedup").iterdir()}
    dedup.run(project)
    assert {p: p.stat().st_mtime_ns for p in project.folder("dedup").iterdir()} == before
    bytes_before = written(project)
    dedup.run(replace(project, force=True))
    assert written(project) == bytes_before
    assert not {p for p, t in before.items() if p.match(parts.PATTERN) and p.stat().st_mtime_ns == t}


@pytest.mark.parametrize("damage", ["lost part", "cut part", "other part", "no record"])
def test_damage_is_mended(tmp_path: Path, damage: str) -> None:
    project = build(tmp_path)
    dedup.run(project)
    before = written(project)
    first, second = sorted(project.folder("dedup").glob(parts.PATTERN))[:2]
    if damage == "lost part":
        first.unlink()
    elif damage == "cut part":
        first.write_bytes(first.read_bytes()[:-9])
    elif damage == "other part":
        first.write_bytes(second.read_bytes())
    else:
        (project.folder("dedup") / "corpus.json").unlink()
    dedup.run(project)
    assert written(project) == before


def test_a_new_source_rewrites_only_the_parts_whose_verdicts_change(tmp_path: Path) -> None:
    project = build(tmp_path)
    dedup.run(project)
    before = written(project)
    fresh = [("news", NEWS[3][1]), ("news", NEWS[8][1])]
    cleaned(project, "part-zz-0000.parquet", rows_of(fresh, "a"))
    dedup.run(project)
    after = written(project)
    found = table(project)
    assert [found[s]["matched_id"] for s in ("s03", "s08")] == ["a00", "a01"]
    changed = {name for name in before if name.startswith("part-") and before[name] != after[name]}
    assert changed == {"part-aa-0000.parquet", "part-aa-0008.parquet"}


def test_a_part_that_goes_takes_its_verdicts_along(tmp_path: Path) -> None:
    project = build(tmp_path)
    dedup.run(project)
    for folder in ("samples", "clean"):
        (project.folder(folder) / "part-aa-0000.parquet").unlink()
    dedup.run(project)
    assert "part-aa-0000.parquet" not in written(project)
    assert table(project)["s06"]["kept"]


def test_rows_without_a_key_are_no_duplicates(tmp_path: Path) -> None:
    project = empty_project(tmp_path)
    keyed(project, "part-aa-0000.parquet", [("a", "web", None), ("b", "web", None)])
    keyed(project, "part-bb-0000.parquet", [])
    dedup.run(project)
    assert [row["cluster"] for row in table(project).values()] == ["a", "b"]
    assert set(written(project)) == {"part-aa-0000.parquet", "part-bb-0000.parquet", "corpus.json"}


def test_a_source_that_loses_too_much_fails_after_all_is_written(tmp_path: Path) -> None:
    project = empty_project(tmp_path, dedup={"max_source_loss": 0.5})
    copies = [(f"b{k:02d}", "copied", bytes([k % 3]) * 16) for k in range(20)]
    few = [(f"c{k}", "few", b"0" * 16) for k in range(9)]
    keyed(project, "part-aa-0000.parquet", [*copies, *few])
    with pytest.raises(DataError, match=r"copied 85.0% of 20 rows") as caught:
        dedup.run(project)
    assert "few" not in str(caught.value)
    assert "max_source_loss" in str(caught.value)
    assert caught.value.exit_code == 1
    assert json.loads(project.metrics("dedup").read_text())["dropped"] == 25
    dedup.run(empty_project(tmp_path, dedup={"max_source_loss": 0.85}))


def test_real_texts_read_twice_lose_the_copies(tmp_path: Path, shared: Path) -> None:
    project = empty_project(tmp_path)
    for source in ("first", "second"):
        texts = real(shared / "text_en/news_lee_abc.jsonl", 40, source)
        cleaned(project, f"part-{source}-0000.parquet", rows_of(texts, source))
    with pytest.raises(DataError, match=r"second 100\.0%"):
        dedup.run(project)
    assert all(row["kept"] is not False for s, row in table(project).items() if s.startswith("first"))
