"""Texts a second through a BERT classifier: gradsift's batches against `transformers.pipeline`, on the same texts.

    python benchmarks/quality.py                                  # 16 topics of Python's help, some of them long
    python benchmarks/quality.py --rows 64 --rounds 2             # the README's figure
    python benchmarks/quality.py --texts FILES --rows 128

The classifier is made on the spot: the encoder of MiniLM under a seeded head. All ways cut a text to 512 tokens:

    one by one    the pipeline, called with one text at a time
    batches       the pipeline with batch_size=32, which pads 32 texts in their order
    gradsift      windows of like length together, by a budget of padded tokens
    int8          the same model as an int8 ONNX file, with its agreement (where the extra `onnx` is installed)
    bfloat16      the same in bfloat16, timed where the processor multiplies it, else only compared on a few texts

One torch thread, CPU time, rounds taken in turn, the best counts; `of_peak` is the share of the float32 rate of a big
product of matrices that the operations of the whole model reach, padding not counted: where it is near 1, no batching
can gain more (gradsift leaves out operations that the head does not read, so it can pass 1). Memory is the peak
of processes of their own that score n and 4 n texts, a part at a time. `quality two processes over one` is the
wall time of one process over that of two that do as much each, doubled.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from claim import claim, nothing
from harness import parser, peak_mb, race
from inputs import classifier as inputs

from scoring.models import encoders, encoding, onnx_export
from scoring.models import load as models
from scoring.models.config import Dtype

WINDOW, PEER_BATCH, FEW = 510, 32, 8
PEERS = {"pipeline one by one": ("one by one", 4), "pipeline batch": ("batches", 2)}  # in claims → way, bar
LESSER = ("int8", "bfloat16")
Values = np.ndarray
Ways = dict[str, Callable[[], Values]]


class Ours:
    """The classifier in `folder`, as the stage uses it."""

    def __init__(self, folder: str, batch_tokens: int, dtype: Dtype = "float32") -> None:
        self.tokenizer, self.model = models.load_tokenizer(folder), encoders.load_classifier(folder, dtype=dtype)
        self.batch_tokens = batch_tokens

    def score(self, texts: Sequence[str]) -> Values:
        """Returns (n,) the probability of the second label."""
        found = inputs.first_windows(self.tokenizer, texts, WINDOW)
        return encoding.classify(self.model, self.tokenizer, found, self.batch_tokens)[:, 1]


class Peer:
    """The same by `transformers.pipeline`."""

    def __init__(self, folder: str) -> None:
        from transformers import pipeline

        self.pipe = pipeline("text-classification", model=folder, device="cpu", top_k=None)

    def one_by_one(self, texts: Sequence[str]) -> Values:
        return _second([self.pipe(text, truncation=True) for text in texts])

    def batches(self, texts: Sequence[str]) -> Values:
        return _second(self.pipe(list(texts), truncation=True, batch_size=PEER_BATCH))


def _second(answers: Sequence[Any]) -> Values:
    flat = [answer[0] if isinstance(answer[0], list) else answer for answer in answers]
    return np.array([next(p["score"] for p in answer if p["label"] == "LABEL_1") for answer in flat])


def compare(folder: str, texts: list[str], flags: argparse.Namespace) -> None:
    """Races the ways over the texts and prints the claims."""
    ours, peer = Ours(folder, flags.batch_tokens), Peer(folder)
    ways: Ways = {"one by one": partial(peer.one_by_one, texts), "batches": partial(peer.batches, texts)}
    ways["gradsift"] = partial(ours.score, texts)
    ways |= _lesser(folder, texts, flags.batch_tokens)
    best, values = race(ways, flags.rounds, time.process_time)
    lengths = [len(w) + 2 for w in inputs.first_windows(ours.tokenizer, texts, WINDOW)]
    work, peak = inputs.model_gflop(ours.model.config, lengths), inputs.peak_gflop_s()
    mine = values["gradsift"]
    less = {n: onnx_export.agreement(mine, values[n], 0.5) for n in LESSER if n in values}
    tell = {
        "texts a CPU second": {name: round(len(texts) / s, 2) for name, s in best.items()},
        "share of the peak": {name: round(work / s / peak, 2) for name, s in best.items()},
        "agreement": less | _few_bf16(folder, texts, mine, flags.batch_tokens),
        "spread of the scores": round(float(mine.std()), 3),
        "tokens": f"{sum(lengths)}, median {int(np.median(lengths))}, peak {peak:.1f} GFLOP/s",
    }
    for name, value in tell.items():
        print(f"{name:<21} {value}")
    for name, (way, bar) in PEERS.items():
        by_type = {n: round(best[way] / best[n], 2) for n in LESSER if n in best}
        far = float(np.abs(values[way] - mine).max())
        facts = {"by_type": by_type, "largest_difference": far, "texts": len(texts)}
        claim(f"against {name}", best[way] / best["gradsift"], bar=bar, **facts)
    _padding(lengths, flags.batch_tokens)


def _padding(lengths: Sequence[int], batch_tokens: int) -> None:
    mine = inputs.padding_ratio(lengths, inputs.our_batches(lengths, batch_tokens))
    peer = inputs.padding_ratio(lengths, inputs.in_order(len(lengths), PEER_BATCH))
    waste = {"waste": round(mine, 4), "peer_waste": round(peer, 4)}
    claim("quality tokens computed over real ones", 1 / (1 - mine), limit=round(1 / 0.95, 3), **waste)


def _lesser(folder: str, texts: list[str], batch_tokens: int) -> Ways:
    """Returns the ways that give up some precision for speed, where this machine has them."""
    ways: Ways = {}
    if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime"):
        path = onnx_export.quantize(onnx_export.export(folder, Path(), Path(folder) / "int8", classifier=True))
        int8 = Ours(str(path), batch_tokens)
        ways["int8"] = lambda: int8.score(texts)
    if models.fast_bf16():
        half = Ours(folder, batch_tokens, "bfloat16")
        ways["bfloat16"] = lambda: half.score(texts)
    return ways


def _few_bf16(folder: str, texts: list[str], wanted: Values, batch_tokens: int) -> dict[str, Any]:
    """Returns the agreement of bfloat16 on a few texts, where it is too slow to be raced."""
    if models.fast_bf16():
        return {}
    found = Ours(folder, batch_tokens, "bfloat16").score(texts[:FEW])
    return {f"bfloat16, {len(found)} texts": onnx_export.agreement(wanted[:FEW], found, 0.5)}


def child(flags: argparse.Namespace) -> None:
    """Scores `rows` texts, a part at a time, once a line comes in; prints seconds and peak memory."""
    ours, texts = Ours(flags.child, flags.batch_tokens), inputs.sample(flags.texts, flags.rows)
    ours.score(texts[:2])
    print("ready", flush=True)
    sys.stdin.readline()
    wall, cpu = time.perf_counter(), time.process_time()
    for k in range(0, len(texts), flags.part_rows):
        ours.score(texts[k : k + flags.part_rows])
    spent = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    print(json.dumps({**spent, "peak_mb": peak_mb()}))


def children(folder: str, flags: argparse.Namespace, count: int, rows: int) -> list[dict[str, float]]:
    """Returns what `count` processes tell that score `rows` texts each, at the same time."""
    command = [sys.executable, __file__, "--child", folder, "--rows", str(rows), "--part-rows", str(flags.part_rows)]
    command += ["--batch-tokens", str(flags.batch_tokens), "--texts", *map(str, flags.texts)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in range(count)]
    for process in running:
        if process.stdout.readline().strip() != "ready":
            nothing(f"a process of {count} did not start")
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [json.loads(process.communicate()[0]) for process in running]


def processes(folder: str, flags: argparse.Namespace) -> None:
    """Claims peak memory at 4 n texts over n, and the gain of a second process with what may explain it."""
    n = flags.part_rows
    few, many = (children(folder, flags, 1, rows)[0]["peak_mb"] for rows in (n, 4 * n))
    ones, twos = [], []
    for _ in range(flags.rounds):
        ones.append(children(folder, flags, 1, n)[0])
        twos.append(max(children(folder, flags, 2, n), key=lambda told: told["wall_s"]))
    one, two = (min(told, key=lambda t: t["wall_s"]) for told in (ones, twos))
    claim("quality memory at 4 x the texts", many / few, few_mb=round(few), many_mb=round(many), few_texts=n)
    facts = {
        "cpu_of_two": round(two["cpu_s"] / one["cpu_s"], 2),  # above 1: they share caches, memory and clock
        "by_cpu_time": round(2 * one["cpu_s"] / two["cpu_s"], 2),  # what free cores would give
        "cores_had": round(two["cpu_s"] / two["wall_s"], 2),  # below 1: others had the processor
    }
    claim("quality two processes over one", 2 * one["wall_s"] / two["wall_s"], bar=1.7, **facts)


def main() -> None:
    """Prints the claims."""
    found = parser(__doc__, texts="the topics of Python's help")
    found.add_argument("--rows", type=int, default=16)
    found.add_argument("--chars", type=int, help="of each text; 200 is a caption. Without, texts of their real length")
    found.add_argument("--rounds", type=int, default=1)
    words = "texts of a part where memory and processes are measured"
    found.add_argument("--part-rows", type=int, default=16, help=words)
    found.add_argument("--batch-tokens", type=int, default=4096)
    found.add_argument("--only", choices=("compare", "processes"))
    found.add_argument("--child", help=argparse.SUPPRESS)
    flags = found.parse_args()
    models.use_threads(1)
    if flags.child:
        child(flags)
        return
    with tempfile.TemporaryDirectory() as folder:
        inputs.write_classifier(Path(folder))
        if flags.only != "processes":
            compare(folder, [text[: flags.chars] for text in inputs.sample(flags.texts, flags.rows)], flags)
        if flags.only != "compare":
            processes(folder, flags)


if __name__ == "__main__":
    main()
