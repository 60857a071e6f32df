"""The features of a text that the quality head uses beside the embedding: values of `clean` and more; never length."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from scoring.quality import text_values
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
NUMBERS = tuple(dict.fromkeys((*_RATIOS, "words", "lines", *_PER_WORD, *_PER_LINE)))  # of clean that are read
COLUMNS = ("language", *NUMBERS)


def values(batch: pa.RecordBatch, texts: Sequence[str | None]) -> Floats:
    """Returns (n, NAMES) of a batch with `clean.` and COLUMNS, and its clean texts; NaN for missing values."""
    found = {name: floats(batch[f"clean.{name}"]) for name in NUMBERS}
    return of_numbers(found, batch["clean.language"].to_pylist(), texts)


def of_numbers(found: Mapping[str, Floats], languages: Sequence[str | None], texts: Sequence[str | None]) -> Floats:
    """Returns `values` of NUMBERS → (n,) numbers, the languages, and the clean texts."""
    with np.errstate(divide="ignore", invalid="ignore"):
        words, lines = (np.where(found[n] > 0, found[n], np.nan) for n in ("words", "lines"))
        columns = [found[n] for n in _RATIOS]
        columns += [found[n] / words for n in _PER_WORD] + [found[n] / lines for n in _PER_LINE]
    english = [language == "en" for language in languages]
    own = text_values.text_values([text or "" for text in texts], english)
    return np.column_stack([*columns, own])
