"""Clean: normal form, language, rule values and verdict of every row; the key that duplicates share.

Rules speak about rows of modality `text`. Captions of media rows are normalised and language-tagged, but
their rule values are null, and null never fails. A text without a single word fails `empty` alone.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.config import config
from transforms import schemas
from transforms.models import MapWithModel
from transforms.parts import Part, Reads
from transforms.rules import verdict
from transforms.text import gopher, language, repetition, words
from transforms.text.gopher import GopherConfig
from transforms.text.normalize import Form, key_hash, normalize
from transforms.text.repetition import RepetitionConfig

READS: Reads = {"samples": ["modality", "text", "images", "image_times_s", "audio"]}

RULES = (*gopher.RULES, *repetition.RULES)

# Every reason code of this stage, in the order in which a row lists them.
REASONS: Mapping[str, str] = {
    "empty": "the text has no words at all",
    **{rule.code: rule.sentence for rule in RULES},
    "language_not_allowed": "the language is not one of `languages`",
}


@config
class CleanConfig:
    """What the clean text is, which languages stay, and the thresholds of the rules."""

    unicode_form: Form
    languages: tuple[str, ...]  # keep only these ISO codes; empty keeps all
    min_language_score: float  # below it the language is `und`
    gopher: GopherConfig
    repetition: RepetitionConfig

    def __post_init__(self) -> None:
        if not 0 <= self.min_language_score <= 1:
            raise ValueError(f"min_language_score must be in [0, 1], not {self.min_language_score}")
        odd = [code for code in self.languages if not (code.isascii() and code.isalpha() and code.islower())]
        if odd:
            raise ValueError(f"languages are lower-case ISO codes such as en or zh, not {odd}")


@dataclass
class Clean(beam.PTransform):
    """Cleans and judges each part: columns of samples → columns of clean."""

    config: CleanConfig

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        return items | "CleanAndJudge" >> beam.ParDo(MapWithModel(language.load, partial(_clean_part, self.config)))


def _clean_part(config: CleanConfig, part: Part, detector: Any) -> Part:
    return part.with_batch(clean_batch(part.batch, config, detector))


def clean_batch(batch: pa.RecordBatch, config: CleanConfig, detector: Any) -> pa.RecordBatch:
    """Returns the columns of `schemas.CLEAN` for the columns `READS` of some samples."""
    texts = [None if t is None else normalize(t, config.unicode_form) for t in batch["samples.text"].to_pylist()]
    is_text = pc.fill_null(pc.equal(batch["samples.modality"], "text"), False).to_numpy(zero_copy_only=False)
    rows = [measure(t, config, detector, judged=bool(j)) for t, j in zip(texts, is_text, strict=True)]
    found = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in _MEASURED}
    failed, applicable = _judge(found, is_text, config)
    kept, reasons = verdict(failed, batch.num_rows)
    columns = {
        "sample_id": batch["sample_id"],
        "clean_text": pa.array(texts, pa.large_string()),
        "key_hash": pa.array([key_hash(t, p) for t, p in zip(texts, _payloads(batch), strict=True)], pa.binary(16)),
        **found,
        "rule_quality": _rule_quality(failed, applicable),
        "kept": kept,
        "reasons": reasons,
    }
    return schemas.conform(pa.record_batch(columns), schemas.CLEAN)


_MEASURED = (("language", pa.string()), ("language_score", pa.float64()), *schemas.CLEAN_VALUES)


def measure(text: str | None, config: CleanConfig, detector: Any, *, judged: bool) -> dict[str, Any]:
    """Returns the language of `text`, its counts and, where it is `judged`, the value of every rule.

    What cannot be said of this text is left out.
    """
    if text is None:
        return {}
    tokens = words.intern(words.split(text))
    counts: dict[str, Any] = {"chars": len(text), "words": len(tokens), "lines": len(text.splitlines())}
    if not len(tokens):
        return counts
    code, score = language.identify(text, detector, config.min_language_score)
    counts |= {"language": code, "language_score": score}
    if not judged:
        return counts
    return counts | gopher.measure(text, tokens, code) | repetition.measure(text, tokens)


Flags = dict[str, "np.ndarray[Any, Any]"]  # reason code → (rows,) bool


def _judge(found: Mapping[str, pa.Array], is_text: "np.ndarray[Any, Any]", config: CleanConfig) -> tuple[Flags, Flags]:
    """Returns which rows fail each rule, and to which rows it applies, both in the order of `REASONS`."""
    wordless = ~(_floats(found["words"]) > 0)
    failed, applicable = {"empty": is_text & wordless}, {"empty": is_text}
    for rule in RULES:
        values = _floats(found[rule.value])
        failed[rule.code], applicable[rule.code] = rule.drops(values, config), ~np.isnan(values)
    known = is_text & ~wordless & bool(config.languages)
    allowed = pc.is_in(found["language"], value_set=pa.array(config.languages, pa.string()))
    failed["language_not_allowed"] = known & ~allowed.to_numpy(zero_copy_only=False)
    applicable["language_not_allowed"] = known
    return failed, applicable


def _floats(values: pa.Array) -> "np.ndarray[Any, Any]":
    """Returns (n,) float64, null as NaN."""
    return np.asarray(pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _rule_quality(failed: Flags, applicable: Flags) -> pa.Array:
    """Returns passed rules / rules that apply; null for a row that no rule applies to."""
    total = np.sum(list(applicable.values()), axis=0)
    passed = total - np.sum(list(failed.values()), axis=0)
    return pa.array(passed / np.maximum(total, 1), pa.float64(), mask=total == 0)


def _payloads(batch: pa.RecordBatch) -> Iterator[list[bytes]]:
    """Yields, row by row, the bytes that tell its media apart from other media."""
    for row in range(batch.num_rows):
        images = batch["samples.images"][row].as_py() or []
        audio = batch["samples.audio"][row].as_py()
        found = [_content(item) for item in [*images, audio] if item]
        if found and batch["samples.modality"][row].as_py() == "video":
            found.append(_times(batch["samples.image_times_s"][row].as_py() or []))
        yield [payload for payload in found if payload]


def _content(item: Mapping[str, Any]) -> bytes:
    """Returns the bytes of a picture or sound; of one that is stored elsewhere, its path."""
    return item["bytes"] or (item["path"] or "").encode()


def _times(times_s: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(times_s)}d", *times_s)
