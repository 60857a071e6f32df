"""Texts a second through a BERT classifier: gradsift's batches against `transformers.pipeline`, on the same texts.

    python benchmarks/quality.py                                  # the documentation that Python ships
    python benchmarks/quality.py --texts a.jsonl b.jsonl --rows 128

The classifier is made on the spot: the encoder of MiniLM under a seeded head. All ways cut a text to 512 tokens:

    one by one    the pipeline, called with one text at a time
    batches       the pipeline with batch_size=32, which pads 32 texts in their order
    gradsift      windows of like length together, by a budget of padded tokens
    int8          the same model as an int8 ONNX file, with its agreement (where the extra `onnx` is installed)
    bfloat16      the same in bfloat16, timed where the processor multiplies it, else only compared on a few texts

One torch thread, CPU time, rounds taken in turn, the best counts; `of_peak` is the share of the float32 rate of a big
product of matrices that the operations of the whole model reach, padding not counted: where it is near 1, no batching
can gain more (gradsift leaves out operations that the head does not read, so it can pass 1). Memory is the peak
of processes of their own that score n and 4 n texts, a part at a time. `two_processes` is the wall time of one
process over that of two that do as much each, doubled. The last line is JSON.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import quality_inputs as inputs  # noqa: E402
from gradient_inputs import peak_mb  # noqa: E402

from scoring.models import (  # noqa: E402
    encoders,
    encoding,
    onnx_export,
)
from scoring.models import load as models  # noqa: E402
from scoring.models.config import Dtype  # noqa: E402

WINDOW, PEER_BATCH, FEW = 510, 32, 8
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


def race(ways: Ways, rounds: int) -> tuple[dict[str, float], dict[str, Values]]:
    """Returns the least CPU seconds of each way, and its values."""
    best, values = dict.fromkeys(ways, float("inf")), {}
    for _ in range(rounds):
        for name, way in ways.items():
            started = time.process_time()
            values[name] = way()
            best[name] = min(best[name], time.process_time() - started)
    return best, values


def compare(folder: str, texts: list[str], flags: argparse.Namespace) -> dict[str, Any]:
    """Returns rates, differences of scores, padding and the share of the machine's peak."""
    ours, peer = Ours(folder, flags.batch_tokens), Peer(folder)
    ways = {"one by one": lambda: peer.one_by_one(texts), "batches": lambda: peer.batches(texts)}
    ways["gradsift"] = lambda: ours.score(texts)
    ways |= _lesser(folder, texts, flags.batch_tokens)
    best, values = race(ways, flags.rounds)
    lengths = [len(w) + 2 for w in inputs.first_windows(ours.tokenizer, texts, WINDOW)]
    work, peak = inputs.model_gflop(ours.model.config, lengths), inputs.peak_gflop_s()
    return {
        "texts": len(texts),
        "tokens": sum(lengths),
        "median_tokens": int(np.median(lengths)),
        "texts_per_cpu_s": {name: round(len(texts) / s, 2) for name, s in best.items()},
        "against_one_by_one": round(best["one by one"] / best["gradsift"], 2),
        "against_batches": round(best["batches"] / best["gradsift"], 2),
        "largest_difference": {
            n: float(np.abs(values[n] - values["gradsift"]).max()) for n in ("one by one", "batches")
        },
        "score_sd": round(float(values["gradsift"].std()), 3),
        "agreement": {
            n: onnx_export.agreement(values["gradsift"], values[n], 0.5) for n in ("int8", "bfloat16") if n in values
        }
        | _few_bf16(folder, texts, values["gradsift"], flags.batch_tokens),
        "padding_ratio": {
            "gradsift": round(inputs.padding_ratio(lengths, inputs.our_batches(lengths, flags.batch_tokens)), 4),
            "batches": round(inputs.padding_ratio(lengths, inputs.in_order(len(lengths), PEER_BATCH)), 4),
        },
        "of_peak": {name: round(work / s / peak, 2) for name, s in best.items()},
        "peak_gflop_s": round(peak, 1),
    }


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
    command += ["--batch-tokens", str(flags.batch_tokens), "--texts", *flags.texts]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in range(count)]
    for process in running:
        if process.stdout.readline().strip() != "ready":
            sys.exit(f"a process of {count} did not start")
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [json.loads(process.communicate()[0]) for process in running]


def processes(folder: str, flags: argparse.Namespace) -> dict[str, Any]:
    """Returns peak memory at n and 4 n texts, and the gain of a second process with what may explain it."""
    n = flags.part_rows
    few, many = (children(folder, flags, 1, rows)[0]["peak_mb"] for rows in (n, 4 * n))
    ones, twos = [], []
    for _ in range(flags.rounds):
        ones.append(children(folder, flags, 1, n)[0])
        twos.append(max(children(folder, flags, 2, n), key=lambda told: told["wall_s"]))
    one, two = (min(told, key=lambda t: t["wall_s"]) for told in (ones, twos))
    return {
        "peak_mb": {f"{n} texts": round(few), f"{4 * n} texts": round(many)},
        "memory_ratio": round(many / few, 3),
        "two_processes": round(2 * one["wall_s"] / two["wall_s"], 2),
        "cpu_of_two": round(two["cpu_s"] / one["cpu_s"], 2),  # above 1: they share caches, memory and clock
        "two_processes_by_cpu_time": round(2 * one["cpu_s"] / two["cpu_s"], 2),  # what free cores would give
        "cores_had": round(two["cpu_s"] / two["wall_s"], 2),  # below 1: others had the processor
    }


def main() -> None:
    """Prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="*", default=[], help="JSONL files; without, Python's documentation")
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--chars", type=int, help="of each text; 200 is a caption. Without, texts of their real length")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--part-rows", type=int, default=64, help="texts of a part where memory and processes are measured"
    )
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--only", choices=("compare", "processes"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    models.use_threads(1)
    if flags.child:
        child(flags)
        return
    report: dict[str, Any] = {"claim": "quality model against transformers.pipeline"}
    with tempfile.TemporaryDirectory() as folder:
        inputs.write_classifier(Path(folder))
        if flags.only != "processes":
            texts = [text[: flags.chars] for text in inputs.sample(flags.texts, flags.rows)]
            report |= compare(folder, texts, flags)
        if flags.only != "compare":
            report |= processes(folder, flags)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
