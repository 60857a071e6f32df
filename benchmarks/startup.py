"""What a command costs before it does anything: CPU seconds of whole processes, on a small project made here.

    python benchmarks/startup.py [--project FOLDER] [--times 3]

Claims: `query over bare DuckDB`, the CPU of `gradsift query "select 1"` over that of a process that imports DuckDB
and runs the same; `no-change run over one full import`, that of a `gradsift run` with nothing to do over a process
that imports beam, torch, transformers and numba and ends. Each is the least of the times in turn, in one run.
The lines before them are seconds of each command, and of a run after one file came that no reader can read.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from claim import claim, nothing
from harness import GRADSIFT, ROOT, parser, write_params

SMALL = {
    "sample": {"texts": 90, "pictures": 6, "videos": 2, "sounds": 2},
    "ingest": {
        "rows_per_part": 32,
        "max_reject_ratio": 1.0,
        "sources": [
            {"name": "texts", "paths": ["data/sample/texts.jsonl"]},
            {"name": "media", "paths": ["data/sample/pictures", "data/sample/videos", "data/sample/sounds"]},
            {"name": "own", "paths": ["own"]},
        ],
    },
    "quality": {
        "train_rows": 40, "window_tokens": 32, "stride_tokens": 32, "max_windows": 2, "min_heldout_f1": 0.5,
    },
    "reference": {
        "vocabulary": 512, "layers": 2, "width": 32, "heads": 2, "context": 64, "train_rows": 60, "steps": 12,
        "batch_rows": 8, "checkpoints": 3,
    },
    "gradients": {"max_tokens": 64, "target_rows": 8, "sketch": {"rank": 8, "width": 512}},
    "lqs": {"min_canary_auc": 0.0, "canaries": {"rows": 0, "chars": 400}},
    "plan": {"shard_rows": 16},
    "runtime": {"threads": 1},
}  # fmt: skip
COMMAND = GRADSIFT[:-1]
BARE = [sys.executable, "-c", "import duckdb; print(duckdb.sql('select 1'))"]
FULL = [sys.executable, "-c", "import apache_beam, torch, transformers, numba"]


def main() -> None:
    """Builds the project unless it is there, measures, and prints the claims."""
    options = parser(__doc__)
    options.add_argument("--project", type=Path, help="a folder to make the project in, or to find it")
    options.add_argument("--times", type=int, default=3, help="measurements of each command; the least counts")
    flags = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = flags.project or Path(temporary)
        if not (root / "reports/index.html").is_file():
            build(root)
        measure(root, flags.times)


def build(root: Path) -> None:
    """Makes the small project at `root` and runs it once."""
    (root / "own").mkdir(parents=True, exist_ok=True)
    write_params(root, SMALL)
    reject(root, 0)
    print("building a small project: a few minutes", file=sys.stderr, flush=True)
    if cpu_s(root, GRADSIFT) <= 0:
        nothing("the run did not end well")


def reject(root: Path, number: int) -> None:
    """Adds a file that no decoder can read to the source `own`."""
    (root / "own" / f"broken-{number}.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(64 + number))


def measure(root: Path, times: int) -> None:
    """Prints the seconds of each command, then the claims."""
    first = "SELECT sample_id FROM samples_all WHERE kept AND modality = 'text' ORDER BY 1 LIMIT 1"
    sample_id = output(root, [*COMMAND, "query", first, "--csv"]).split()[-1]
    cpu_s(root, GRADSIFT)  # what the build left to settle
    commands = {
        "--help": [*COMMAND, "--help"], "query": [*COMMAND, "query", "select 1"], "bare DuckDB": BARE,
        "explain": [*COMMAND, "explain", sample_id], "no-change run": GRADSIFT, "full import": FULL,
    }  # fmt: skip
    rounds = [{name: cpu_s(root, command) for name, command in commands.items()} for _ in range(times)]
    least = {name: min(found[name] for found in rounds) for name in commands}
    reject(root, len(list((root / "own").iterdir())))
    least["increment of one rejected file"] = cpu_s(root, GRADSIFT)
    for name, seconds in least.items():
        print(f"{name:<32} {seconds:6.2f} CPU s")
    claim("query over bare DuckDB", least["query"] / least["bare DuckDB"], limit=3, seconds=round(least["query"], 3))
    ratio, seconds = least["no-change run"] / least["full import"], round(least["no-change run"], 3)
    claim("no-change run over one full import", ratio, limit=2, seconds=seconds)


def cpu_s(root: Path, command: Sequence[str]) -> float:
    """Returns the CPU seconds, user and system, of `command` in `root` and of its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output(root, command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def output(root: Path, command: Sequence[str]) -> str:
    """Returns what `command` prints; ends the benchmark with its words where it fails."""
    found = subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True, check=False)
    if found.returncode:
        nothing(f"{' '.join(command)}: {found.stdout}{found.stderr}")
    return found.stdout


def environment() -> dict[str, str]:
    """Returns this process's environment with our checkout first and no network."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}


if __name__ == "__main__":
    main()
