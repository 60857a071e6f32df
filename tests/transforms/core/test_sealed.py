"""Seals: every byte of a file is covered, other readers see plain Parquet, and files without one read as before."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoring.core.errors import DataError
from transforms.core import arrow_files, sealed


def table(rows: int) -> pa.Table:
    return pa.table({
        "sample_id": pa.array([f"s{k}" for k in range(rows)], pa.string()),
        "x": pa.array([k / 7 for k in range(rows)], pa.float64()),
        "lists": pa.array([[k] * (k % 3) for k in range(rows)], pa.list_(pa.int64())),
        "structs": pa.array([{"a": k, "b": None} for k in range(rows)], pa.struct({"a": pa.int64(), "b": pa.string()})),
    })  # fmt: skip


def write(path: Path, rows: int = 50) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    sealed.write_table(table(rows), str(path), compression="zstd")
    return path.read_bytes()


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_a_sealed_file_is_plain_parquet_to_others(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "clean" / "part-a-0000.parquet"
    write(path, rows)
    assert sealed.check(path)
    assert sealed.read_table(path).equals(table(rows))
    assert pq.read_table(path, page_checksum_verification=True).equals(table(rows))
    assert duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table().num_rows == rows


def test_every_bit_of_a_small_file_is_covered(tmp_path: Path) -> None:
    path = tmp_path / "clean" / "part-a-0000.parquet"
    whole = write(path, 2)
    for place in range(len(whole)):
        bit = 1 << place % 8
        path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        with pytest.raises(DataError, match=r"(?s)damaged file.*part-a-0000.*gradsift run clean"):
            sealed.check(path)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "samples" / "part-a-0000.parquet"
    whole = write(path, 2)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"(?s)damaged file.*gradsift run ingest"):
            sealed.check(path)


def test_bytes_put_between_pages_and_seal_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "clean" / "part-a-0000.parquet"
    whole = write(path)
    path.write_bytes(whole[:4] + b"\0" + whole[4:])
    with pytest.raises(DataError, match="damaged file"):
        sealed.check(path)


def test_a_read_compares_the_columns_that_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "clean" / "part-a-0000.parquet"
    whole = bytearray(write(path))
    column = pq.read_metadata(path).row_group(0).column(1)
    whole[column.dictionary_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(whole)
    assert sealed.read_table(path, ["sample_id", "lists"]).num_rows == 50
    with pytest.raises(DataError, match="its bytes are not those that were written"):
        sealed.read_table(path, ["x"])


def test_page_checksums_stand_in_the_pages(tmp_path: Path) -> None:
    path = tmp_path / "clean" / "part-a-0000.parquet"
    whole = bytearray(write(path))
    column = pq.read_metadata(path).row_group(0).column(1)
    whole[column.dictionary_page_offset + column.total_compressed_size - 3] ^= 1
    path.write_bytes(whole)
    with pytest.raises(OSError, match=r"(?i)crc"):
        pq.read_table(path, columns=["x"], page_checksum_verification=True)


def test_a_file_without_a_seal_reads_as_before(tmp_path: Path) -> None:
    path = tmp_path / "part-a-0000.parquet"
    pq.write_table(table(5), path)
    assert not sealed.check(path)
    assert sealed.read_table(path, ["x"]).num_rows == 5


def test_a_file_rewritten_by_another_tool_has_lost_its_seal(tmp_path: Path) -> None:
    path = tmp_path / "clean" / "part-a-0000.parquet"
    write(path)
    found = pq.read_table(path)
    pq.write_table(found, path)
    with pytest.raises(DataError, match="its seal is broken"):
        sealed.check(path)


def test_no_file_and_no_permission_are_no_damage(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)no such file.*gradsift run dedup"):
        sealed.check(tmp_path / "dedup" / "part-a-0000.parquet")
    (tmp_path / "plan").mkdir()
    with pytest.raises(DataError, match=r"(?s)cannot read a file.*check its permissions"):
        sealed.check(tmp_path / "plan")


@pytest.mark.parametrize(("path", "stage"), [
    ("data/samples/p", "ingest"), ("data/rejects/p", "ingest"), ("data/shards/s", "shard"),
    ("data/clean/lines/p", "clean"), ("home/clean/data/quality/also/p", "quality"), ("data/static/raw/p", "static"),
    ("other/p", ""),
])  # fmt: skip
def test_the_stage_that_writes_a_file(path: str, stage: str) -> None:
    assert sealed.stage_of(Path(path)) == stage


def test_an_arrow_file_of_other_bytes_has_no_record(tmp_path: Path) -> None:
    path = tmp_path / "dedup" / "part.arrow"
    arrow_files.write(path, table(9).combine_chunks().to_batches()[0], fingerprint="f")
    whole = path.read_bytes()
    assert arrow_files.recorded(path) == {"fingerprint": "f"}
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert arrow_files.recorded(path) == {}, place
