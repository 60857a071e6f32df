"""The index of benchmark items as a file that workers map into memory."""

from pathlib import Path

import pyarrow as pa

from transforms.core import arrow_files
from transforms.core.columns import column_digests
from transforms.text.decontaminate.overlap import Index

_ARRAYS = ("hashes", "starts", "postings", "sizes", "lengths", "filter", "items")


def save_index(path: Path, index: Index, **record: object) -> None:
    """Writes `index` as an Arrow file of one row, a list per field, with a `record` for `arrow_files.recorded`.

    The record gets the digests of the arrays as `content`.
    """
    values = [v if isinstance(v, pa.Array) else pa.array(v) for v in (getattr(index, n) for n in _ARRAYS)]
    lists = [pa.LargeListArray.from_arrays(pa.array([0, len(v)], pa.int64()), v) for v in values]
    batch = pa.record_batch(lists, names=list(_ARRAYS))
    arrow_files.write(path, batch, **record, content=column_digests(batch))


def load_index(path: Path) -> Index:
    """Returns the index that `save_index` wrote: its arrays are mapped from the file, shared by all workers."""
    batch = arrow_files.read(path)
    values = {name: batch[name].values for name in _ARRAYS}
    return Index(**{n: v if n == "items" else v.to_numpy() for n, v in values.items()})
