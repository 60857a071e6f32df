"""Gathering by reference: row groups, unpacked parts, and what is refused."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import planned

from scoring.core.errors import DataError
from transforms.core import parts, schemas
from transforms.shard import transform as shard
from transforms.shard.config import ShardConfig


@pytest.mark.parametrize(
    ("sizes", "spans"),
    [
        ([], []),
        ([5], [(0, 1)]),
        ([50], [(0, 1)]),
        ([5, 5], [(0, 2)]),
        ([5, 6], [(0, 1), (1, 2)]),
        ([0, 0, 0], [(0, 3)]),
        ([50, 1, 50, 1], [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ([3, 3, 3, 3, 3, 3, 3], [(0, 3), (3, 6), (6, 7)]),
    ],
)
def test_row_groups_by_hand(sizes: list[int], spans: list[tuple[int, int]]) -> None:
    assert shard.row_groups(sizes, 10) == spans


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 40))
def test_row_groups_hold_every_row_once_within_the_limit(sizes: list[int], limit: int) -> None:
    spans = shard.row_groups(sizes, limit)
    assert [row for start, end in spans for row in range(start, end)] == list(range(len(sizes)))
    for start, end in spans:
        assert sum(sizes[start:end]) <= limit or end - start == 1
        if end < len(sizes):
            assert sum(sizes[start : end + 1]) > limit


@pytest.mark.parametrize(
    ("number", "count", "wanted"),
    [(0, 1, "shard-00000.parquet"), (99_999, 100_000, "shard-99999.parquet"), (7, 100_001, "shard-000007.parquet")],
)
def test_names_sort_as_their_numbers(number: int, count: int, wanted: str) -> None:
    assert shard.shard_name(number, count) == wanted


@pytest.mark.parametrize("size", [0, 2**30 + 1])
def test_row_groups_that_cannot_be_read_back_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="row_group_bytes"):
        ShardConfig(row_group_bytes=size)


def spec(rows: list[tuple[int, str, str]]) -> pa.RecordBatch:
    """Returns the spec of (rank, sample_id, part) rows."""
    n = len(rows)
    columns = {
        "rank": pa.array([r for r, _, _ in rows], pa.int64()), "sample_id": pa.array([s for _, s, _ in rows]),
        "part": pa.array([p for _, _, p in rows]), "row": pa.array([0] * n, pa.int32()),
        "band": pa.array(["base"] * n), "tokens": pa.array([3] * n), "flops": pa.array([1.0] * n),
        "bytes": pa.array([9] * n), "score": pa.array([None] * n, pa.float64()),
    }  # fmt: skip
    return pa.record_batch(columns)


def unpacked(folder: Path, name: str, ids: list[str], ranks: list[int], rows: list[int]) -> None:
    """Writes a part of samples `ids`, of which `rows` are planned at `ranks`."""
    columns = {f"{f}.{c}": pa.nulls(len(ids)) for f, cs in shard.READS.items() for c in cs}
    columns["clean.clean_text"] = pa.array([f"text of {i}" for i in ids])
    columns["samples.images"] = pa.array([[{"bytes": i.encode(), "path": None}] for i in ids])
    batch = pa.record_batch({"sample_id": pa.array(ids), **columns})
    found = shard.unpack(batch, pa.array(rows), pa.array(ranks))
    shard._write_arrow(str(folder / f"{name}.arrow"), found)


def test_rows_of_many_parts_come_in_the_order_of_their_ranks(tmp_path: Path) -> None:
    unpacked(tmp_path, "p", ["a", "b", "c", "d"], ranks=[0, 4, 6, 9], rows=[2, 0, 3, 1])
    unpacked(tmp_path, "q", ["e", "f"], ranks=[5, 7], rows=[1, 0])
    found = shard.gather(spec([(4, "a", "p"), (5, "f", "q"), (6, "d", "p"), (7, "e", "q")]), tmp_path)
    assert found.schema.names == schemas.SHARDS.names
    assert found["sample_id"].to_pylist() == ["a", "f", "d", "e"]
    assert found["text"].to_pylist() == ["text of a", "text of f", "text of d", "text of e"]
    assert [r[0]["bytes"] for r in found["images"].to_pylist()] == [b"a", b"f", b"d", b"e"]
    assert found["tokens"].to_pylist() == [3] * 4
    assert found["score"].to_pylist() == [None] * 4


@pytest.mark.parametrize(
    "wrong",
    [
        [(4, "a", "p"), (5, "b", "p")],  # another rank stands there
        [(4, "b", "p")],  # another sample
        [(4, "a", "gone")],  # no such part
    ],
)
def test_a_plan_that_does_not_fit_its_parts_is_refused(tmp_path: Path, wrong: list[tuple[int, str, str]]) -> None:
    unpacked(tmp_path, "p", ["a", "b"], ranks=[4, 6], rows=[0, 1])
    with pytest.raises(DataError, match="remedy"):
        shard.gather(spec(wrong), tmp_path)


def test_the_digest_of_a_spec_sees_every_column() -> None:
    rows = [(4, "a", "p"), (5, "f", "q")]
    digests = {shard.spec_digest(spec(rows))}
    for name in shard.SPEC:
        batch = spec(rows)
        other = ["x", "y"] if pa.types.is_string(batch[name].type) else [7, 8]
        digests.add(
            shard.spec_digest(batch.set_column(batch.schema.names.index(name), name, pa.array(other, batch[name].type)))
        )
    assert len(digests) == 1 + len(shard.SPEC)
    assert shard.spec_digest(spec([(0, "z", "z"), *rows]).slice(1)) == shard.spec_digest(spec(rows))


def test_slices_of_the_plan_are_its_shards(tmp_path: Path) -> None:
    table = pa.table({"shard": pa.array([0, 0, 1, 2, 2, 2, 3], pa.int32()), "rank": range(7)})
    with pq.ParquetWriter(tmp_path / "plan.parquet", table.schema) as writer:
        writer.write_table(table.slice(0, 3))
        writer.write_table(table.slice(3))
    found = list(shard.plan_slices(tmp_path / "plan.parquet", ["rank"]))
    assert [(g, s, b["rank"].to_pylist()) for g, s, b in found] == [
        (0, 0, [0, 1]), (0, 2, [2]), (1, 0, [3, 4, 5]), (1, 3, [6])
    ]  # fmt: skip


def test_elements_have_coders_of_their_own() -> None:
    """Nothing that travels is pickled row by row: names, tasks and parts of keys."""
    import apache_beam as beam
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    pipeline = beam.Pipeline(runner=FnApiRunner())
    task = shard.ShardTask("shard-00000.parquet", "f", 0, 0, 0, 1)
    tasks = pipeline | beam.Create([task]).with_output_types(shard.ShardTask)
    written = tasks | shard.WriteShards(Path("plan"), Path("unpacked"), Path("out"), ShardConfig(row_group_bytes=9))
    names = pipeline | "Names" >> beam.Create(["a"]).with_output_types(str) | shard.UnpackParts(Path("d"), Path("u"))
    assert (written.element_type, names.element_type) == (parts.Receipt, str)
    assert tasks.element_type is shard.ShardTask


def test_a_plan_older_than_its_parts_is_refused(tmp_path: Path) -> None:
    project = planned.write(tmp_path, planned.rows(20), part_rows=10)
    name = parts.names(project.folder("samples"))[0]
    target = tmp_path / "unpacked"
    target.mkdir()
    pq.write_table(pa.table({"part": [name], "row": [10], "rank": [0]}), target / shard.ROUTES)
    with pytest.raises(DataError, match="older than the parts"):
        shard.UnpackParts(project.data, target)._unpack(name)
