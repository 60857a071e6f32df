"""Peak memory of every stage at 1 × and 10 × the data: bounded by part size and workers, not by corpus.

    python benchmarks/memory.py                 # all stages, about ten minutes on 2 cores
    python benchmarks/memory.py --rows 256      # a smaller base

Each stage runs in a process of its own; the peak is what the operating system accounts to it
(`ru_maxrss`), models included. The corpus is words of the standard library's documentation in
seeded order, a picture for every twentieth row; a part holds half the base rows. The last line is JSON.
"""

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pipelines.core.params import DEFAULTS  # noqa: E402
from pipelines.core.stage import ORDER  # noqa: E402

LIMIT = 1.2


def sentences() -> list[str]:
    """Returns the sentences of the documentation that Python ships."""
    from pydoc_data.topics import topics

    text = " ".join(" ".join(topics.values()).split())
    return [s.strip() + "." for s in text.split(". ") if 40 < len(s) < 300]


def documents(rows: int) -> Iterator[dict[str, str]]:
    """Yields seeded documents of about 250 words."""
    pool, rng = sentences(), random.Random(7)
    for k in range(rows):
        yield {"id": f"doc-{k}", "text": " ".join(rng.choice(pool) for _ in range(14))}


def picture(path: Path, k: int) -> None:
    """Writes a seeded 640 × 480 noise picture."""
    from PIL import Image

    data = random.Random(k).randbytes(64 * 48 * 3)
    buffer = io.BytesIO()
    Image.frombytes("RGB", (64, 48), data).resize((640, 480)).save(buffer, "JPEG")
    path.write_bytes(buffer.getvalue())


def corpus(root: Path, rows: int, part_rows: int) -> None:
    """Writes a project of `rows` documents and their pictures at `root`."""
    (root / "pictures").mkdir(parents=True)
    with (root / "docs.jsonl").open("w") as file:
        for row in documents(rows):
            file.write(json.dumps(row) + "\n")
    for k in range(rows // 20):
        picture(root / "pictures" / f"{k:06d}.jpg", k)
    params = yaml.safe_load(DEFAULTS.read_text())
    params["ingest"]["sources"] = [{"name": "docs", "paths": ["docs.jsonl"]}, {"name": "pics", "paths": ["pictures"]}]
    params["ingest"]["rows_per_part"] = part_rows
    params["reference"]["train_rows"] = 128
    params["quality"]["train_rows"] = 64
    params["clean"]["repetition"] = dict.fromkeys(params["clean"]["repetition"], 1.0)  # every row is to be computed
    params["clean"]["gopher"] |= {
        "min_alpha_word_ratio": 0.0,
        "max_ellipsis_ratio": 1.0,
        "max_ellipsis_line_ratio": 1.0,
    }
    params["quality"] |= {"min_quality": 0.0, "min_heldout_f1": 0.0}
    (root / "params.yaml").write_text(yaml.safe_dump(params))


def peak_mb(root: Path, stage: str) -> float:
    """Runs `stage` of the project at `root`; returns its peak resident memory."""
    command = [sys.executable, "-m", f"pipelines.{stage}", "--params", str(root / "params.yaml")]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{stage} failed with {process.returncode}:\n{said}")
    return usage.ru_maxrss / 1024


def check_kept(root: Path, rows: int) -> None:
    """Stops a benchmark whose rows were dropped: the later stages would have nothing to do."""
    kept = json.loads((root / "metrics" / "quality.json").read_text())["kept"]
    if kept < 0.9 * rows:
        raise SystemExit(f"only {kept} of {rows} rows are kept: nothing would be measured")


def main() -> None:
    """Prints a table and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=512, help="documents of the base corpus")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder otherwise")
    parser.add_argument("--until", choices=ORDER[1:], default=ORDER[-1], help="the last stage to run")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=flags.folder) as folder:
        roots = {times: Path(folder) / f"x{times}" for times in (1, 10)}
        for times, root in roots.items():
            corpus(root, flags.rows * times, flags.rows // 2)
        print(f"{'stage':<10} {'1 x MB':>8} {'10 x MB':>8} {'ratio':>6}")
        ratios = {}
        for stage in ORDER[1 : ORDER.index(flags.until) + 1]:
            one, ten = (peak_mb(roots[times], stage) for times in (1, 10))
            ratios[stage] = round(ten / one, 3)
            if stage == "quality":
                check_kept(roots[10], flags.rows * 10)
            print(f"{stage:<10} {one:>8.0f} {ten:>8.0f} {ratios[stage]:>6.2f}", flush=True)
    worst = max(ratios, key=lambda s: ratios[s])
    result = {"claim": "peak memory at 10 x the data", "limit": LIMIT, "worst": worst, "ratio": ratios[worst]}
    print(json.dumps(result | {"ratios": ratios}))


if __name__ == "__main__":
    main()
