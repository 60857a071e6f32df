"""The bytes of an Arrow string array, in the form kernels take."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from scoring.core.arrays import Array


class Buffers(NamedTuple):
    """UTF-8 bytes (b,) uint8, (n + 1,) int64 offsets into them, (n,) bool which rows are not null.

    A null row may have bytes that mean nothing. All are read-only: what files and computed arrays give differs in
    that, and a kernel is compiled for each kind of array that it gets.
    """

    data: Array
    offsets: Array
    valid: Array


def buffers(texts: pa.LargeStringArray) -> Buffers:
    """Returns views of the buffers of `texts`, also where it is a slice; nothing is copied."""
    valid = np.array(texts.is_valid())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets if offsets and len(texts) else bytes(8), np.int64)
    found = ends[texts.offset if len(texts) else 0 :][: len(texts) + 1]
    chars = np.frombuffer(data if data and data.size else b"", np.uint8)
    for each in (chars, found, valid):
        each.setflags(write=False)
    return Buffers(chars, found, valid)


def own_buffers(texts: pa.LargeStringArray) -> Buffers:
    """Returns the same with the bytes of `texts` alone, where it is a slice of more."""
    data, offsets, valid = buffers(texts)
    places = offsets - offsets[0]
    places.setflags(write=False)
    return Buffers(data[offsets[0] : offsets[-1]], places, valid)
