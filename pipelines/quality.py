"""Stage `quality`: a BERT-like model's score of every text, and which rows it keeps.

Reads: data/clean, data/dedup, the model, and the labels file if params name one.
Writes: data/quality (parts), data/quality/head (the fitted head and its card), metrics/quality.json.
Guarantees: a row's score depends on its text, the model and the head alone; the head depends on the kept
rows and the seed, not on how they lie in parts. A head is kept until its training rows have changed by more
than `refresh_ratio`, so a nightly increment scores new rows only.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipelines import conserve, deps, progress, stage, tables
from pipelines.project import Project
from scoring import degrade, drift, encoding, files, models, quality_head
from scoring.errors import DataError
from scoring.quality_head import Labelled
from transforms import parts, quality
from transforms.quality import QualityConfig
from transforms.schemas import QUALITY

READS = {"clean": ["clean_text", "kept"], "dedup": ["kept"]}

_FITTING_FIELDS = ("window_tokens", "batch_tokens", "train_rows", "heldout_ratio", "seed")
_CHARS_PER_TOKEN = 5  # an excerpt to learn from fills a window of text with spaces


class Source(NamedTuple):
    """A row that the weakly labelled head learns from: itself if `good`, else a degraded copy."""

    sample_id: str
    part: str
    good: bool


class HeadFile(NamedTuple):
    """The fitted head as it lies on disk, and the card that tells of it."""

    content: bytes
    card: dict[str, Any]


def run(project: Project) -> None:
    """Fits or keeps the head, scores what is not scored yet, and writes the metrics."""
    config = project.section("quality", QualityConfig)
    model = models.digest(config.model, project.root)
    head = prepare_head(project, config, model) if config.head == "fitted" else None
    if head is None:
        shutil.rmtree(head_folder(project), ignore_errors=True)
    stage.map_parts(
        project,
        quality.Score(config, project.root, project.runtime.threads, head.content if head else None),
        module="pipelines.quality",
        folder="quality",
        schema=QUALITY,
        reads=READS,
        config={name: getattr(config, name) for name in quality.SCORING_FIELDS},
        depends=[model, head.card["head"] if head else "no head"],
    )
    stage.write_metrics(project, "quality", {**conserve.verdicts(project, "quality"), "head": _summary(config, head)})


def head_folder(project: Project) -> Path:
    """Returns the folder of the fitted head."""
    return project.folder("quality") / "head"


def _summary(config: QualityConfig, head: HeadFile | None) -> dict[str, Any]:
    if head:
        return {k: v for k, v in head.card.items() if k not in ("row_ids", "key", "head")}
    if config.head == "model":
        return {"kind": "model", "model": config.model}
    return {
        "kind": "none",
        "model": config.model,
        "why": f"fewer than {quality_head.MIN_ROWS} good and as many other rows with text to learn from: all are kept",
    }


def prepare_head(project: Project, config: QualityConfig, model: str) -> HeadFile | None:
    """Returns the head to score with: the one on disk if it is still good, else a new one, written.

    None when the corpus holds too few rows with text to learn from.

    Raises:
      DataError: the head is worse on held-out rows than `min_heldout_f1`.
    """
    labelled = _labelled(project, config)
    sources = [] if labelled else choose(project, config)
    if not labelled and min(sum(s.good for s in sources), sum(not s.good for s in sources)) < quality_head.MIN_ROWS:
        progress.say("quality: too few rows with text to fit a head on; every row is kept, unscored")
        return None
    row_ids = [f"{r.row_id}:{r.good:d}" for r in labelled] or [f"{s.sample_id}:{s.good:d}" for s in sources]
    key = _key(config, model)
    kept = None if project.force else _reusable(head_folder(project), key, row_ids, config.refresh_ratio)
    if kept:
        _check(config, kept.card)
        return kept
    rows = labelled or _weak_rows(project, config, sources)
    head = _fit(project, config, rows, {"key": key, "row_ids": sorted(row_ids)})
    _check(config, head.card)
    _write(head_folder(project), head)
    return head


def _labelled(project: Project, config: QualityConfig) -> list[Labelled]:
    if config.labels is None:
        return []
    return quality_head.read_labels(project.root / config.labels, config.good_labels)


def _key(config: QualityConfig, model: str) -> str:
    values = {name: getattr(config, name) for name in _FITTING_FIELDS}
    return parts.digest(deps.code_version("pipelines.quality"), model, values, config.labels is None)


def _reusable(folder: Path, key: str, row_ids: Sequence[str], refresh_ratio: float) -> HeadFile | None:
    """Returns the head on disk if model, code and params are those of `key` and its rows are nearly `row_ids`."""
    try:
        head = HeadFile((folder / "head.safetensors").read_bytes(), json.loads((folder / "card.json").read_bytes()))
    except (OSError, ValueError):
        return None
    if head.card["key"] != key or head.card["head"] != _digest(head.content):
        return None
    return head if drift.distance(head.card["row_ids"], row_ids) <= refresh_ratio else None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _check(config: QualityConfig, card: dict[str, Any]) -> None:
    f1 = card["heldout"]["f1"]
    if f1 < config.min_heldout_f1:
        raise DataError(
            f"the quality head tells good from bad too poorly: F1 {f1:.3f} on {card['rows']['heldout']} held-out rows",
            where=f"quality.min_heldout_f1 is {config.min_heldout_f1}; by origin: {card['detected']}",
            remedy="give more or cleaner labels (quality.labels), another quality.model, or a lower min_heldout_f1",
        )


def _write(folder: Path, head: HeadFile) -> None:
    """Writes head and card, the card last: it names the head that it belongs to."""
    files.write_atomic(folder / "head.safetensors", lambda path: Path(path).write_bytes(head.content))
    files.write_json(folder / "card.json", head.card)


def choose(project: Project, config: QualityConfig) -> list[Source]:
    """Returns the rows to learn from: of the kept rows with text, those of the smallest hashes; at most
    `train_rows` to stand as good and as many others to be degraded, in the order of their hashes.

    Captions count too: a head that has seen no short text drops a quarter of the good ones. Neither the
    order of rows nor how they lie in parts matters, and new rows displace few old ones.
    """
    if not parts.names(project.folder("samples")):
        return []
    columns = {"samples": ["sample_id", "filename"], "clean": ["kept", "chars"], "dedup": ["kept"]}
    sql = f"""
        WITH rows AS (SELECT sample_id, parse_filename(filename) AS part,
                             md5(concat({config.seed}, ':', sample_id)) AS hash, hash[-1] < '8' AS good
                      FROM ({tables.zipped(project, columns)})
                      WHERE clean_kept AND dedup_kept AND chars > 0)
        (SELECT * FROM rows WHERE good ORDER BY hash LIMIT {config.train_rows})
        UNION ALL (SELECT * FROM rows WHERE NOT good ORDER BY hash LIMIT {config.train_rows})"""
    with tables.working(project) as connection:
        rows = connection.sql(f"SELECT sample_id, part, good FROM ({sql}) ORDER BY hash").fetchall()
    return [Source(*row) for row in rows]


def _weak_rows(project: Project, config: QualityConfig, sources: Sequence[Source]) -> list[Labelled]:
    """Returns excerpts of the good sources as they are, and of the others degraded, the kinds in turn."""
    texts = _texts(project, sources)
    good = [s.sample_id for s in sources if s.good]
    other = [s.sample_id for s in sources if not s.good]
    rows = [Labelled(i, _excerpt(config, i, texts[i]), True, "kept") for i in good]
    excerpts = [_excerpt(config, i, texts[i]) for i in other]
    degraded = degrade.degrade_in_turn(excerpts, [quality_head.hash64(config.seed, "degrade", i) for i in other])
    for sample_id, text, (kind, worse) in zip(other, excerpts, degraded, strict=True):
        if worse != text:
            rows.append(Labelled(sample_id, worse, False, kind))
    return rows


def _texts(project: Project, sources: Sequence[Source]) -> dict[str, str]:
    """Returns the clean texts of `sources` by sample id."""
    wanted = {s.sample_id for s in sources}
    found: dict[str, str] = {}
    for batch in parts.iter_columns(project.data, sorted({s.part for s in sources}), {"clean": ["clean_text"]}):
        ids = batch["sample_id"].to_pylist()
        rows = [k for k, sample_id in enumerate(ids) if sample_id in wanted]
        found |= zip([ids[k] for k in rows], batch["clean.clean_text"].take(rows).to_pylist(), strict=True)
    return found


def _excerpt(config: QualityConfig, row_id: str, text: str) -> str:
    rng = np.random.default_rng(quality_head.hash64(config.seed, "excerpt", row_id))
    chars = config.window_tokens * (1 if degrade.is_unspaced(text) else _CHARS_PER_TOKEN)
    return quality_head.excerpt(text, chars, rng)


def _fit(project: Project, config: QualityConfig, rows: Sequence[Labelled], stamp: dict[str, Any]) -> HeadFile:
    """Returns a head fitted on the first window of each row but the held-out ones, on which it is measured."""
    progress.say(f"quality: fitting a head on {len(rows)} rows")
    embeddings = _embed(project, config, rows)
    good = np.array([r.good for r in rows], bool)
    held = quality_head.heldout(rows, config.heldout_ratio, config.seed)
    head = quality_head.fit(embeddings[~held], good[~held])
    probabilities = head.probabilities(embeddings[held])
    content = head.to_bytes()
    card = {
        **stamp,
        "kind": "weak labels" if config.labels is None else "labels",
        "labels": config.labels,
        "model": config.model,
        "head": _digest(content),
        "row_ids_digest": parts.digest(stamp["row_ids"]),
        "rows": {
            "good": int(good.sum()),
            "bad": int((~good).sum()),
            "fitted": int((~held).sum()),
            "heldout": int(held.sum()),
        },
        "heldout": quality_head.evaluate(probabilities, good[held]),
        "detected": quality_head.detected([r for r, h in zip(rows, held, strict=True) if h], probabilities),
    }
    return HeadFile(content, card)


def _embed(project: Project, config: QualityConfig, rows: Sequence[Labelled]) -> encoding.Floats:
    tokenizer, model = quality.load_model(config, project.root, project.runtime.threads, models.load_encoder)
    found = [ids[: config.window_tokens] for ids in encoding.token_ids(tokenizer, [r.text for r in rows])]
    return encoding.embed(model, tokenizer, found, config.batch_tokens)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage; returns the exit code."""
    return stage.main(run, "quality", argv)


if __name__ == "__main__":
    sys.exit(main())
