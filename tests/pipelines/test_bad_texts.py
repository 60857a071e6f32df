"""Texts that nobody would write, from a file through clean and dedup: a value, a reason or a reject for each."""

import json
from typing import Any

import pytest
from support.builders import empty_project

from pipelines import clean, dedup, ingest
from pipelines.core.project import Project
from transforms.core import parts, schemas

GOOD = "The committee met on Monday to discuss the new budget, and most members agreed with that. " * 6
PLANES = "".join(
    chr((plane << 16) + offset) for plane in range(17) for offset in (0x41, 0x300, 0x1F600 & 0xFFFF, 0xE123)
)
LINES: dict[str, bytes] = {
    "good": json.dumps({"text": GOOD}).encode(),
    "empty": b'{"text": ""}',
    "white": json.dumps({"text": " \t\n\u3000\u200b "}).encode(),
    "null": b'{"text": null}',
    "ten megabytes": b'{"text": "' + b"abcde fghij " * 830_000 + b'"}',
    "one word": json.dumps({"text": "word " * 1_000_000}).encode(),
    "nul": b'{"text": "a\\u0000b"}',
    "surrogate": b'{"text": "a \\ud800 b"}',
    "bom": "\ufeff".encode() + json.dumps({"text": "\ufeffa b"}).encode(),
    "newlines": json.dumps({"text": "a\r\nb\rc\nd\u2028e\x0bf"}).encode(),
    "planes": json.dumps({"text": PLANES}, ensure_ascii=False).encode("utf-8", "replace"),
    "marks": json.dumps({"text": "कि की กา กี้ كَتَبَ كُتُب " * 20 + "e" + "\u0301" * 500}).encode(),
    "number": b'{"text": 12345}',
    "list": b'{"text": ["a", "b"]}',
    "twice": b'{"text": "the first", "text": "the second"}',
    "mojibake": json.dumps({"text": "thatâ€™s what she said"}).encode(),
    "broken": b'{"text": "no end',
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("bad")
    source = {"name": "odd", "paths": ["odd.jsonl"]}
    found = empty_project(root, ingest={"sources": [source], "max_reject_ratio": 1.0})
    (root / "odd.jsonl").write_bytes(b"\n".join(LINES.values()) + b"\n")
    for stage in (ingest, clean, dedup):
        stage.run(found)
    return found


def rows(project: Project, folder: str) -> list[dict[str, Any]]:
    columns = [c for c in schemas.PARTS[folder].names if c not in ("images", "audio")]
    names = parts.names(project.folder(folder))
    return [row for n in names for row in parts.read_part(project.folder(folder) / n, columns).to_pylist()]


def test_nothing_is_lost(project: Project) -> None:
    samples, rejects = rows(project, "samples"), rows(project, "rejects")
    assert len(samples) + len([r for r in rejects if not r["partial"]]) == len(LINES)
    assert {r["reason"] for r in rejects} == {"bad_json", "bad_value", "missing_column"} & {
        r["reason"] for r in rejects
    }
    for row in rows(project, "clean"):
        assert row["kept"] is (row["reasons"] == [])
        assert row["chars"] is None or row["chars"] >= 0


def test_each_has_the_value_that_it_should(project: Project) -> None:
    by_text = {row["clean_text"]: row for row in rows(project, "clean") if row["clean_text"] is not None}
    assert by_text[GOOD]["chars"] == len(GOOD)
    told = {"ab", "a \ufffd b", "a b", "a\nb\nc\nd\ne\nf", "12345", "a\nb", "the second", "that’s what she said"}
    assert told <= set(by_text)
    assert by_text["that’s what she said"]["mojibake_fixes"] == 1
    giants = [row for row in by_text.values() if row["chars"] > 4_000_000]
    assert [row["kept"] for row in giants] == [False, False]
    assert all("gopher_long_doc" in row["reasons"] for row in giants)


def test_a_second_run_changes_no_byte(project: Project) -> None:
    before = {p: p.read_bytes() for f in ("clean", "dedup") for p in project.folder(f).glob("part-*")}
    clean.run(project)
    dedup.run(project)
    assert before == {p: p.read_bytes() for p in before}
