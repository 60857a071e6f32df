"""Parquet: every column type survives, row groups are pieces, damage is one fault."""

import datetime as dt
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.reading import extent, faults, read, source

from transforms.readers import parquet
from transforms.readers.base import Fault, Record
from transforms.readers.columns import Columns
from transforms.readers.fields import RowError, to_fields
from transforms.readers.parquet import read_parquet

MOMENT = dt.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=dt.UTC)

# (values of one column, what its JSON in meta is)
TYPES: list[tuple[pa.Array, str]] = [
    (pa.array([1], pa.int8()), "1"),
    (pa.array([18446744073709551615], pa.uint64()), "18446744073709551615"),
    (pa.array([1.5], pa.float32()), "1.5"),
    (pa.array([float("nan")]), '"NaN"'),
    (pa.array([float("-inf")]), '"-Infinity"'),
    (pa.array([None], pa.null()), "null"),
    (pa.array([True]), "true"),
    (pa.array([b"\x00\xff"]), '{"base64":"AP8="}'),
    (pa.array(["x"], pa.large_string()), '"x"'),
    (pa.array(["x"], pa.string_view()), '"x"'),
    (pa.array(["x"]).dictionary_encode(), '"x"'),
    (pa.array([MOMENT], pa.timestamp("us", "UTC")), '"2024-02-29 12:30:01.000005Z"'),
    (pa.array([2**55], pa.timestamp("ns")), '"1971-02-21 23:59:57.018963968"'),
    (pa.array([dt.date(1, 1, 1)]), '"0001-01-01"'),
    (pa.array([dt.time(1, 2, 3)]), '"01:02:03.000000"'),
    (pa.array([5], pa.duration("s")), '"5"'),
    (pa.array([Decimal("1.50")]), '"1.50"'),
    (pa.array([[1, None]]), "[1,null]"),
    (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), "[1,2]"),
    (pa.array([[[MOMENT.date()]]], pa.large_list(pa.list_(pa.date32()))), '[["2024-02-29"]]'),
    (pa.array([{"a": {"b": b"x"}, "d": Decimal("2")}]), '{"a":{"b":{"base64":"eA=="}},"d":"2"}'),
    (pa.array([[("k", MOMENT.date())]], pa.map_(pa.string(), pa.date32())), '[["k","2024-02-29"]]'),
    (pa.array(["a\0b"]), '"ab"'),
]


@pytest.mark.parametrize(("column", "expected"), TYPES, ids=lambda v: str(getattr(v, "type", "")))
def test_unmapped_columns_of_every_type_stay_in_meta(tmp_path: Path, column: pa.Array, expected: str) -> None:
    pq.write_table(pa.table({"text": ["t"], "c": column}), tmp_path / "f.parquet")
    [record] = read_parquet(extent(tmp_path / "f.parquet"))
    assert isinstance(record, Record)
    assert to_fields(record, Columns.of(source())).meta == '{"c":' + expected + "}"


def numbered(path: Path, rows: int = 10, group: int = 3) -> None:
    pq.write_table(pa.table({"text": [str(k) for k in range(rows)]}), path, row_group_size=group)


def test_row_groups_are_pieces(tmp_path: Path) -> None:
    numbered(tmp_path / "f")
    whole = [(k, {"text": str(k)}) for k in range(10)]
    assert read(read_parquet, tmp_path / "f") == whole
    bounds = parquet.piece_bounds(tmp_path / "f", 1)
    assert bounds == [0, 1, 2, 3]
    pieces = [read(read_parquet, tmp_path / "f", start=a, end=a + 1) for a in bounds]
    assert [row for piece in pieces for row in piece] == whole
    assert parquet.piece_bounds(tmp_path / "f", 1 << 30) == [0]


def test_a_needed_column_that_is_missing_is_one_fault_of_the_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"body": ["a", "b", "c"], "n": [1, 2, 3]}), tmp_path / "f", row_group_size=1)
    assert read(read_parquet, tmp_path / "f") == [(0, "missing_column")]
    assert read(read_parquet, tmp_path / "f", start=1) == []
    [fault] = faults(read_parquet, tmp_path / "f", columns={"text": "content"})
    assert fault.error == "no column 'content'; columns: body, n"


@pytest.mark.parametrize("damage", ["cut", "rubbish", "empty", "gone"])
def test_a_damaged_file_is_one_fault(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "f.parquet"
    numbered(path)
    data = {"cut": path.read_bytes()[:-20], "rubbish": b"PAR1" * 9, "empty": b"", "gone": None}[damage]
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    assert read(read_parquet, path) == [(0, "broken_parquet")]
    assert parquet.piece_bounds(path, 1) == [0]


def test_rows_before_a_damaged_row_group_stay(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    numbered(path)
    data = bytearray(path.read_bytes())
    at = pq.read_metadata(path).row_group(2).column(0).dictionary_page_offset
    data[at : at + 12] = b"\xff" * 12
    path.write_bytes(data)
    found = read(read_parquet, path)
    assert [p for p, _ in found[:-1]] == list(range(len(found) - 1))
    assert found[-1][1] == "broken_parquet"


def test_one_row_that_does_not_decode_is_one_fault(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"\xff", b"c"]).buffers())
    pq.write_table(pa.table({"text": bad}), tmp_path / "f")
    assert read(read_parquet, tmp_path / "f") == [(0, {"text": "a"}), (1, "bad_encoding"), (2, {"text": "c"})]


def test_names_of_media_are_read_without_their_bytes(tmp_path: Path) -> None:
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({
        "text": ["t"], "image": pa.array([{"bytes": b"x" * 1000, "path": "a.jpg"}], picture),
        "images": [["b.jpg", "c.jpg"]], "video": pa.array([b"raw"]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "f")
    [row] = parquet.media_rows(extent(tmp_path / "f"))
    assert row == {"image": {"path": "a.jpg"}, "images": ["b.jpg", "c.jpg"]}
    assert parquet.holds_media(extent(tmp_path / "f"))


def test_shared_files_never_raise(shared: Path) -> None:
    for path in sorted((shared / "parquet").glob("*.parquet")):
        names = pq.read_schema(path).names
        for name in names:
            found: list[Any] = read(read_parquet, path, columns={"text": name})
            assert len(found) == pq.read_metadata(path).num_rows
            assert all(isinstance(f, dict) for _, f in found)
            for position, fields in found:
                with suppress(RowError):
                    to_fields(Record(position, fields), Columns.of(source(columns={"text": name})))


def test_a_page_whose_checksum_is_wrong_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"row {k}" for k in range(500)]})
    pq.write_table(table, path, write_page_checksum=True, compression=None)
    path.write_bytes(path.read_bytes().replace(b"row 77", b"row 78", 1))
    assert [item.reason for item in read_parquet(extent(path)) if isinstance(item, Fault)] == ["broken_parquet"]
