"""What the benchmark of gradients is run on: real texts, a model, and facts of the machine."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pipelines.core.params import DEFAULTS  # noqa: E402
from scoring.models import load as models  # noqa: E402
from scoring.reference import train as reference  # noqa: E402
from scoring.reference.config import ReferenceConfig  # noqa: E402

MIN_TOKENS, MAX_TOKENS = 128, 512
Rows = list[list[int]]


def texts_of(paths: list[str]) -> list[str]:
    """Returns the texts of JSONL files; without one, the topics of Python's own help."""
    if not paths:
        from pydoc_data.topics import topics

        return list(topics.values())
    lines = [line for path in paths for line in Path(path).read_bytes().split(b"\n") if line.strip()]
    return [text for text in (json.loads(line).get("text") for line in lines) if text]


def documents(tokenizer: Any, texts: list[str], count: int) -> Rows:
    """Returns `count` rows of 128-512 tokens: the first piece of each text, then the second of each, and so on."""
    rng = np.random.default_rng(7)
    found: list[tuple[int, int, list[int]]] = []
    for n, record in enumerate(tokenizer.backend_tokenizer.encode_batch_fast(texts)):
        start = piece = 0
        while len(record.ids) - start >= MIN_TOKENS:
            stop = start + int(rng.integers(MIN_TOKENS, MAX_TOKENS + 1))
            found.append((piece, n, record.ids[start:stop]))
            start, piece = stop, piece + 1
    rows = [row for _, _, row in sorted(found) if len(row) >= MIN_TOKENS][:count]
    if len(rows) < count:
        sys.exit(f"the texts make {len(rows)} documents of {MIN_TOKENS} tokens or more: name more with --texts")
    return rows


def loaded(name: str, texts: list[str]) -> tuple[Any, Any]:
    """Returns model and tokenizer; of `reference`, untrained, of the sizes in params."""
    if name != "reference":
        return models.load_causal(name, Path()), models.load_tokenizer(name, Path())
    sizes = yaml.safe_load(DEFAULTS.read_text())["reference"]
    known = {key: sizes[key] for key in ReferenceConfig.__dataclass_fields__ if key in sizes}
    config = ReferenceConfig(**{**known, "context": MAX_TOKENS})
    tokenizer = reference.train_tokenizer(texts, config.vocabulary)
    return reference.new_model(config, tokenizer).eval(), tokenizer


def peak_mb() -> float:
    """Returns the peak of this process's memory; Linux's `ru_maxrss` would begin at the parent's."""
    import resource

    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
