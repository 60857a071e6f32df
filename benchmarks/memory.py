"""Peak memory of every stage at 1 × and 10 × the data: bounded by part size and workers, not by corpus.

    python benchmarks/memory.py                               # 128 and 1,280 rows, as far as `dedup`
    python benchmarks/memory.py --rows 128 --until report     # every stage, about ten minutes: the README's figure

Each stage runs in a process of its own; the peak is what the operating system accounts to it
(`ru_maxrss`), models included. The corpus is sentences of the texts in seeded order, a picture for every
twentieth row; a part holds half the base rows.
"""

import io
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from claim import claim, nothing
from harness import ROOT, parser, shipped, write_params
from inputs import texts as source

from pipelines.core.stage import ORDER

LIMIT = 1.2


def documents(pool: Sequence[str], rows: int) -> Iterator[dict[str, str]]:
    """Yields seeded documents of about 250 words."""
    rng = random.Random(7)
    for k in range(rows):
        yield {"id": f"doc-{k}", "text": " ".join(rng.choice(pool) for _ in range(14))}


def picture(path: Path, k: int) -> None:
    """Writes a seeded 640 × 480 noise picture."""
    from PIL import Image

    data = random.Random(k).randbytes(64 * 48 * 3)
    buffer = io.BytesIO()
    Image.frombytes("RGB", (64, 48), data).resize((640, 480)).save(buffer, "JPEG")
    path.write_bytes(buffer.getvalue())


def corpus(root: Path, pool: Sequence[str], rows: int, part_rows: int) -> None:
    """Writes a project of `rows` documents and their pictures at `root`."""
    (root / "pictures").mkdir(parents=True)
    with (root / "docs.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in documents(pool, rows))
    for k in range(max(1, rows // 20)):
        picture(root / "pictures" / f"{k:06d}.jpg", k)
    write_params(root, settings(part_rows))


def settings(part_rows: int) -> dict[str, Any]:
    """Returns params that drop no row, so that every row is computed in every stage."""
    tree = shipped()
    sources = [{"name": "docs", "paths": ["docs.jsonl"]}, {"name": "pics", "paths": ["pictures"]}]
    tree["ingest"] |= {"sources": sources, "rows_per_part": part_rows}
    tree["reference"]["train_rows"] = 128
    tree["quality"] |= {"train_rows": 64, "min_quality": 0.0, "min_heldout_f1": 0.0}
    for family in ("gopher", "repetition"):
        tree["clean"][family]["drop"] = False
    return tree


def peak_mb(root: Path, stage: str) -> float:
    """Runs `stage` of the project at `root`; returns its peak resident memory."""
    command = [sys.executable, "-m", f"pipelines.{stage}", "--params", str(root / "params.yaml")]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    with process.stderr as stream:
        said = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{stage} failed with {process.returncode}:\n{said}")
    return usage.ru_maxrss / 1024


def check_kept(root: Path, rows: int) -> None:
    """Stops a benchmark whose rows were dropped: the later stages would have nothing to do."""
    kept = json.loads((root / "metrics" / "quality.json").read_text())["kept"]
    if kept < 0.9 * rows:
        nothing(f"only {kept} of {rows} rows are kept: nothing would be measured")


def ratios(roots: dict[int, Path], rows: int, stages: Sequence[str]) -> dict[str, float]:
    """Returns stage → its peak at 10 × the data over its peak at 1 ×; prints both."""
    print(f"{'stage':<10} {'1 x MB':>8} {'10 x MB':>8} {'ratio':>6}")
    found = {}
    for stage in stages:
        one, ten = (peak_mb(roots[times], stage) for times in (1, 10))
        found[stage] = round(ten / one, 3)
        if stage == "quality":
            check_kept(roots[10], rows * 10)
        print(f"{stage:<10} {one:>8.0f} {ten:>8.0f} {found[stage]:>6.2f}", flush=True)
    return found


def main() -> None:
    """Prints a table and the claim."""
    options = parser(__doc__, texts="the topics of Python's help", folder=True)
    options.add_argument("--rows", type=int, default=128, help="documents of the base corpus")
    options.add_argument("--until", choices=ORDER[1:], default="dedup", help="the last stage to run")
    flags = options.parse_args()
    pool = source.sentences(source.of(flags.texts, source.topics))
    with tempfile.TemporaryDirectory(dir=flags.folder) as folder:
        roots = {times: Path(folder) / f"x{times}" for times in (1, 10)}
        for times, root in roots.items():
            corpus(root, pool, flags.rows * times, max(1, flags.rows // 2))
        found = ratios(roots, flags.rows, ORDER[1 : ORDER.index(flags.until) + 1])
    worst = max(found, key=lambda s: found[s])
    claim("peak memory at 10 x the data", found[worst], limit=LIMIT, worst=worst, ratios=found)


if __name__ == "__main__":
    main()
