"""Counts the tokens, the training FLOPs and the bytes of each sample.

Definitions: docs/quality.md. A row that clean dropped has none.
"""

import io
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.errors import DataError
from scoring.models import encoding
from scoring.models import load as models
from scoring.models.types import Tokenizer
from scoring.order import cost
from scoring.order.cost_config import TokensConfig
from transforms.core import schemas
from transforms.core.models import MapWithModel
from transforms.core.parts import Part, all_kept

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Every column of the samples: `bytes` counts them all.
READS = {"samples": [n for n in schemas.SAMPLES.names if n != "sample_id"], "clean": ["clean_text", "kept"]}


def decoded_bytes(array: pa.Array) -> Ints:
    """Returns (n,) bytes that the values of each row of `array` take in memory; offsets are not counted."""
    kind = array.type
    if pa.types.is_struct(kind):
        return sum((decoded_bytes(child) for child in array.flatten()), np.zeros(len(array), np.int64))
    if pa.types.is_list(kind):
        return _list_sums(array, decoded_bytes(array.flatten()))
    if pa.types.is_primitive(kind):
        return np.full(len(array), max(1, kind.bit_width // 8), np.int64)
    return _ints(pc.binary_length(array))


def _ints(array: pa.Array) -> Ints:
    return np.asarray(pc.fill_null(array, 0).to_numpy(zero_copy_only=False), np.int64)


def _list_sums(lists: pa.Array, values: Ints) -> Ints:
    """Returns (n,) for each list of `lists` the sum of its items' `values`."""
    ends = np.cumsum(_ints(pc.list_value_length(lists)))
    sums = np.concatenate([[0], np.cumsum(values)])
    return np.diff(sums[ends], prepend=0).astype(np.int64)


def count_batch(batch: pa.RecordBatch, config: TokensConfig, tokenizer: Tokenizer) -> pa.RecordBatch:
    """Returns the `tokens/raw` sidecar of a batch with the columns of `READS`."""
    kept = all_kept(batch)
    alive = np.asarray(kept.to_numpy(zero_copy_only=False), bool)
    modality = batch["samples.modality"].to_numpy(zero_copy_only=False)
    counts = {
        "text_tokens": _text_tokens(batch["clean.clean_text"], alive, tokenizer),
        "image_tokens": _image_tokens(batch, config, alive & np.isin(modality, ("image", "interleaved"))),
        "video_tokens": _video_tokens(batch, config, alive & (modality == "video")),
        "audio_tokens": _audio_tokens(batch, config, alive),
    }
    total = sum(counts.values(), np.zeros(batch.num_rows, np.int64))
    size = sum((decoded_bytes(batch[f"samples.{n}"]) for n in READS["samples"]), decoded_bytes(batch["sample_id"]))
    values = {**counts, "tokens": total, "flops": cost.flops(config.target, total), "bytes": size}
    nulled = {name: pc.if_else(kept, pa.array(value), None) for name, value in values.items()}
    return pa.record_batch({"sample_id": batch["sample_id"], **nulled})


def _text_tokens(texts: pa.Array, wanted: Bools, tokenizer: Tokenizer) -> Ints:
    found = np.zeros(len(texts), np.int64)
    rows = np.flatnonzero(wanted & (_ints(pc.binary_length(texts)) > 0))
    found[rows] = encoding.token_counts(tokenizer, texts.take(rows).to_pylist())
    return found


def _image_tokens(batch: pa.RecordBatch, config: TokensConfig, wanted: Bools) -> Ints:
    lists = batch["samples.images"]
    payloads = pc.struct_field(lists.flatten(), "bytes")  # `.field` forgets that a whole struct is null
    owners = np.repeat(np.arange(len(lists)), _ints(pc.list_value_length(lists)))
    there = np.asarray(payloads.is_valid().to_numpy(zero_copy_only=False), bool)
    found = np.zeros(len(payloads), np.int64)
    for k in np.flatnonzero(wanted[owners] & there).tolist():
        if config.image.scheme == "fixed":
            width, height = 0, 0
        else:
            width, height = _size(payloads[k].as_py(), where=batch["sample_id"][owners[k]].as_py())
        found[k] = cost.image_tokens(config.image, width, height)
    return _list_sums(lists, found)


def _size(payload: bytes, where: str) -> tuple[int, int]:
    """Returns width and height in pixels from the header of a stored picture."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(payload)) as image:
            return int(image.width), int(image.height)
    except UnidentifiedImageError as error:
        raise DataError(
            "a stored image has no header", where=f"sample {where}", remedy="rerun ingest: gradsift run ingest --force"
        ) from error


def _video_tokens(batch: pa.RecordBatch, config: TokensConfig, wanted: Bools) -> Ints:
    frames = _ints(pc.list_value_length(batch["samples.images"]))
    return np.array(
        [cost.video_tokens(config.video, int(n)) if w else 0 for n, w in zip(frames, wanted, strict=True)], np.int64
    )


def _audio_tokens(batch: pa.RecordBatch, config: TokensConfig, wanted: Bools) -> Ints:
    sound = pc.is_valid(pc.struct_field(batch["samples.audio"], "bytes")).to_numpy(zero_copy_only=False)
    seconds = pc.fill_null(batch["samples.duration_s"], 0.0).to_numpy(zero_copy_only=False)
    return np.array(
        [cost.audio_tokens(config.audio, s) if w else 0 for s, w in zip(seconds, wanted & sound, strict=True)], np.int64
    )


def add_complexity(batch: pa.RecordBatch, median: float | None) -> pa.RecordBatch:
    """Returns the `tokens` sidecar of a batch with the columns of `tokens/raw`."""
    columns = {n: batch["sample_id" if n == "sample_id" else f"tokens/raw.{n}"] for n in schemas.TOKENS_RAW.names}
    flops = columns["flops"]
    values = cost.complexity(flops.to_numpy(zero_copy_only=False), median)
    return pa.record_batch({**columns, "complexity": pc.if_else(flops.is_valid(), pa.array(values), None)})


@dataclass
class CountTokens(beam.PTransform):
    """Counts the tokens of parts of samples and clean into `tokens/raw`."""

    config: TokensConfig
    root: Path
    threads: int

    def expand(self, parts: beam.PCollection) -> beam.PCollection:
        load = partial(load_tokenizer, self.config.tokenizer, self.root, self.threads)
        return parts | "CountTokens" >> beam.ParDo(MapWithModel(load, self._count))

    def _count(self, part: Part, tokenizer: Tokenizer) -> Part:
        return part.with_batch(count_batch(part.batch, self.config, tokenizer))


def load_tokenizer(name: str, root: Path, threads: int) -> Tokenizer:
    """Returns the tokenizer `name`, which uses `threads` threads."""
    models.use_threads(threads)
    return models.load_tokenizer(name, root)


@dataclass
class AddComplexity(beam.PTransform):
    """Adds the cost of each row over the corpus' `median` to parts of `tokens/raw`."""

    median: float | None

    def expand(self, parts: beam.PCollection) -> beam.PCollection:
        return parts | "AddComplexity" >> beam.Map(self._add)

    def _add(self, part: Part) -> Part:
        return part.with_batch(add_complexity(part.batch, self.median))
