"""Drop duplicates, exact and near, over all sources.

Reads:      clean (key_hash, rule_quality, kept, clean_text), samples (modality)
Writes:     dedup/ (schemas.DEDUP, and corpus.json: what the last run saw; lines/: pipelines.passes.corpus_lines),
            metrics/dedup.json
Guarantees: one survivor a key and a cluster, the same whatever the parts' size and order and the number of
            workers; a part whose verdicts did not change keeps its bytes, so later stages skip it; signatures
            are computed for new parts only. A source that loses more than `max_source_loss` fails the run,
            after everything is written.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import apache_beam as beam
import pyarrow as pa

from pipelines.core import conserve, progress, stage, trust
from pipelines.core.options import make_pipeline, spread
from pipelines.core.project import Project
from pipelines.passes import corpus_lines
from scoring.core import files
from scoring.core.errors import DataError
from scoring.core.types import Record
from transforms.core import arrow_files, part_io, parts, schemas
from transforms.dedup import near
from transforms.dedup.config import DedupConfig, NearConfig
from transforms.dedup.exact import KEYS
from transforms.dedup.transform import Corpus, FindCopies, JudgeParts, MatchBundles

MODULE = "pipelines.dedup"
READS: parts.Reads = {"samples": near.TEXTS["samples"], "clean": [*KEYS["clean"], "clean_text"]}
KEYS_PER_BUCKET = 200_000
MAX_BUCKETS = 256
HASHES_PER_SLICE = 20_000_000  # of a band, in one worker's memory
SHINGLES_PER_BUNDLE = 4_000_000
MIN_ROWS = 10  # a smaller source says nothing about its loss
KEPT = ("signatures", "shingles")  # what later runs use again
MADE = ("settled", "bands", "places", "bundles", "near")


def run(project: Project) -> None:
    """Writes the sidecar `dedup` of every part of `samples`; all of them are recomputed as soon as one text changes."""
    config = project.section("dedup", DedupConfig)
    sidecar = stage.Sidecar(folder="dedup", schema=schemas.DEDUP, reads=READS, code=MODULE, config=config.near)
    wanted = stage.tasks(project, sidecar)
    folder = project.folder("dedup")
    parts.remove_strays(folder, [t.name for t in wanted])
    stage.write_empty(project, sidecar, trust.undone(folder, wanted))
    rows = [t for t in wanted if stage.has_rows(project, t.name)]
    seen = parts.digest([t.fingerprint for t in rows])
    if project.force or not _is_done(folder, seen, rows):
        counts = _compute(project, Corpus(project.data, tuple(rows)), config.near)
        record = {"corpus": seen, "parts": _fingerprints(folder, rows), "near": counts}
        files.write_json(folder / "corpus.json", record)
    _verify(project, wanted)
    corpus_lines.run(project, kept={"clean": ["kept"], "dedup": ["kept"]})
    counts = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))["near"]
    metrics = conserve.verdicts(project, "dedup") | {"near": counts}
    stage.write_metrics(project, "dedup", metrics)
    check_loss(metrics["by_source"], config.max_source_loss)


def _is_done(folder: Path, corpus: str, rows: Sequence[parts.Task]) -> bool:
    """Returns whether the last finished run saw the same `corpus` and its parts are still what it wrote."""
    try:
        seen = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        return bool(seen["corpus"] == corpus and seen["parts"] == _fingerprints(folder, rows) and "near" in seen
                    and not trust.damaged(folder, list(seen["parts"])))  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, DataError):
        return False


def _fingerprints(folder: Path, rows: Sequence[parts.Task]) -> dict[str, str]:
    return {t.name: parts.Footer(folder / t.name).fingerprint for t in rows}


def _compute(project: Project, corpus: Corpus, config: NearConfig) -> dict[str, int]:
    """Writes all parts; returns the metrics of the near-duplicate search."""
    rows = sum(parts.Footer(project.folder("clean") / name).rows for name in corpus.names)
    progress.say(f"dedup: {rows:,} rows in {len(corpus.tasks)} parts")
    _clear(project, corpus)
    buckets, slices = min(MAX_BUCKETS, 1 + rows // KEYS_PER_BUCKET), 1 + rows // HASHES_PER_SLICE
    with progress.watch("dedup", project.folder("dedup"), set(corpus.names)):
        _run(project, corpus.names, FindCopies(corpus, config, buckets, slices))
        links = near.link(map(arrow_files.read, _made(corpus, "bands")))
        bundles, touched = _bundle(corpus, links), _touched(corpus, links)
        match = [MatchBundles(corpus, config, bundles)] if bundles else []
        write = part_io.WriteParts(project.folder("dedup"), schemas.DEDUP)
        _run(project, touched if bundles else corpus.names, *match, JudgeParts(corpus), write)
    full = sum(int(arrow_files.recorded(path)["full"]) for path in _made(corpus, "near"))
    for name in MADE:
        shutil.rmtree(corpus.folder(name), ignore_errors=True)
    return {"candidates": len(links.refs), "full_bands": full}


def _run(project: Project, names: Sequence[str], *steps: beam.PTransform) -> None:
    """Runs the steps over the parts `names`; returns when all is on disk."""
    if not names:
        return
    with make_pipeline(project.runtime) as pipeline:
        items = spread(pipeline, names, str, project.runtime.engine)
        for step in steps:
            items = items | type(step).__name__ >> step


def _clear(project: Project, corpus: Corpus) -> None:
    """Removes what another run left unfinished, and what belongs to parts that are gone."""
    for name in (*MADE, *(KEPT if project.force else ())):
        shutil.rmtree(corpus.folder(name), ignore_errors=True)
    wanted = {f"{name}{arrow_files.SUFFIX}" for name in corpus.names}
    for name in KEPT:
        for path in corpus.folder(name).glob("*"):
            if path.name not in wanted:
                path.unlink()


def _made(corpus: Corpus, folder: str) -> list[Path]:
    return sorted(corpus.folder(folder).glob(f"*{arrow_files.SUFFIX}"))


def _touched(corpus: Corpus, links: near.Links) -> list[str]:
    """Returns the parts of whose rows some share a band, and writes the places of those rows."""
    names = []
    for number, places in near.by_part(links.refs):
        names.append(corpus.names[number])
        arrow_files.write_scratch(corpus.file("places", names[-1]), pa.record_batch({"place": pa.array(places)}))
    return names


def _bundle(corpus: Corpus, links: near.Links) -> int:
    """Writes the bundles of rows that are compared; returns how many."""
    rows = pa.concat_tables(_ranks(corpus, links)) if len(links.refs) else None
    found = near.bundle(links, rows, SHINGLES_PER_BUNDLE) if rows else ()
    count = 0
    for count, batch in enumerate(found, 1):
        arrow_files.write_scratch(corpus.file("bundles", f"{count - 1:05d}"), batch)
    return count


def _ranks(corpus: Corpus, links: near.Links) -> Iterator[pa.Table]:
    """Yields quality, sample_id and shingles of the rows of `links`, in their order, part by part."""
    for number, places in near.by_part(links.refs):
        taken, name = pa.array(places), corpus.names[number]
        settled, signed = (arrow_files.read(corpus.file(f, name)) for f in ("settled", "signatures"))
        columns = {c: settled[c].take(taken) for c in ("quality", "sample_id")}
        yield pa.table({**columns, "shingles": signed["shingles"].take(taken)})


def _verify(project: Project, wanted: Sequence[parts.Task]) -> None:
    for task in wanted:
        sample, path = parts.Footer(project.folder("samples") / task.name), project.folder("dedup") / task.name
        if not path.exists() or parts.Footer(path).meta.get("ids") != sample.meta.get("ids"):
            raise DataError(
                "conservation is broken: a part of samples has no verdicts, or verdicts for other samples",
                where=str(path),
                remedy="rerun the stage with --force; if it persists, report it",
            )


def check_loss(by_source: Mapping[str, Record], max_loss: float) -> None:
    """Raises a DataError that names each source of 10 rows or more whose share of duplicates is above `max_loss`."""
    shares = {s: v["dropped"] / v["inputs"] for s, v in by_source.items() if v["inputs"] >= MIN_ROWS}
    worst = {source: share for source, share in shares.items() if share > max_loss}
    if worst:
        raise DataError(
            "too many duplicates in sources: "
            + ", ".join(
                f"{source} {share:.1%} of {by_source[source]['inputs']} rows" for source, share in worst.items()
            ),
            where=f"stage dedup; the limit is dedup.max_source_loss = {max_loss}",
            remedy="check `cluster` in data/dedup: is a source read twice? Remove it from ingest.sources, or raise "
            "the limit; all outputs were written",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "dedup", argv)


if __name__ == "__main__":
    sys.exit(main())
