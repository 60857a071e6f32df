"""Drop exact duplicates, over all sources.

Reads:      clean (key_hash, rule_quality, kept)
Writes:     dedup/ (schemas.DEDUP, and corpus.json: what the last run saw), metrics/dedup.json
Guarantees: one survivor a key, the same whatever the parts' size and order and the number of workers; a
            part whose verdicts did not change keeps its bytes, so later stages skip it. A source that
            loses more than `max_source_loss` fails the run, after everything is written.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines import conserve, progress, stage
from pipelines.project import Project
from scoring import files
from scoring.errors import DataError
from transforms import parts, schemas
from transforms.dedup import READS, Dedup, DedupConfig

MODULE = "pipelines.dedup"
KEYS_PER_BUCKET = 200_000
MAX_BUCKETS = 256
MIN_ROWS = 10  # a smaller source says nothing about its loss


def run(project: Project) -> None:
    """Writes the sidecar `dedup` of every part of `samples`, all anew as soon as one key changes."""
    config = project.section("dedup", DedupConfig)
    wanted = stage.tasks(project, module=MODULE, config=None, reads=READS)
    corpus = parts.digest([t.fingerprint for t in wanted])
    folder = project.folder("dedup")
    parts.remove_strays(folder, [t.name for t in wanted])
    if project.force or not _is_done(folder, corpus):
        _compute(project, wanted)
        files.write_json(folder / "corpus.json", {"corpus": corpus, "parts": _fingerprints(folder)})
    _verify(project, wanted)
    metrics = conserve.verdicts(project, "dedup")
    stage.write_metrics(project, "dedup", metrics)
    check_loss(metrics["by_source"], config.max_source_loss)


def _is_done(folder: Path, corpus: str) -> bool:
    """Returns whether the last finished run saw the same `corpus` and its parts are still what it wrote."""
    try:
        seen = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        return bool(seen["corpus"] == corpus and seen["parts"] == _fingerprints(folder))
    except (OSError, ValueError, KeyError, TypeError, DataError):
        return False


def _fingerprints(folder: Path) -> dict[str, str]:
    return {name: parts.Footer(folder / name).fingerprint for name in parts.names(folder)}


def _compute(project: Project, wanted: Sequence[parts.Task]) -> None:
    rows = sum(parts.Footer(project.folder("clean") / t.name).rows for t in wanted)
    buckets = min(MAX_BUCKETS, 1 + rows // KEYS_PER_BUCKET)
    target = project.folder("dedup")
    progress.say(f"dedup: {rows:,} rows in {len(wanted)} parts")
    with progress.watch("dedup", target, {t.name for t in wanted}):
        stage.run_tasks(project, wanted, READS, Dedup(project.data, buckets), parts.WriteParts(target, schemas.DEDUP))


def _verify(project: Project, wanted: Sequence[parts.Task]) -> None:
    for task in wanted:
        sample, path = parts.Footer(project.folder("samples") / task.name), project.folder("dedup") / task.name
        if not path.exists() or parts.Footer(path).meta.get("ids") != sample.meta.get("ids"):
            raise DataError(
                "conservation is broken: a part of samples has no verdicts, or those of other samples",
                where=str(path),
                remedy="run the stage again with --force; if it stays, report it",
            )


def check_loss(by_source: Mapping[str, Mapping[str, Any]], max_loss: float) -> None:
    """Raises a DataError that names each source of 10 rows or more whose share of duplicates is above `max_loss`."""
    shares = {s: v["dropped"] / v["inputs"] for s, v in by_source.items() if v["inputs"] >= MIN_ROWS}
    worst = {source: share for source, share in shares.items() if share > max_loss}
    if worst:
        raise DataError(
            "sources lost too much to duplicates: "
            + ", ".join(
                f"{source} {share:.1%} of {by_source[source]['inputs']} rows" for source, share in worst.items()
            ),
            where=f"stage dedup; the limit is dedup.max_source_loss = {max_loss}",
            remedy="look at `cluster` in the dedup parts: a source read twice? Remove it from ingest.sources, or raise "
            "the limit; everything is written",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "dedup", argv)


if __name__ == "__main__":
    sys.exit(main())
