"""The Hugging Face `datasets` features of our columns, so that it yields pictures and sound."""

import json
from typing import TypedDict

import pyarrow as pa

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])  # and sound
AUDIO_RATE_HZ = 16_000


class Blob(TypedDict):
    """A picture or sound as a column of `IMAGE` holds it."""

    bytes: bytes  # null where only the path is known
    path: str | None


def _hf_value(kind: pa.DataType) -> object:
    if kind == IMAGE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return {"feature": _hf_value(kind.value_type), "_type": "List"}
    names = {pa.float64(): "float64", pa.float32(): "float32", pa.bool_(): "bool"}
    return {"dtype": names.get(kind, str(kind)), "_type": "Value"}


def with_features(schema: pa.Schema) -> pa.Schema:
    """Returns `schema` with Hugging Face `Features` metadata, so `datasets` yields pictures and sound."""
    features = {f.name: _hf_value(f.type) for f in schema}
    if "audio" in features:
        features["audio"] = {"sampling_rate": AUDIO_RATE_HZ, "_type": "Audio"}
    return schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}})})
