"""Digests of columns: the same for the same values, however they lie in memory; others for other values."""

import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.core import schemas
from transforms.core.columns import column_digests

KINDS = [
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(max_size=5)),
    (pa.large_string(), st.text(max_size=5)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.binary(16), st.binary(min_size=16, max_size=16)),
    (pa.list_(pa.string()), st.lists(st.text(max_size=3) | st.none(), max_size=3)),
    (pa.list_(pa.float32()), st.lists(st.floats(width=32, allow_nan=False), max_size=3)),
    (
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        st.fixed_dictionaries({"bytes": st.binary(max_size=3) | st.none(), "path": st.text(max_size=3) | st.none()}),
    ),
]


def digest(values: pa.Array) -> str:
    return column_digests(pa.record_batch({"a": values}))["a"]


@pytest.mark.parametrize(("kind", "value"), KINDS, ids=lambda v: str(v)[:20])
@given(data=st.data())
def test_it_depends_on_the_values_alone(
    kind: pa.DataType, value: st.SearchStrategy[object], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(value | st.none(), max_size=6))
    other = data.draw(st.lists(value | st.none(), max_size=6))
    wanted = digest(pa.array(rows, kind))
    around = pa.array([*other, *rows, *other], kind)
    assert digest(around.slice(len(other), len(rows))) == wanted
    assert digest(around.take(pa.array(range(len(other), len(other) + len(rows)), pa.int64()))) == wanted
    if not pa.array(other, kind).equals(pa.array(rows, kind)):
        assert digest(pa.array(other, kind)) != wanted


def test_what_lies_in_null_slots_does_not_count() -> None:
    import numpy as np

    mask = np.array([False, True, False])
    left, right = (pa.array(np.array([1.0, garbage, 3.0]), mask=mask) for garbage in (7.0, 9.0))
    assert digest(left) == digest(right)


def test_it_survives_the_way_to_a_worker_and_back() -> None:
    batch = pa.RecordBatch.from_pylist([{"sample_id": "a", "text": None}, {"sample_id": "b", "text": "x"}])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    assert column_digests(pa.ipc.open_stream(sink.getvalue()).read_next_batch()) == column_digests(batch)


@pytest.mark.parametrize("name", sorted(schemas.PARTS))
def test_every_type_that_a_stage_writes_has_a_digest(name: str) -> None:
    schema = schemas.PARTS[name]
    empty = pa.record_batch([pa.array([], f.type) for f in schema], schema=schema)
    nulls = pa.record_batch([pa.nulls(2, f.type) for f in schema], schema=schema)
    assert column_digests(empty).keys() == set(schema.names)
    assert all(column_digests(nulls)[c] != d for c, d in column_digests(empty).items())


def test_a_type_is_a_value() -> None:
    assert digest(pa.array([1], pa.int32())) != digest(pa.array([1], pa.int64()))
    assert digest(pa.array(["a"], pa.string())) != digest(pa.array(["a"], pa.large_string()))
