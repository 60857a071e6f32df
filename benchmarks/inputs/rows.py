"""What the benchmark of gradients is run on: rows of tokens of real texts, and a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from claim import nothing
from harness import shipped

from scoring.models import load as models
from scoring.reference import train as reference
from scoring.reference.config import ReferenceConfig

MIN_TOKENS, MAX_TOKENS = 128, 512
Rows = list[list[int]]


def rows(tokenizer: Any, texts: Sequence[str], count: int) -> Rows:
    """Returns `count` rows of 128-512 tokens: the first piece of each text, then the second of each, and so on."""
    rng = np.random.default_rng(7)
    found: list[tuple[int, int, list[int]]] = []
    for n, record in enumerate(tokenizer.backend_tokenizer.encode_batch_fast(list(texts))):
        start = piece = 0
        while len(record.ids) - start >= MIN_TOKENS:
            stop = start + int(rng.integers(MIN_TOKENS, MAX_TOKENS + 1))
            found.append((piece, n, record.ids[start:stop]))
            start, piece = stop, piece + 1
    long = [row for _, _, row in sorted(found) if len(row) >= MIN_TOKENS][:count]
    if len(long) < count:
        nothing(f"the texts make {len(long)} documents of {MIN_TOKENS} tokens or more: name more with --texts")
    return long


def loaded(name: str, texts: Sequence[str]) -> tuple[Any, Any]:
    """Returns model and tokenizer; of `reference`, untrained, of the sizes in params."""
    if name != "reference":
        return models.load_causal(name, Path()), models.load_tokenizer(name, Path())
    sizes = shipped()["reference"]
    known = {key: sizes[key] for key in ReferenceConfig.__dataclass_fields__ if key in sizes}
    config = ReferenceConfig(**{**known, "context": MAX_TOKENS})
    tokenizer = reference.train_tokenizer(list(texts), config.vocabulary)
    return reference.new_model(config, tokenizer).eval(), tokenizer
