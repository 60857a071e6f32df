"""Exact per-sample gradient scores against what they ride on, and against autograd one sample at a time.

    python benchmarks/gradients.py              # the default reference's sizes, a minute on one core
    python benchmarks/gradients.py --layers last:1

All run on one torch thread over the same rows: `bare` is forward and backward with the weight gradients of
a training step, `scores` is loss, norm and dot products with two directions, `autograd` takes the rows one
by one. Time is CPU time, the least of several rounds taken in turn. The last line is JSON.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scoring import gradients, gradients_oracle, windows  # noqa: E402


def reference(sizes: dict[str, Any]) -> Any:
    """Returns an untrained model of the sizes in params."""
    torch.manual_seed(7)
    width, heads = sizes["width"], sizes["heads"]
    config = LlamaConfig(
        vocab_size=sizes["vocabulary"], hidden_size=width, intermediate_size=8 * -(-width // 3),
        num_hidden_layers=sizes["layers"], num_attention_heads=heads, num_key_value_heads=heads,
        tie_word_embeddings=False,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def bare(model: Any, rows: list[list[int]], batch_tokens: int) -> None:
    """Runs forward and backward over `rows`, in the same batches."""
    for batch in windows.batches([len(r) for r in rows], batch_tokens):
        model.zero_grad()
        gradients.row_losses(model, *gradients.padded([rows[n] for n in batch])).sum().backward()


def cpu_s(actions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Returns the least CPU seconds of each action over `rounds` rounds, after one that does not count."""
    found: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds + 1):
        for name, action in actions.items():
            started = time.process_time()
            action()
            found[name].append(time.process_time() - started)
    return {name: min(times[1:]) for name, times in found.items()}


def main() -> None:
    """Prints a table and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--layers", default="all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-tokens", type=int)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    batch_tokens = flags.batch_tokens or params["gradients"]["batch_tokens"]
    model, rng = reference(params["reference"]), np.random.default_rng(7)
    rows = rng.integers(0, params["reference"]["vocabulary"], (flags.rows, flags.tokens)).tolist()
    layers = gradients.scored_layers(model, flags.layers)
    directions = {n: torch.randn(2, *m.weight.shape) for n, m in layers.items()}
    few = rows[: max(4, flags.rows // 8)]
    times = cpu_s(
        {
            "bare": lambda: bare(model, rows, batch_tokens),
            "scores": lambda: gradients.score(model, rows, layers, directions, batch_tokens=batch_tokens),
            "autograd": lambda: gradients_oracle.score(model, few, layers, directions),
        },
        flags.rounds,
    )
    rates = {"bare": flags.rows, "scores": flags.rows, "autograd": len(few)}
    per_s = {name: count / times[name] for name, count in rates.items()}
    for name, rate in per_s.items():
        print(f"{name:<10} {rate:>8.1f} rows/s a core")
    result = {
        "claim": "scores cost about as much as a training step",
        "scores_over_bare": round(per_s["bare"] / per_s["scores"], 2),
        "autograd_over_scores": round(per_s["scores"] / per_s["autograd"], 1),
        "rows_per_core_s": round(per_s["scores"], 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
