"""Measure texts by the rules' kernels, under any variants."""

import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from transforms.text.rules.measure import Measured, measure


def config(
    gopher: str = "datatrove",
    repetition: str = "datatrove",
    c4: str = "tfds",
    least: int = 5,
    words: str = "characters",
) -> Any:
    """Returns what the kernels read of params."""
    space = types.SimpleNamespace
    return space(
        words=words,
        gopher=space(variant=gopher),
        repetition=space(variant=repetition),
        c4=space(variant=c4, min_line_words=least),
        fineweb=space(short_line_chars=30),
    )


def run(texts: Sequence[str | None], *, language: str | None = "en", settings: Any = None) -> Measured:
    """Returns the values of normalised texts, all judged."""
    array = pa.array(texts, pa.large_string())
    return measure(array, [language] * len(texts), np.ones(len(texts), bool), settings or config())


def row(found: Measured, k: int = 0) -> dict[str, Any]:
    """Returns the values of one text by name."""
    return {name: values[k].as_py() for name, values in found.values.items()}


def values(text: str, language: str | None = "en", **variants: Any) -> dict[str, Any]:
    """Returns the values of one text by name."""
    return row(run([text], language=language, settings=config(**variants)))
