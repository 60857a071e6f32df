"""The features of a text that the quality head uses beside the embedding: values of `clean` and more; never length."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from scoring.quality import text_values
from transforms.clean.config import CleanConfig
from transforms.clean.transform import Tools, clean_batch, samples_of
from transforms.core.parts import floats
from transforms.core.schemas import CLEAN_EXTRA, CLEAN_RATIOS

Floats = npt.NDArray[np.float64]

_RATIOS = ("language_score", *CLEAN_RATIOS, *CLEAN_EXTRA)
_PER_WORD = ("nonsymbol_words", "stop_words", "c4_sentences", "c4_citations", "pii_count")
_PER_LINE = ("words", "c4_sentences", "c4_open_lines", "c4_short_lines", "c4_policy_lines")

NAMES = (
    *_RATIOS,
    *(f"{name}_per_word" for name in _PER_WORD),
    *(f"{name}_per_line" for name in _PER_LINE),
    *text_values.NAMES,
)
COLUMNS = ("language", *dict.fromkeys((*_RATIOS, "words", "lines", *_PER_WORD, *_PER_LINE)))  # of clean that are read

_CHUNK_ROWS = 512


def values(batch: pa.RecordBatch, texts: Sequence[str | None]) -> Floats:
    """Returns (n, NAMES) of a batch with `clean.` and COLUMNS, and its clean texts; NaN for missing values."""
    found = {name: floats(batch[f"clean.{name}"]) for name in COLUMNS if name != "language"}
    with np.errstate(divide="ignore", invalid="ignore"):
        words, lines = (np.where(found[n] > 0, found[n], np.nan) for n in ("words", "lines"))
        columns = [found[n] for n in _RATIOS]
        columns += [found[n] / words for n in _PER_WORD] + [found[n] / lines for n in _PER_LINE]
    english = [language == "en" for language in batch["clean.language"].to_pylist()]
    own = text_values.text_values([text or "" for text in texts], english)
    return np.column_stack([*columns, own])


def of_texts(texts: Sequence[str], config: CleanConfig, tools: Tools) -> "Told":
    """Returns the features of texts that are in no part, cleaned as params say."""
    found = Told(np.zeros((0, len(NAMES))), [], [])
    for start in range(0, len(texts), _CHUNK_ROWS):
        batch = clean_batch(samples_of(texts[start : start + _CHUNK_ROWS], "learned"), config, tools)
        clean_texts = [text or "" for text in batch["clean_text"].to_pylist()]
        named = pa.record_batch({f"clean.{n}": batch[n] for n in batch.schema.names})
        found.texts.extend(clean_texts)
        found.languages.extend(language or "" for language in batch["language"].to_pylist())
        found = found._replace(values=np.concatenate([found.values, values(named, clean_texts)]))
    return found


class Told(NamedTuple):
    """The features of n texts."""

    values: Floats  # (n, NAMES)
    texts: list[str]  # clean
    languages: list[str]  # "" for a text without words
