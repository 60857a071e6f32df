"""The stage dedup on texts that are nearly the same: files on disk, whatever their cut, order and engine."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.builders import KEPT, PICTURE, empty_project, sample, write_rows
from support.text_corpus import real

from pipelines import dedup
from pipelines.core.project import Project
from transforms.core import parts, schemas
from transforms.text.keys import keys

BASE = [" ".join(f"{w}{k}" for w in ("river", "hill", "town", "bridge", "market", "flood") for k in "abcdefghijklmnop")]
BASE += [BASE[0].replace("river", "forest").replace("town", "village"), BASE[0].replace("e", "o")]


def edited(text: str, *places: int) -> str:
    words = text.split()
    return " ".join("other" if k in places else w for k, w in enumerate(words))


TEXTS = [
    BASE[0], BASE[1], edited(BASE[0], 10), BASE[2], edited(BASE[0], 50).upper(), edited(BASE[1], 3),
    edited(BASE[0], 10) + "!", "Far too short.", edited(BASE[1], *range(0, 90, 6)), f"{BASE[2]} {BASE[1]}",
    edited(BASE[0], 10, 70), "", "far too short",
]  # fmt: skip


def build(root: Path, size: int = 4, order: int | None = None, texts: list[str] = TEXTS, **near: Any) -> Project:
    """Returns a project of `texts`, s00 on, all kept by clean, in parts of `size` in an order of their own."""
    project = empty_project(root)
    project.params.tree["dedup"]["near"] = {**project.params.tree["dedup"]["near"], **near}
    rows = [sample(k, text=text) for k, text in enumerate(texts)]
    if order is not None:
        random.Random(order).shuffle(rows)
    for k in range(0, len(rows), size):
        write(project, f"part-aa-{k:04d}.parquet", rows[k : k + size])
    return project


def write(project: Project, part: str, rows: list[dict[str, Any]]) -> None:
    """Writes a part of samples and of clean; s04 has the lower quality."""
    write_rows(project, "samples", part, rows)
    media = [[b"m" + row["sample_id"].encode()] if row["modality"] != "text" else [] for row in rows]
    hashes = keys.key_hashes(pa.array([row["text"] for row in rows], pa.large_string()), media).to_pylist()
    found = [
        {"sample_id": row["sample_id"], "clean_text": row["text"], "key_hash": key, **KEPT,
         "rule_quality": 0.9 if row["sample_id"] == "s04" else 1.0}
        for row, key in zip(rows, hashes, strict=True)
    ]  # fmt: skip
    write_rows(project, "clean", part, found)


def table(project: Project) -> dict[str, dict[str, Any]]:
    folder = project.folder("dedup")
    found = [parts.read_part(folder / name, schemas.DEDUP.names) for name in parts.names(folder)]
    return {row["sample_id"]: row for batch in found for row in batch.to_pylist()}


def written(project: Project) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(project.folder("dedup").iterdir()) if p.is_file()}


def metrics(project: Project) -> dict[str, Any]:
    return json.loads(project.metrics("dedup").read_text())


def lost(project: Project) -> dict[str, tuple[str, str]]:
    """Returns dropped id → (matched id, reason)."""
    return {s: (row["matched_id"], *row["reasons"]) for s, row in table(project).items() if row["kept"] is False}


WANTED = {
    "s02": ("s00", "duplicate_near"), "s04": ("s00", "duplicate_near"), "s05": ("s01", "duplicate_near"),
    "s06": ("s00", "duplicate_near"), "s10": ("s00", "duplicate_near"), "s12": ("s07", "duplicate_exact"),
}  # fmt: skip


def test_near_duplicates_have_their_match_and_similarity(tmp_path: Path) -> None:
    project = build(tmp_path)
    dedup.run(project)
    assert lost(project) == WANTED, "s06 is an exact copy of s02, and goes where s02 goes"
    found = table(project)
    assert found["s02"]["similarity"] == found["s06"]["similarity"] == pytest.approx(87 / 97)
    assert found["s12"]["similarity"] == 1.0
    assert all(found[s]["cluster"] == s and found[s]["survivor"] for s in ("s00", "s01", "s03", "s08", "s09", "s11"))
    assert metrics(project)["by_reason"] == {"duplicate_exact": 1, "duplicate_near": 5}
    assert metrics(project)["near"] == {"candidates": 6, "full_bands": 0}
    assert not [p for p in project.folder("dedup").iterdir() if p.is_dir() and p.name in dedup.MADE]


def test_verdicts_do_not_depend_on_parts_their_order_workers_or_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for number, (size, order, bound) in enumerate([(4, None, 10**6), (2, 3, 4), (50, 8, 100)]):
        for name in ("KEYS_PER_BUCKET", "HASHES_PER_SLICE", "SHINGLES_PER_BUNDLE"):
            monkeypatch.setattr(dedup, name, bound)
        project = build(tmp_path / str(number), size, order)
        dedup.run(project)
        found.append((table(project), metrics(project)))
    assert found[0] == found[1] == found[2]


def test_a_new_source_signs_its_own_parts_alone(tmp_path: Path) -> None:
    project = build(tmp_path)
    dedup.run(project)
    before, kept = written(project), stamps(project, "signatures") | stamps(project, "shingles")
    write(project, "part-zz-0000.parquet", [sample(90, text=edited(BASE[2], 30)), sample(91, text="News of its own.")])
    dedup.run(project)
    after = stamps(project, "signatures") | stamps(project, "shingles")
    changed = {name for name in kept if kept[name] != after[name]}
    assert changed == {"shingles/part-aa-0000.parquet.arrow"}, "s03 has shingles to be compared now"
    assert set(after) - set(kept) >= {"signatures/part-zz-0000.parquet.arrow", "shingles/part-zz-0000.parquet.arrow"}
    assert lost(project) == {**WANTED, "s90": ("s03", "duplicate_near")}
    assert {n for n in before if n.startswith("part-") and before[n] != written(project)[n]} == set()


def stamps(project: Project, folder: str) -> dict[str, int]:
    return {f"{folder}/{p.name}": p.stat().st_mtime_ns for p in (project.folder("dedup") / folder).iterdir()}


def test_damaged_scratch_is_made_again_and_the_rerun_writes_the_same_bytes(tmp_path: Path) -> None:
    project = build(tmp_path)
    dedup.run(project)
    before = written(project)
    for folder in ("signatures", "shingles"):
        first = next(iter((project.folder("dedup") / folder).iterdir()))
        first.write_bytes(first.read_bytes()[:-9])
    (project.folder("dedup") / "near").mkdir()
    (project.folder("dedup") / "near" / "00000.arrow").write_bytes(b"of a run that was killed")
    (project.folder("dedup") / "corpus.json").unlink()
    dedup.run(project)
    assert written(project) == before


def test_a_change_of_params_changes_the_verdicts_and_off_is_off(tmp_path: Path) -> None:
    project = build(tmp_path, min_similarity=0.95)
    dedup.run(project)
    assert lost(project) == {"s06": ("s02", "duplicate_exact"), "s12": WANTED["s12"]}
    off = build(tmp_path, enabled=False)
    dedup.run(off)
    assert lost(off) == {"s06": ("s02", "duplicate_exact"), "s12": WANTED["s12"]}
    assert metrics(off)["near"] == {"candidates": 0, "full_bands": 0}


def written_apart(project: Project, part: str, prefix: str, texts: list[str], **values: Any) -> None:
    write(project, part, [sample(k, sample_id=f"{prefix}{k}", text=text, **values) for k, text in enumerate(texts)])


MARKS = [  # each pair differs by marks alone
    ("किताब कताब कि की हिंदी हिदी", "किताब किताब कि कि हिंदी हिंदी"),
    ("มา ม้า ที่ ที เสือ เสื้อ", "ม้า ม้า ที่ ที่ เสื้อ เสื้อ"),
    ("عِلم عَلَم كَتَبَ كُتِبَ", "عَلَم عَلَم كُتِبَ كُتِبَ"),
]
CHINESE = [
    "今天上午市政府召开发布会，介绍老城区改造工程的最新进展。负责人表示，预计明年春天完工，居民可以搬回新居。",
    "昨天下午学校举行运动会，来自各个年级的学生参加了比赛，老师和家长们在看台上为他们加油，气氛非常热烈。",
]
BAD = [
    " \n\t", "word " * 100_000, "word " * 100_001, "x" * 1_000_000, "\x00" * 20, "\ufffd" * 20, "e" + "\u0301" * 5000,
    "😀 " * 50, "\U0010ffff " * 50, "1 2 3 4 5 6 7 8", "9 8 7 6 5 4 3 2", "a b c d e f g h i\r\nj",
    "\ufeffA B C D E F G H I J",
]  # fmt: skip


def test_odd_texts_of_every_script_are_values_and_nothing_is_lost(tmp_path: Path) -> None:
    project = empty_project(tmp_path)
    written_apart(project, "part-aa-0000.parquet", "m", [f"{text} " * 8 for pair in MARKS for text in pair])
    chinese = [*CHINESE, CHINESE[0].replace("春天", "夏天"), CHINESE[1].replace("，", " ")]
    written_apart(project, "part-bb-0000.parquet", "c", chinese)
    written_apart(project, "part-cc-0000.parquet", "b", BAD)
    captions = {"modality": "image", "images": [PICTURE]}
    written_apart(project, "part-dd-0000.parquet", "p", [BASE[0], edited(BASE[0], 5)], **captions)
    written_apart(project, "part-ee-0000.parquet", "t", [edited(BASE[0], 9)])
    dedup.run(project)
    found = lost(project)
    assert {s: found.get(s) for s in ("c2", "c3", "b2", "b9", "b12")} == {
        "c2": ("c0", "duplicate_near"), "c3": ("c1", "duplicate_exact"), "b2": ("b1", "duplicate_near"),
        "b9": ("b10", "duplicate_exact"), "b12": ("b11", "duplicate_exact"),
    }  # fmt: skip
    assert not [s for s in found if s[0] in "mpt"], "marks tell words apart, and pictures captions"
    assert metrics(project)["inputs"] == len(table(project)) == 6 + 4 + len(BAD) + 3


def test_real_texts_lose_their_edited_copies_alone(tmp_path: Path, shared: Path) -> None:
    texts = [t for _, t in real(shared / "text_en/news_lee_abc.jsonl", 60) if t and len(t.split()) > 80]
    project = build(tmp_path, 16, texts=[*texts, *(edited(t, 40) for t in texts)])
    dedup.run(project)
    pairs = [(f"s{k:02d}", f"s{k + len(texts):02d}") for k in range(len(texts))]
    found = lost(project)
    assert all(reason == "duplicate_near" for _, reason in found.values())
    assert sum(one in found or other in found for one, other in pairs) >= 0.95 * len(pairs)
    assert sum(found.get(a, [""])[0] == b or found.get(b, [""])[0] == a for a, b in pairs) >= 0.9 * len(pairs)
