"""The features of texts that are in no part: those that a quality head is trained on."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from transforms.clean.config import CleanConfig
from transforms.clean.transform import Tools, clean_batch, samples_of
from transforms.quality.values import NAMES, Floats, values

_CHUNK_ROWS = 512


class TextFeatures(NamedTuple):
    """The features of n texts."""

    values: Floats  # (n, NAMES)
    texts: list[str]  # clean
    languages: list[str]  # "" for a text without words


def of_texts(texts: Sequence[str], config: CleanConfig, tools: Tools) -> TextFeatures:
    """Returns the features of texts that are in no part, cleaned as params say."""
    found = TextFeatures(np.zeros((0, len(NAMES))), [], [])
    for start in range(0, len(texts), _CHUNK_ROWS):
        batch = clean_batch(samples_of(texts[start : start + _CHUNK_ROWS], "learned"), config, tools)
        clean_texts = [text or "" for text in batch["clean_text"].to_pylist()]
        named = pa.record_batch({f"clean.{n}": batch[n] for n in batch.schema.names})
        found.texts.extend(clean_texts)
        found.languages.extend(language or "" for language in batch["language"].to_pylist())
        found = found._replace(values=np.concatenate([found.values, values(named, clean_texts)]))
    return found
