"""Near-duplicate removal end to end: our stage `dedup`, the four stages of datatrove, and text-dedup.

    python benchmarks/dedup.py                          # ours alone, 2,000 and 20,000 documents
    python benchmarks/dedup.py --rows 50000 --judged 5000 --datatrove PYTHON --text-dedup PYTHON     # the README's

All get the same seeded documents (a third are edited copies), word 5-grams, 14 bands of 8 hashes and two
processes; ours starts from the parts of `clean`, and the hashing of their keys counts. PYTHON is an interpreter of
a virtual environment that has the tool, as their requirements contradict ours:

    datatrove:   pip install datatrove==0.10.1 'xxhash<4' spacy tokenizers orjson
    text-dedup:  pip install datasets click-option-group regex scipy bitarray rich psutil ftfy xxhash
                 pip install --no-deps text-dedup==0.4.0

F1 is taken on `--judged` documents against brute force, over documents (`inputs.copies.score`). Times are of whole
commands, start-up included, the better of `--rounds` that take turns.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from claim import claim, need_in
from harness import BENCHMARKS, PROCESSES, call, parser, race, shipped, write_params
from inputs import texts as source
from inputs.copies import documents, score

from transforms.core import parts, schemas
from transforms.text.keys import keys

PART_ROWS = 4096
LINEAR = 1.2
BARS = {"datatrove": 5, "text-dedup": 3}  # times their speed
INSTALL = {
    "datatrove": "pip install datatrove==0.10.1 'xxhash<4' spacy tokenizers orjson",
    "text-dedup": "pip install datasets click-option-group regex scipy bitarray rich psutil ftfy xxhash "
    "&& pip install --no-deps text-dedup==0.4.0",
}

Tool = Callable[[Path], set[int]]  # the folder of a corpus → the documents that it keeps


def write(root: Path, texts: Sequence[str]) -> float:
    """Writes the documents as a project and as JSONL at `root`; returns the seconds that their keys took."""
    (root / "jsonl").mkdir(parents=True)
    keys.key_hashes(pa.array(texts[:1], pa.large_string()), [[]])
    for k in range(PROCESSES):
        rows = (json.dumps({"id": str(n), "text": texts[n]}) + "\n" for n in range(k, len(texts), PROCESSES))
        (root / "jsonl" / f"{k}.jsonl").write_text("".join(rows), encoding="utf-8")
    write_params(root, shipped())
    return sum(_write_part(root, k, texts[k : k + PART_ROWS]) for k in range(0, len(texts), PART_ROWS))


def _write_part(root: Path, first: int, texts: Sequence[str]) -> float:
    column, started = pa.array(texts, pa.large_string()), time.perf_counter()
    hashes = keys.key_hashes(column, [[]] * len(texts))
    seconds = time.perf_counter() - started
    ids = pa.array([f"{first + k:09d}" for k in range(len(texts))])
    samples = {"sample_id": ids, "source": _all("docs", ids), "modality": _all("text", ids), "text": column}
    kept = {"kept": _all(True, ids), "reasons": pa.array([[]] * len(ids), pa.list_(pa.string()))}
    clean = {"sample_id": ids, "clean_text": column, "key_hash": hashes, "rule_quality": _all(1.0, ids), **kept}
    for folder, schema, columns in (("samples", schemas.SAMPLES, samples), ("clean", schemas.CLEAN, clean)):
        rest = {f.name: pa.nulls(len(ids), f.type) for f in schema if f.name not in columns}
        part = parts.Part(f"part-{first // PART_ROWS:016x}-0000.parquet", "made", pa.record_batch({**columns, **rest}))
        parts.write_part(root / "data" / folder, part, schema)
    return seconds


def _all(value: object, like: pa.Array) -> pa.Array:
    return pa.array([value] * len(like))


def gradsift(engine: str) -> Tool:
    """Returns our stage, computed from the start, on an engine."""

    def run(root: Path) -> set[int]:
        flags = ["--engine", engine, "--workers", PROCESSES, "--force", "--params", root / "params.yaml"]
        call([sys.executable, "-m", "pipelines.dedup", *map(str, flags)])
        batches = [parts.read_part(p, ["sample_id", "kept"]) for p in sorted((root / "data/dedup").glob(parts.PATTERN))]
        return {int(row["sample_id"]) for batch in batches for row in batch.to_pylist() if row["kept"]}

    return run


def datatrove(python: Path) -> Tool:
    """Returns datatrove's local executor, run by the interpreter that has it."""

    def run(root: Path) -> set[int]:
        with tempfile.TemporaryDirectory(dir=root) as work:
            call([python, BENCHMARKS / "peers/datatrove_dedup.py", root / "jsonl", work, str(PROCESSES)])
            lines = (line for path in Path(work, "kept").glob("*") for line in path.open(encoding="utf-8"))
            return {int(json.loads(line)["id"]) for line in lines}

    return run


def text_dedup(python: Path) -> Tool:
    """Returns text-dedup with its faster hash, run by the interpreter that has it."""

    def run(root: Path) -> set[int]:
        from datasets import load_from_disk

        with tempfile.TemporaryDirectory(dir=root) as work:
            flags = {
                "path": "json", "data_files": root / "jsonl/*.jsonl", "split": "train", "cache_dir": f"{work}/cache",
                "output": f"{work}/kept", "column": "text", "num_proc": PROCESSES, "ngram": 5, "num_perm": 112,
                "b": 14, "r": 8, "hash_func": "xxh3",
            }  # fmt: skip
            call([python, "-m", "text_dedup.minhash", *(str(x) for k, v in flags.items() for x in (f"--{k}", v))])
            return {int(found) for found in load_from_disk(f"{work}/kept")["id"]}

    return run


def timed(tools: dict[str, Tool], root: Path, rounds: int) -> dict[str, float]:
    """Returns the least seconds of each tool."""
    best, kept = race({name: partial(tool, root) for name, tool in tools.items()}, rounds)
    for name, found in kept.items():
        print(f"{name:<20} keeps {len(found):,}", flush=True)
    return best


def judged(root: Path, tools: dict[str, Tool], texts: Sequence[str]) -> dict[str, float]:
    """Returns the F1 of each tool."""
    write(root, texts)
    f1 = {}
    for name, tool in tools.items():
        found = score(texts, tool(root))
        f1[name] = round(found["f1"], 4)
        print(f"{name:<20} " + ", ".join(f"{k} {v:.4f}" for k, v in found.items()), flush=True)
    return f1


def report(work: Path, tools: dict[str, Tool], flags: argparse.Namespace) -> None:
    """Runs everything in the folder `work` and prints it."""
    pool = source.sentences(source.of(flags.texts, source.topics))
    f1 = judged(work / "judged", tools, list(documents(pool, flags.judged)))
    hashing = write(work / "one", list(documents(pool, flags.rows)))
    print(f"{'key hashes':<20} {hashing:8.1f} s", flush=True)
    best = timed(tools, work / "one", flags.rounds)
    ours = {name: best[name] + hashing for name in best if name.startswith("gradsift")}
    fastest = min(ours, key=lambda name: ours[name])
    growth = None
    if not flags.no_growth:
        more = write(work / "ten", list(documents(pool, 10 * flags.rows)))
        growth = timed({fastest: tools[fastest]}, work / "ten", 1)[fastest] + more
    for name in best:
        if name not in ours:
            facts = {"documents": flags.rows, "f1": {n: f1[n] for n in (fastest, name)}}
            _against(name, best[name], ours, **facts)
    if growth:
        _growth(growth / (10 * flags.rows), ours[fastest] / flags.rows)
    claim("dedup F1 against brute force", f1[fastest], documents=flags.judged)


def _against(peer: str, seconds: float, ours: dict[str, float], **facts: object) -> None:
    engine = min(ours, key=lambda name: ours[name])
    by_engine = {name: round(s, 2) for name, s in ours.items()}
    facts |= {"ours": by_engine[engine], "ours_by_engine": by_engine, "engine": engine, "bar": BARS[peer], "unit": "s"}
    claim(f"dedup against {peer}", seconds / ours[engine], peer=round(seconds, 2), **facts)


def _growth(many: float, few: float) -> None:
    """Claims how the seconds a document grow."""
    facts = {"ours": round(many * 1e6, 2), "peer": round(few * 1e6, 2), "unit": "µs"}
    claim("dedup at 10 x the data, time a document", many / few, limit=LINEAR, **facts)


def main() -> None:
    """Prints times and F1, then the claims."""
    found = parser(__doc__, texts="the topics of Python's help", folder=True)
    found.add_argument("--rows", type=int, default=2_000)
    found.add_argument("--judged", type=int, default=1_000, help="documents that are compared by brute force")
    found.add_argument("--rounds", type=int, default=1)
    found.add_argument("--datatrove", type=Path, metavar="PYTHON")
    found.add_argument("--text-dedup", type=Path, metavar="PYTHON")
    found.add_argument("--no-growth", action="store_true", help="leave the run over 10 times the data out")
    flags = found.parse_args()
    with tempfile.TemporaryDirectory(dir=flags.folder) as work:
        report(Path(work), raced(flags), flags)


def raced(flags: argparse.Namespace) -> dict[str, Tool]:
    """Returns the tools: ours on the engine `local`, and where there are peers on `processes` and these."""
    peers = {"datatrove": (flags.datatrove, datatrove), "text-dedup": (flags.text_dedup, text_dedup)}
    given = {name: make(python) for name, (python, make) in peers.items() if python}
    for name in given:
        need_in(peers[name][0], name.replace("-", "_"), f"--{name}", INSTALL[name])
    engines = ("local", "processes") if given else ("local",)
    return {**{f"gradsift {engine}": gradsift(engine) for engine in engines}, **given}


if __name__ == "__main__":
    main()
