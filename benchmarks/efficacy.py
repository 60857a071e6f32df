"""Does it help? One small model, trained from scratch on the same number of tokens, chosen and ordered by each arm.

    python benchmarks/efficacy.py                  # 400 documents, one seed: a trial, whose figures mean nothing
    python benchmarks/efficacy.py --texts FILES --rows 1600 --steps 240 --seeds 3    # the README's table, 17 minutes

A seeded share of the documents is held out, whole and never equal to another. The rest goes through gradsift's
own stages, `ingest` to `lqs`, with the default params but for the sources: once as it is, and once with
30 % of the documents replaced by planted junk (`scoring.quality.degrade`). Then every arm fills one budget of tokens:
that of `--steps`, or half of what the filters keep if that is less, as there must be something to choose from:

    random       all documents, in random order
    rules        what the rules of `clean` keep, in random order
    filters      what `clean`, `dedup` and `quality` keep, in random order
    perplexity   of these, those of the least loss on the last reference checkpoint, in random order
    lqs          of these, those of the highest final score, in random order
    lqs folding  the same documents from low to high score, in the passes of `plan.folding_layers`
    lqs saw      the same, as `plan.saw` has it

The model has other sizes and seeds than the reference. A seed draws its weights and the random order; arms of one
seed differ in their documents alone, so differences are taken seed by seed. Losses are those of held-out text, in
nats a token. Documents have 300 characters or more: `rules` would drop shorter ones for their length, and the
held-out text has them too. A claim's ratio is the loss of `lqs` over that of `random`.
"""

import json
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from claim import claim, nothing
from harness import GRADSIFT, call, parser, shipped, write_params
from inputs import texts as source

from pipelines.core import params, tables
from pipelines.core.project import Project, open_project
from scoring.order import ordering
from scoring.order.config import PlanConfig
from scoring.quality import degrade
from scoring.reference import train as reference
from scoring.reference.config import ReferenceConfig

STAGES = ("ingest", "clean", "dedup", "quality", "tokens", "static", "reference", "gradients", "lqs")
COLUMNS = {
    "samples": ["text", "meta"], "clean": ["kept", "clean_text"], "dedup": ["kept"], "quality": ["kept"],
    "gradients": ["loss"], "lqs": ["score"],
}  # fmt: skip
MIN_CHARS, MAX_CHARS = 300, 1000
JUNK, HELDOUT = 0.3, 0.04
VOCABULARY, BATCH, CONTEXT = 512, 4, 128  # what learns most in the minutes there are
STUDENT: dict[str, Any] = {"layers": 2, "width": 128, "heads": 4, "context": CONTEXT}
LEARNING_RATE = 0.004
POINTS = 4  # at which the held-out loss is taken
SEED = 7
Row = dict[str, Any]
Corpus = Sequence[tuple[str, str]]  # kind of junk or "", and text


@dataclass(frozen=True)
class Run:
    """One training: what it is, and the tokens that it is fed, in their order."""

    corpus: str
    arm: str
    seed: int
    tokens: npt.NDArray[np.int64]
    facts: dict[str, float]


def documents(paths: Sequence[Path], rows: int) -> list[str]:
    """Returns `rows` distinct texts, cut at a space to at most MAX_CHARS, in seeded order."""
    texts = source.of(paths, source.documentation)
    found = sorted({cut(t.strip()) for t in texts if len(t.strip()) >= MIN_CHARS})
    random.Random(SEED).shuffle(found)
    return found[:rows]


def cut(text: str) -> str:
    """Returns the whole words of the first MAX_CHARS characters of `text`."""
    return text if len(text) <= MAX_CHARS else text[:MAX_CHARS].rsplit(None, 1)[0]


def planted(texts: Sequence[str]) -> Corpus:
    """Returns the documents, a seeded share of them degraded."""
    picked = random.Random(SEED).sample(range(len(texts)), round(JUNK * len(texts)))
    found = [("", t) for t in texts]
    for n, made in zip(picked, degrade.degrade_in_turn([texts[n] for n in picked], picked), strict=True):
        found[n] = made
    return found


def scored(root: Path, corpus: Corpus) -> Path:
    """Runs the stages over `corpus` in a project at `root`; returns its params file."""
    tree = shipped()
    tree["ingest"]["sources"] = [{"name": "docs", "paths": ["docs.jsonl"]}]
    tree["runtime"] |= {"engine": "local", "threads": 1}
    path = write_params(root, tree)
    lines = [json.dumps({"text": text, "planted": kind}) for kind, text in corpus]
    (root / "docs.jsonl").write_text("\n".join(lines))
    call([*GRADSIFT, *STAGES, "--params", path])
    return path


def read(project: Project, tokenizer: Any) -> list[Row]:
    """Returns every ingested row: verdicts, ease (negative loss), final score, and the tokens to train on."""
    with tables.connect(project) as connection:
        rows: list[Row] = connection.sql(tables.zipped(project, COLUMNS)).to_arrow_table().to_pylist()
    texts = [row["clean_text"] or row["text"] for row in rows]
    encoded = tokenizer.backend_tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    for row, record in zip(rows, encoded, strict=True):
        row["ids"] = [*record.ids, tokenizer.eos_token_id]
        row["kept"] = bool(row["clean_kept"] and row["dedup_kept"] and row["quality_kept"])
        row["ease"] = -row["loss"][-1] if row["loss"] else -math.inf
        row["score"] = -math.inf if row["score"] is None else row["score"]
        row["junk"] = bool(json.loads(row["meta"])["planted"])
    return rows


Arm = tuple[str, str | None, str]  # the column of what it may take, of how much it likes that, and its order
ARMS: dict[str, Arm] = {
    "random": ("sample", None, "shuffle"),
    "rules": ("clean_kept", None, "shuffle"),
    "filters": ("kept", None, "shuffle"),
    "perplexity": ("kept", "ease", "shuffle"),
    "lqs": ("kept", "score", "shuffle"),
    "lqs folding": ("kept", "score", "folding"),
    "lqs saw": ("kept", "score", "saw"),
}


def size(rows: Sequence[Row]) -> int:
    """Returns how many tokens `rows` hold."""
    return sum(len(r["ids"]) for r in rows)


def runs(name: str, rows: Sequence[Row], settings: PlanConfig, seeds: int, budget: int) -> Iterator[Run]:
    """Yields every arm and seed over the scored `rows`."""
    for arm, (column, likes, order) in ARMS.items():
        allowed = [r for r in rows if r.get(column, True)]
        print(f"{name}: {arm} takes {budget} of {size(allowed)} tokens, {len(allowed)} documents", flush=True)
        for seed in range(seeds):
            picked = pick(allowed, likes, seed, budget)
            tokens = stream(picked, replace(settings, order=order), seed)  # type: ignore[arg-type]
            fed = np.fromiter(islice(tokens, budget), np.int64, budget)
            yield Run(name, arm, seed, fed, facts(picked, budget))


def pick(rows: Sequence[Row], likes: str | None, seed: int, budget: int) -> list[Row]:
    """Returns the liked most of `rows`, or random ones, until they hold `budget` tokens; from the least liked up."""
    shuffled = random.Random(seed).sample(rows, len(rows))
    found = sorted(shuffled, key=lambda r: -float(r[likes])) if likes else shuffled
    ends = np.cumsum([len(r["ids"]) for r in found])
    return found[: int(np.searchsorted(ends, budget)) + 1][::-1]


def stream(picked: Sequence[Row], settings: PlanConfig, seed: int) -> Iterator[int]:
    """Yields the tokens of `picked`, in ascending order, as `settings` orders them, again and again."""
    for epoch in count():
        for n in ordering.ordered(len(picked), replace(settings, seed=1000 * seed + epoch)):
            yield from picked[n]["ids"]


def facts(picked: Sequence[Row], budget: int) -> dict[str, float]:
    """Returns how many documents there are, how often they come, and the share of junk in their tokens."""
    epochs = max(1.0, budget / size(picked))
    return {"documents": len(picked), "epochs": epochs, "junk": size([r for r in picked if r["junk"]]) / size(picked)}


@dataclass(frozen=True)
class Student:
    """What all trainings share: the sizes of the model, and (n, CONTEXT) held-out tokens."""

    tokenizer: Any
    heldout: list[list[int]]

    def train(self, run: Run) -> list[float]:
        """Returns the held-out loss at evenly spaced steps: AdamW, warm-up, cosine decay."""
        import torch

        torch.set_num_threads(1)
        config = params.read(params.DEFAULTS).section("reference", ReferenceConfig)
        model = reference.new_model(replace(config, **STUDENT, seed=1000 + run.seed), self.tokenizer)
        torch.manual_seed(1000 + run.seed)
        for weight in (p for p in model.parameters() if p.dim() > 1):
            torch.nn.init.normal_(weight, std=STUDENT["width"] ** -0.5)  # 0.02 is for wide models: 0.6 nats worse
        batches = torch.from_numpy(run.tokens).view(-1, BATCH, CONTEXT)
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, LEARNING_RATE, total_steps=len(batches), pct_start=0.1, cycle_momentum=False
        )
        points = {round(len(batches) * k / POINTS) for k in range(1, POINTS + 1)}
        losses = []
        for step, batch in enumerate(batches, start=1):
            optimizer.zero_grad()
            model(input_ids=batch, labels=batch).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step in points:
                losses.append(reference.mean_loss(model, [[block] for block in self.heldout]))
        print(f"{run.corpus}: {run.arm}, seed {run.seed}: {losses[-1]:.3f}", file=sys.stderr, flush=True)
        return losses


def student(tokenizer: Any, heldout: Sequence[str]) -> Student:
    """Returns the student that is judged by `heldout`, joined and cut into blocks."""
    ids = [t for text in reference.chunks(tokenizer, heldout, CONTEXT) for piece in text for t in piece]
    return Student(tokenizer, [ids[k : k + CONTEXT] for k in range(0, len(ids) - CONTEXT + 1, CONTEXT)])


def report(corpus: str, found: Sequence[tuple[Run, list[float]]]) -> dict[str, Any]:
    """Prints the table of one corpus and what follows from it; returns its figures."""
    print(f"\n{corpus:<12}{'trained on':<32}{'held-out loss as it falls':<26}{'at the end':<17}against random")
    last = {(run.arm, run.seed): losses[-1] for run, losses in found}
    figures: dict[str, Any] = {}
    for arm in ARMS:
        mine = [(run, losses) for run, losses in found if run.arm == arm]
        ends = [losses[-1] for _, losses in mine]
        against = [last[arm, run.seed] - last["random", run.seed] for run, _ in mine]
        curve = [statistics.fmean(at) for at in zip(*(losses for _, losses in mine), strict=True)]
        mean = {k: statistics.fmean(run.facts[k] for run, _ in mine) for k in mine[0][0].facts}
        figures[arm] = {"loss": ends, "against_random": against, "curve": curve, **mean}
        taken = f"{mean['documents']:.0f} docs × {mean['epochs']:.1f}, {mean['junk']:.0%} junk"
        falls = " ".join(f"{loss:.3f}" for loss in curve[:-1])
        print(f"{arm:<12}{taken:<32}{falls:<26}{spread(ends):<17}{spread(against, '+')}")
    for arm, seen in figures.items():
        if arm.startswith("lqs") and max(seen["against_random"]) >= 0:
            print(f"{arm} does not beat random in every seed")
    return figures


def spread(values: Sequence[float], sign: str = "") -> str:
    """Returns mean ± standard deviation."""
    return f"{statistics.fmean(values):{sign}.3f} ± {statistics.stdev(values) if len(values) > 1 else 0:.3f}"


def main() -> None:
    """Prints a table and a claim for each corpus."""
    options = parser(__doc__, texts="the documentation that Python ships")
    options.add_argument("--rows", type=int, default=400, help="documents, the held-out ones included")
    options.add_argument("--steps", type=int, default=40, help=f"of {BATCH * CONTEXT} tokens")
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--folder", type=Path, help="where the two projects stay; a temporary folder otherwise")
    flags = options.parse_args()
    texts = documents(flags.texts, flags.rows)
    held, seen = texts[: round(HELDOUT * len(texts))], texts[round(HELDOUT * len(texts)) :]
    corpora: dict[str, Corpus] = {"clean": [("", t) for t in seen], "30 % junk": planted(seen)}
    tokenizer = reference.train_tokenizer(seen, VOCABULARY)
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(flags.processes) as threads:
        roots = [(flags.folder or Path(temporary)) / f"corpus-{k}" for k in range(len(corpora))]
        projects = [open_project(path) for path in threads.map(scored, roots, corpora.values())]
        rows = dict(zip(corpora, (read(p, tokenizer) for p in projects), strict=True))
    least = min(size([r for r in found if r["kept"]]) for found in rows.values())
    budget = min(flags.steps, least // 2 // (BATCH * CONTEXT)) * BATCH * CONTEXT
    if not budget:
        nothing(f"{least} tokens are kept, too few for one step: name more --texts, or more --rows")
    settings = projects[0].section("plan", PlanConfig)
    todo = [run for name, found in rows.items() for run in runs(name, found, settings, flags.seeds, budget)]
    with ProcessPoolExecutor(flags.processes, mp_context=get_context("spawn")) as pool:
        done = list(zip(todo, pool.map(student(tokenizer, held).train, todo), strict=True))
    figures = {name: report(name, [(r, losses) for r, losses in done if r.corpus == name]) for name in corpora}
    for name, arms in figures.items():
        loss = {arm: statistics.fmean(seen["loss"]) for arm, seen in arms.items()}
        facts = {"limit": 1, "seeds": flags.seeds, "tokens": budget, "arms": arms}
        claim(f"held-out loss of lqs over random, {name}", loss["lqs"] / loss["random"], **facts)


if __name__ == "__main__":
    main()
