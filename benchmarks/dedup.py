"""Near-duplicate removal end to end: our stage `dedup`, the four stages of datatrove, and text-dedup.

    python benchmarks/dedup.py                          # ours alone
    python benchmarks/dedup.py --datatrove PYTHON --text-dedup PYTHON

All get the same seeded documents (a third are edited copies), word 5-grams, 14 bands of 8 hashes and two
processes; ours starts from the parts of `clean`, and the hashing of their keys counts. PYTHON is an interpreter of
a virtual environment that has the tool, as their requirements contradict ours:

    datatrove:   pip install datatrove==0.10.1 'xxhash<4' spacy tokenizers orjson
    text-dedup:  pip install datasets click-option-group regex scipy bitarray rich psutil ftfy xxhash
                 pip install --no-deps text-dedup==0.4.0

F1 is taken on a subset of 5,000 documents against brute force, over documents (`dedup_corpus.score`). Times are
of whole commands, the better of `--rounds` that take turns. The last lines are JSON, one a claim.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from dedup_corpus import documents, score  # noqa: E402

from pipelines.core.params import DEFAULTS  # noqa: E402
from transforms.core import parts, schemas  # noqa: E402
from transforms.text.keys import keys  # noqa: E402

PROCESSES = 2
PART_ROWS = 4096
LINEAR = 1.2

Tool = Callable[[Path], set[int]]  # the folder of a corpus → the documents that it keeps


def write(root: Path, count: int) -> float:
    """Writes `count` documents as a project and as JSONL at `root`; returns the seconds that their keys took."""
    texts, seconds = list(documents(count)), 0.0
    (root / "jsonl").mkdir(parents=True)
    keys.key_hashes(pa.array(texts[:1], pa.large_string()), [[]])
    for k in range(PROCESSES):
        with (root / "jsonl" / f"{k}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({"id": str(n), "text": texts[n]}) + "\n" for n in range(k, count, PROCESSES))
    for k in range(0, count, PART_ROWS):
        seconds += _write_part(root, k, texts[k : k + PART_ROWS])
    params = yaml.safe_load(DEFAULTS.read_text())
    (root / "params.yaml").write_text(yaml.safe_dump(params))
    return seconds


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


def call(command: Sequence[str | Path]) -> None:
    """Runs a command to its end; stops the benchmark, with what it said, if it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=7200, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"{command} failed with {done.returncode}:\n{done.stderr[-3000:]}")


def gradsift(engine: str) -> Tool:
    """Returns our stage, recomputed, on an engine."""

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
            call([python, ROOT / "benchmarks/dedup_datatrove.py", root / "jsonl", work, str(PROCESSES)])
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


def timed(tool: Tool, root: Path) -> tuple[float, set[int]]:
    """Returns the seconds that a tool takes, and what it keeps."""
    started = time.perf_counter()
    kept = tool(root)
    return time.perf_counter() - started, kept


def race(tools: dict[str, Tool], root: Path, rounds: int) -> dict[str, float]:
    """Returns the least seconds of each tool; they take turns."""
    best = dict.fromkeys(tools, float("inf"))
    for _ in range(rounds):
        for name, tool in tools.items():
            seconds, kept = timed(tool, root)
            best[name] = min(best[name], seconds)
            print(f"{name:<20} {seconds:8.1f} s, keeps {len(kept):,}", flush=True)
    return best


def main() -> None:
    """Prints times and F1, then one JSON line a claim."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--judged", type=int, default=5_000, help="documents that are compared by brute force")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder otherwise")
    parser.add_argument("--datatrove", type=Path, metavar="PYTHON")
    parser.add_argument("--text-dedup", type=Path, metavar="PYTHON")
    parser.add_argument("--no-growth", action="store_true", help="leave the run over 10 times the data out")
    flags = parser.parse_args()
    peers = {"datatrove": (flags.datatrove, datatrove), "text-dedup": (flags.text_dedup, text_dedup)}
    tools = {"gradsift local": gradsift("local"), "gradsift processes": gradsift("processes")}
    tools |= {name: make(python) for name, (python, make) in peers.items() if python}
    with tempfile.TemporaryDirectory(dir=flags.folder) as work:
        report(Path(work), tools, flags)


def report(work: Path, tools: dict[str, Tool], flags: argparse.Namespace) -> None:
    """Runs everything in the folder `work` and prints it."""
    write(work / "judged", flags.judged)
    texts = list(documents(flags.judged))
    f1 = {}
    for name, tool in tools.items():
        found = score(texts, tool(work / "judged"))
        f1[name] = round(found["f1"], 4)
        print(f"{name:<20} " + ", ".join(f"{k} {v:.4f}" for k, v in found.items()), flush=True)
    hashing = write(work / "one", flags.rows)
    print(f"{'key hashes':<20} {hashing:8.1f} s", flush=True)
    best = race(tools, work / "one", flags.rounds)
    ours = {name: best[name] + hashing for name in best if name.startswith("gradsift")}
    fastest = min(ours, key=lambda name: ours[name])
    lines = [
        {
            "claim": f"dedup against {name}", "ours": round(ours[fastest], 2), "peer": round(best[name], 2),
            "ratio": round(best[name] / ours[fastest], 2), "unit": "s", "documents": flags.rows, "engine": fastest,
            "ours_by_engine": {n: round(s, 2) for n, s in ours.items()}, "f1": {n: f1[n] for n in (fastest, name)},
        }
        for name in tools if name not in ours
    ]  # fmt: skip
    if not flags.no_growth:
        more = write(work / "ten", 10 * flags.rows)
        seconds = race({fastest: tools[fastest]}, work / "ten", 1)[fastest] + more
        ratio = seconds / (10 * ours[fastest])
        lines.append(
            {
                "claim": "dedup at 10 x the data, time a document", "ours": round(seconds / flags.rows * 1e5, 2),
                "peer": round(ours[fastest] / flags.rows * 1e6, 2), "ratio": round(ratio, 3), "limit": LINEAR,
                "unit": "µs",
            }
        )  # fmt: skip
    for line in lines:
        print(json.dumps(line, ensure_ascii=False))


if __name__ == "__main__":
    main()
