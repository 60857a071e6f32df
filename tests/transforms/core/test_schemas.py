"""Schemas: the Hugging Face metadata is what `datasets` itself would write."""

import json

import pytest

from transforms.core import schemas


@pytest.mark.parametrize("name", ["SAMPLES", "SHARDS"])
def test_features_metadata_is_what_datasets_reads(name: str) -> None:
    from datasets import Audio, Features, Image

    schema = getattr(schemas, name)
    features = Features.from_arrow_schema(schema)
    assert isinstance(features["images"].feature, Image)
    assert isinstance(features["audio"], Audio)
    assert features["audio"].sampling_rate == 16_000
    assert features["text"].dtype == "large_string"
    stored = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert set(stored) == set(schema.names)
    assert features.arrow_schema.types == schema.types


def test_every_sidecar_begins_with_the_sample_id() -> None:
    assert all(s.names[0] == "sample_id" for s in schemas.PARTS.values())
