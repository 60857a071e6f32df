"""Units: names that depend on content alone, pieces of long files, groups that a new file hardly moves."""

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reading import source

from transforms.ingest import units
from transforms.ingest.named_media import media_digest
from transforms.ingest.units import SourceFile, Unit, plan
from transforms.readers.base import Extent

LIMIT = 1 << 20
ROW = b'{"text": "a"}\n{"text": "b"}\n'


def write(root: Path, **files: bytes | str) -> None:
    for name, data in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


def planned(root: Path, *paths: str, **keys: Any) -> list[Unit]:
    return plan(root, source(paths=paths, **keys), LIMIT)


def test_files_of_rows_are_units_and_files_of_one_sample_are_grouped(tmp_path: Path) -> None:
    write(tmp_path, raw__a_DOT_jsonl=ROW, raw__b_DOT_txt="words", raw__c_DOT_html="<html>", raw__d_DOT_jsonl=b"",
          raw__e_DOT_csv="text\na\n", raw__f_DOT_png=b"\x89PNG\r\n\x1a\n")  # fmt: skip
    found = [[(Path(f.uri).name, f.reader) for f in u.files] for u in planned(tmp_path, "raw")]
    assert sorted(found, key=len) == [
        [("a.jsonl", "jsonl")],
        [("e.csv", "csv")],
        [("b.txt", "text"), ("c.html", "html"), ("d.jsonl", "empty_file"), ("f.png", "media")],
    ]
    paragraphs = planned(tmp_path, "raw/b.txt", whole_file=False)
    assert [u.files[0].reader for u in paragraphs] == ["text"]


def test_what_cannot_be_opened_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.txt")
    [unit] = planned(tmp_path, "*.txt")
    assert [(f.reader, f.digest, bool(f.error)) for f in unit.files] == [
        ("unreadable_file", "", True), ("unsupported_format", "", True),
    ]  # fmt: skip
    assert all(f.is_fault for f in unit.files)


def test_a_name_depends_on_the_content_and_not_on_the_place(tmp_path: Path) -> None:
    write(tmp_path, one__raw__a_DOT_jsonl=ROW, two__raw__a_DOT_jsonl=ROW)
    first, second = (planned(tmp_path / p, "raw/*.jsonl")[0] for p in ("one", "two"))
    assert first.name == second.name
    assert first.part(7) == f"part-{first.digest[:16]}-0007.parquet"
    write(tmp_path, two__raw__a_DOT_jsonl=ROW + ROW)
    assert planned(tmp_path / "two", "raw/*.jsonl")[0].name != first.name
    assert planned(tmp_path / "one", "raw", name="other")[0].name != first.name


def test_json_and_back() -> None:
    unit = Unit("s", (SourceFile("a\udcff", "d", "media", 7, True, "e"),), 3, None, "m")
    assert Unit.from_json(unit.to_json()) == unit


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_long_files_are_cut_where_they_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    import gzip

    monkeypatch.setattr(units, "PIECE_BYTES", 100)
    rows = b"".join(b'{"text": "%d"}\n' % random.Random(k).getrandbits(64) for k in range(30))
    if name.endswith("parquet"):
        pq.write_table(pa.table({"text": [str(k) for k in range(30)]}), tmp_path / name, row_group_size=10)
    else:
        (tmp_path / name).write_bytes(gzip.compress(rows) if name.endswith("gz") else rows)
    found = planned(tmp_path, name)
    bounds = [(u.start, u.end) for u in found]
    if found[0].files[0].packed:
        assert bounds == [(0, None)]
    else:
        assert len(bounds) > 2
        assert bounds[0][0] == 0
        assert bounds[-1][1] is None
        assert [a for a, _ in bounds[1:]] == [b for _, b in bounds[:-1]]
    assert len({u.name for u in found}) == len(found)


def group(files: Sequence[str], size: int = 1) -> list[list[str]]:
    found = [SourceFile(f, "d", "media", size) for f in sorted(files)]
    return [[f.uri for f in u.files] for u in units._groups(source(), found)]


@given(st.sets(st.integers(0, 5000), max_size=400), st.integers(0, 5000))
@settings(max_examples=50, deadline=None)
def test_a_new_file_changes_one_group(numbers: set[int], new: int) -> None:
    before = {tuple(g) for g in group([f"{n:05d}.jpg" for n in numbers])}
    after = {tuple(g) for g in group([f"{n:05d}.jpg" for n in numbers | {new}])}
    assert len(before - after) <= 1
    assert len(after - before) <= 2
    assert sorted(f for g in after for f in g) == sorted(f"{n:05d}.jpg" for n in numbers | {new})


def test_groups_are_bounded_in_bytes() -> None:
    names = [f"{n:05d}.mp4" for n in range(300)]
    sizes = [len(g) for g in group(names, units.GROUP_BYTES // 4)]
    assert max(sizes) == 4
    assert sum(sizes) == 300
    assert len(group(names)) < 20


def digest(root: Path, name: str, reader: str, **keys: Any) -> str | None:
    return media_digest(Extent(root, root / name, source(**keys), LIMIT), name, reader)


@pytest.mark.parametrize("reader", ["jsonl", "json", "csv", "parquet", "messages"])
def test_a_changed_picture_changes_the_unit_of_its_rows(tmp_path: Path, reader: str) -> None:
    keys: dict[str, Any] = {}
    if reader == "parquet":
        pq.write_table(pa.table({"text": ["a"], "image": ["pics/a.jpg"]}), tmp_path / "f")
    elif reader == "csv":
        write(tmp_path, f="text,image\na,pics/a.jpg\n")
    elif reader == "messages":
        keys = {"columns": {"text": "talk"}}
        write(tmp_path, f='{"talk": [{"role": "user", "content": [{"type": "image", "image": "pics/a.jpg"}]}]}')
    else:
        write(
            tmp_path, f='{"text": "a", "images": ["pics/a.jpg"]}' if reader == "jsonl" else '[{"image": "pics/a.jpg"}]'
        )
    kind = "jsonl" if reader == "messages" else reader
    missing = digest(tmp_path, "f", kind, **keys)
    write(tmp_path, pics__a_DOT_jpg=b"one")
    one = digest(tmp_path, "f", kind, **keys)
    write(tmp_path, pics__a_DOT_jpg=b"two")
    two = digest(tmp_path, "f", kind, **keys)
    assert None not in (missing, one, two)
    assert len({missing, one, two}) == 3
    (tmp_path / "elsewhere/pics").mkdir(parents=True)
    write(tmp_path, elsewhere__pics__a_DOT_jpg=b"one")
    assert digest(tmp_path, "f", kind, media_root="elsewhere", **keys) == one


@pytest.mark.parametrize(
    "data", [ROW, b'{"text": "an \\"image\\" of words"}', b"rubbish", b'{"image": 7}', b'{"image": null}']
)
def test_rows_without_media_hang_on_no_decoder(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    assert digest(tmp_path, "f", "jsonl") is None


def test_embedded_pictures_are_media(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a"], "image": [b"raw"]}), tmp_path / "f")
    assert digest(tmp_path, "f", "parquet") is not None
    (tmp_path / "g").write_bytes(b"PAR1 damaged")
    assert digest(tmp_path, "g", "parquet") is None


def test_a_data_set_is_the_files_that_it_is_made_of(tmp_path: Path) -> None:
    write(tmp_path, rows_DOT_jsonl=ROW, set__a_DOT_jsonl=ROW)
    keys = {"format": "huggingface", "kwargs": {"data_files": "rows.jsonl"}}
    [by_name] = planned(tmp_path, "json", **keys)
    assert by_name.files[0].uri == "json"
    [by_folder] = planned(tmp_path, "set", format="huggingface")
    assert (by_folder.files[0].uri, by_folder.files[0].reader) == ("set", "huggingface")
    write(tmp_path, rows_DOT_jsonl=ROW + ROW)
    assert planned(tmp_path, "json", **keys)[0].name != by_name.name
    assert planned(tmp_path, "set", format="huggingface", split="test")[0].name != by_folder.name
