"""Clean: normal form, language, personal data, rule values and verdict of every row; the key that duplicates share.

A text loses its source's boilerplate lines and is brought to normal form; personal data is replaced; what is left
is `clean_text`, and language, rules and key speak about that. Benchmark items are looked for before the
replacement. Rules speak about rows of modality `text`: captions of media rows are cleaned and language-tagged, but
their rule values are null, and null never fails. A text without a single word fails `empty` alone.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.arrays import Array
from transforms.clean import lines
from transforms.clean.config import CleanConfig
from transforms.clean.rules import RULES
from transforms.core import schemas
from transforms.core.features import Blob
from transforms.core.models import MapWithModel
from transforms.core.parts import Part, Reads, floats
from transforms.core.rules import verdict
from transforms.text import extra
from transforms.text.decontaminate import index_file
from transforms.text.decontaminate import overlap as decontaminate
from transforms.text.keys import keys
from transforms.text.language import identify as language
from transforms.text.language.model import Detector
from transforms.text.normal.normalize import normalize_batch
from transforms.text.pii import redact as pii
from transforms.text.rules import measure

READS: Reads = {"samples": ["modality", "source", "text", "images", "image_times_s", "audio"]}

_LANGUAGE = ("language", "language_score", "languages", "mixed_language")  # of texts that have words

Flags = dict[str, Array]  # reason code → (rows,) bool


@dataclass(frozen=True)
class Tools:
    """What a worker loads once."""

    detector: Detector
    boilerplate: lines.Boilerplate | None = None
    benchmarks: decontaminate.Index | None = None


def load(boilerplate: Path | None = None, index: Path | None = None) -> Tools:
    """Returns the language model, the boilerplate lines and the benchmarks' index, where there are any."""
    found = lines.load_boilerplate(boilerplate) if boilerplate else None
    return Tools(language.load(), found, index_file.load_index(index) if index else None)


@dataclass
class Clean(beam.PTransform):
    """Cleans and judges each part: columns of samples → columns of clean."""

    config: CleanConfig
    boilerplate: Path | None = None
    index: Path | None = None

    def expand(self, items: beam.PCollection) -> beam.PCollection:
        tools = partial(load, self.boilerplate, self.index)
        return items | "CleanAndJudge" >> beam.ParDo(MapWithModel(tools, partial(_clean_part, self.config)))


def _clean_part(config: CleanConfig, part: Part, tools: Tools) -> Part:
    return part.with_batch(clean_batch(part.batch, config, tools))


def samples_of(texts: Sequence[str], source: str) -> pa.RecordBatch:
    """Returns the columns of `schemas.SAMPLES` of texts that are in no part, named as by a reader of parts."""
    known = {
        "sample_id": pa.array([f"{source}:{n}" for n in range(len(texts))]), "text": pa.array(texts, pa.large_string()),
        "modality": pa.array(["text"] * len(texts)), "source": pa.array([source] * len(texts)),
    }  # fmt: skip
    columns = {f.name: known.get(f.name, pa.nulls(len(texts), f.type)) for f in schemas.SAMPLES}
    return pa.record_batch({n if n == "sample_id" else f"samples.{n}": c for n, c in columns.items()})


def clean_batch(batch: pa.RecordBatch, config: CleanConfig, tools: Tools) -> pa.RecordBatch:
    """Returns the columns of `schemas.CLEAN` for the columns `READS` of some samples."""
    is_text = pc.fill_null(pc.equal(batch["samples.modality"], "text"), False)
    judged = is_text.to_numpy(zero_copy_only=False)
    columns, texts = _clean(batch, is_text, config, tools)
    found = measure.measure(texts, columns["language"].to_pylist(), judged, config)
    wordless = pc.equal(pc.fill_null(found.values["words"], 0), 0)
    columns |= {name: pc.if_else(wordless, None, columns[name]) for name in _LANGUAGE}
    columns |= found.values | extra.measure(pc.if_else(is_text, texts, None), config.extra)
    failed, applicable = _judge(columns, judged, config)
    kept, reasons = verdict(failed, batch.num_rows)
    columns |= {
        "sample_id": batch["sample_id"],
        "clean_text": texts,
        "c4_text": found.c4_text,
        "key_hash": keys.key_hashes(texts, _payloads(batch)),
        "rule_quality": _rule_quality(failed, applicable),
        "kept": kept,
        "reasons": reasons,
    }
    return schemas.conform(pa.record_batch(columns), schemas.CLEAN)


def _clean(
    batch: pa.RecordBatch, is_text: pa.BooleanArray, config: CleanConfig, tools: Tools
) -> tuple[dict[str, pa.Array], pa.LargeStringArray]:
    """Returns what was found on the way to the clean texts, and these."""
    bare, removed = lines.strip_boilerplate(
        lines.text_rows(batch), batch["samples.source"], tools.boilerplate, remove=config.boilerplate.remove
    )
    normal = normalize_batch(pc.if_else(is_text, bare, batch["samples.text"]), config.normalize)
    hits = decontaminate.hits(pc.if_else(is_text, normal.texts, None), tools.benchmarks)
    redacted = pii.redact(normal.texts, config.pii)
    columns = {
        "mojibake_fixes": normal.mojibake_fixes,
        "controls_removed": normal.controls_removed,
        "boilerplate_lines": removed,
        "pii": redacted.spans,
        "pii_count": pc.cast(pc.list_value_length(redacted.spans), pa.int32()),
        **dict(zip((name for name, _ in decontaminate.VALUES), hits, strict=True)),
        **language.identify_batch(redacted.texts, tools.detector, config.language),
    }
    return columns, redacted.texts


def _judge(found: Mapping[str, pa.Array], is_text: Array, config: CleanConfig) -> tuple[Flags, Flags]:
    """Returns which rows fail each rule, and to which rows it applies, both in the order of `REASONS`."""
    wordless = ~(floats(found["words"]) > 0)
    failed, applicable = {"empty": is_text & wordless}, {"empty": is_text}
    for rule in RULES:
        values = floats(found[rule.value])
        applies = ~np.isnan(values) & ~wordless & rule.is_on(config)
        failed[rule.code], applicable[rule.code] = rule.drops(values, config) & applies, applies
    known = is_text & ~wordless & bool(config.language.allow)
    allowed = pc.is_in(found["language"], value_set=pa.array(config.language.allow, pa.string()))
    failed["language_not_allowed"] = known & ~allowed.to_numpy(zero_copy_only=False)
    applicable["language_not_allowed"] = known
    return failed, applicable


def _rule_quality(failed: Flags, applicable: Flags) -> pa.Array:
    """Returns passed rules / rules that apply; null for a row that no rule applies to."""
    total = np.sum(list(applicable.values()), axis=0)
    passed = total - np.sum(list(failed.values()), axis=0)
    return pa.array(passed / np.maximum(total, 1), pa.float64(), mask=total == 0)


def _payloads(batch: pa.RecordBatch) -> list[list[bytes]]:
    """Returns, row by row, the bytes that tell its media apart from other media."""
    pictures = pc.fill_null(pc.list_value_length(batch["samples.images"]), 0)
    media = pc.or_(pc.greater(pictures, 0), pc.is_valid(batch["samples.audio"]))
    found: list[list[bytes]] = [[] for _ in range(batch.num_rows)]
    for row in np.flatnonzero(media.to_numpy(zero_copy_only=False)).tolist():
        found[row] = list(filter(None, _media(batch, row)))
    return found


def _media(batch: pa.RecordBatch, row: int) -> Iterator[bytes]:
    items = [*(batch["samples.images"][row].as_py() or []), batch["samples.audio"][row].as_py()]
    yield from (_content(item) for item in items if item)
    if batch["samples.modality"][row].as_py() == "video":
        yield _times(batch["samples.image_times_s"][row].as_py() or [])


def _content(item: Blob) -> bytes:
    """Returns the bytes of a picture or sound; of one that is stored elsewhere, its path."""
    return item["bytes"] or (item["path"] or "").encode()


def _times(times_s: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(times_s)}d", *times_s)
