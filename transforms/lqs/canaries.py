"""Canaries: junk of every kind, made from good rows, and rows that people judged, scored as the data is.

They go through the same functions as any row (clean, tokens, gradients, static, lqs) with the statistics of the
corpus, as if every filter had kept them, and end as figures: they never become samples, so they cannot be shipped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from scoring.models.types import Tokenizer
from scoring.order.cost_config import TokensConfig
from scoring.quality import degrade
from scoring.static.scale import Bounds
from scoring.static.unigrams import Unigrams
from transforms import tokens
from transforms.clean.config import CleanConfig
from transforms.clean.transform import Tools as Cleaner
from transforms.clean.transform import clean_batch, samples_of
from transforms.core import schemas
from transforms.gradients import transform as gradients
from transforms.gradients.checkpoints import Loaded
from transforms.gradients.config import GradientsConfig
from transforms.lqs.canary_figures import GOOD
from transforms.static import transform as static
from transforms.static.config import StaticConfig


class Canary(NamedTuple):
    """A text and what is known of it."""

    kind: str  # GOOD, a kind of `degrade.CANARIES`, LABELLED_GOOD or LABELLED_BAD
    text: str


@dataclass(frozen=True)
class Tools:
    """What the stages before `lqs` score rows with."""

    clean: CleanConfig
    cleaner: Cleaner
    tokens: TokensConfig
    tokenizer: Tokenizer
    gradients: GradientsConfig
    loaded: Loaded
    static: StaticConfig
    unigrams: Unigrams
    bounds: Mapping[str, Bounds]


def make(good: Sequence[str], *, seed: int) -> list[Canary]:
    """Returns the good rows, and one of each kind of junk made from each of them."""
    found = [Canary(GOOD, text) for text in good]
    for k, (kind, function) in enumerate(degrade.CANARIES):
        found += [Canary(kind, function(text, np.random.default_rng([seed, k, n]))) for n, text in enumerate(good)]
    return found


def measure(canaries: Sequence[Canary], tools: Tools) -> pa.RecordBatch:
    """Returns the columns that `lqs` reads of each canary, and its `kind`."""
    samples = samples_of([c.text for c in canaries], "canary")
    columns: dict[str, pa.Array] = dict(zip(samples.schema.names, samples.columns, strict=True))
    columns = _kept(_zipped("clean", clean_batch(_batch(columns), tools.clean, tools.cleaner), columns))
    columns = _zipped("tokens", tokens.count_batch(_batch(columns), tools.tokens, tools.tokenizer), columns)
    mode = "exact" if tools.gradients.precision == "auto" else tools.gradients.precision
    scored = gradients.gradients_batch(_batch(columns), replace(tools.gradients, proxy_ratio=1.0), tools.loaded, mode)
    columns = _zipped("gradients", scored.select(schemas.GRADIENTS.names), columns)
    raw = static.read_batch(_batch(columns), tools.unigrams, max_tokens=tools.static.max_tokens)
    columns = _zipped("static/raw", raw, columns)
    columns = _zipped("static", static.score_batch(_batch(columns), tools.bounds, tools.static.scale), columns)
    return _batch({**columns, "kind": pa.array([c.kind for c in canaries])})


def _zipped(folder: str, batch: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Returns `columns` with those of a sidecar as a reader of parts would name them."""
    found = {f"{folder}.{name}": batch[name] for name in batch.schema.names if name != "sample_id"}
    return {"sample_id": batch["sample_id"], **columns, **found}


def _kept(columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Returns `columns` with the verdict of every filter: kept."""
    yes = pa.array([True] * len(columns["sample_id"]))
    return {**columns, **{f"{folder}.kept": yes for folder in ("clean", "dedup", "quality")}}


def _batch(columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    return pa.record_batch(dict(columns))
