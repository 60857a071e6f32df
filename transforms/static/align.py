"""The alignment of the rows that have a caption and a picture."""

import io
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from PIL import Image

from scoring.static.alignment import Aligner, cosines
from scoring.static.pictures import MAX_FRAMES
from transforms.static.media import Payload, spread

MODALITIES = ("image", "video")
DIGITS = 5  # below it, a cosine depends on how batches and threads split the sums

Floats = npt.NDArray[np.float64]


def alignments(batch: pa.RecordBatch, rows: Sequence[int], aligner: Aligner) -> dict[int, float]:
    """Returns row → mean cosine of its caption and its picture or frames, for those of `rows` that have both."""
    found: dict[int, float] = {}
    captions = {row: text for row in rows if (text := _caption(batch, row))}
    if not captions:
        return found
    owners: list[int] = []
    places = {row: k for k, row in enumerate(captions)}
    pictures = aligner.pictures(_pictures(batch, places, owners))
    texts = aligner.texts(list(captions.values()))
    values = cosines(texts, pictures, owners)
    return {row: round(float(values[k]), DIGITS) for row, k in places.items() if not np.isnan(values[k])}


def _caption(batch: pa.RecordBatch, row: int) -> str:
    if batch["samples.modality"][row].as_py() not in MODALITIES:
        return ""
    return (batch["clean.clean_text"][row].as_py() or "").strip()


def _pictures(batch: pa.RecordBatch, places: Mapping[int, int], owners: list[int]) -> Iterator[Image.Image]:
    """Yields the pictures of the rows that can be read, and appends to `owners` the place of each one's row."""
    for row, place in places.items():
        payloads = batch["samples.images"][row].as_py() or []
        frames = MAX_FRAMES if batch["samples.modality"][row].as_py() == "video" else 1
        for payload in spread(payloads, frames):
            picture = _picture(payload)
            if picture is not None:
                owners.append(place)
                yield picture


def _picture(payload: Payload) -> Image.Image | None:
    data = payload["bytes"] if payload else None
    if not data:
        return None
    try:
        with Image.open(io.BytesIO(data)) as picture:
            return picture.convert("RGB")
    except (OSError, Image.DecompressionBombError):
        return None
