"""The head of the quality stage: its training rows, fitting or reuse, and its metrics on unseen rows.

Reads: data/samples (ids), data/clean, data/dedup, the model, and the labels if params name some.
Writes: data/quality/head (the head and its card), data/quality/labels.parquet.
Guarantees: the head depends on the rows of the corpus and the seed, not on how they lie in parts, and is kept
until its training rows have changed by more than `refresh_ratio`.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipelines.core import deps, progress, trust
from pipelines.core.project import Project
from pipelines.quality_models import head_file, weak_labels
from pipelines.quality_models.head_file import HeadFile
from scoring.core import drift
from scoring.core.errors import ConfigError
from scoring.core.types import JsonObject
from scoring.models import encoders, encoding, windows
from scoring.models.types import Tokenizer
from scoring.quality import figures as quality_figures
from scoring.quality import head as quality_head
from scoring.quality.head import Fitted, Labelled
from transforms.clean import transform as clean
from transforms.clean.config import CleanConfig
from transforms.core import parts
from transforms.core.schemas import LABELS_FILE
from transforms.quality import labels
from transforms.quality import scorer as quality_scorer
from transforms.quality import values as quality_values
from transforms.quality.config import QualityConfig
from transforms.quality.texts import TextFeatures, of_texts

MAX_CHARS = 20_000  # of a text that is learned from
LEARNED_WINDOWS = 2  # of it that the model reads

_READ = ("transforms.readers", "transforms.decode", "transforms.quality.label_rows", "transforms.quality.label_studio")
_FITTING_FIELDS = ("window_tokens", "stride_tokens", "batch_tokens", "train_rows", "folds", "seed")


class Learned(NamedTuple):
    """A fitted head and the rows that it was fitted on."""

    rows: list[Labelled]
    told: TextFeatures
    embeddings: encoding.Floats
    fitted: Fitted

    @property
    def good(self) -> quality_head.Bools:
        """(n,) which rows are good."""
        return np.array([r.good for r in self.rows], bool)


def remove(project: Project) -> None:
    """Removes the fitted head and the table of labels."""
    shutil.rmtree(head_file.folder(project), ignore_errors=True)
    (project.data / LABELS_FILE).unlink(missing_ok=True)


def prepare(project: Project, config: QualityConfig, model: str) -> HeadFile | None:
    """Returns the head to score with: the one on disk if it is still good, else a new one, written.

    None when the corpus holds too few rows with text to learn from.

    Raises:
      DataError: held-out F1 is below `min_heldout_f1`, or inter-annotator agreement below `min_alpha`.
    """
    judged = _judged(project, config)
    sources = [] if config.labels else weak_labels.choose(project, config.train_rows, config.seed)
    if not judged and weak_labels.too_few(sources):
        progress.say("quality: too few rows with text to fit a head; all rows are kept without a score")
        return None
    row_ids = [f"{j.text_id}:{j.verdict:d}" for j in judged] or [f"{s.sample_id}:{s.kind}" for s in sources]
    key = _key(project, config, model)
    kept = None if project.force else _reusable(head_file.folder(project), key, row_ids, config.refresh_ratio)
    if kept and _labels_are_whole(project, judged):
        head_file.check(config, kept.card)
        return kept
    rows = [labelled(j) for j in judged] or weak_labels.rows(project, sources, config.seed, MAX_CHARS)
    learned = learn(project, config, rows, text_features(project, [r.text for r in rows]))
    stamp = {"key": key, "row_ids": sorted(row_ids), "model_digest": model, **_agreement(config, judged)}
    head = to_file(learned, config, stamp)
    head_file.check(config, head.card)
    _write_labels(project, config, judged, learned)
    head_file.write(head_file.folder(project), head)
    return head


def _judged(project: Project, config: QualityConfig) -> list[labels.Judged]:
    """Returns the labelled texts that most annotators agree on."""
    if config.labels is None:
        return []
    found = labels.read_judged(project.root, config.labels, config.good_labels)
    remedy = f"add rows or fix quality.good_labels, now {sorted(config.good_labels)}"
    labels.require_classes(found, ", ".join(config.labels.paths), remedy)
    return [j for j in found if j.verdict is not None]


def labelled(judged: labels.Judged) -> Labelled:
    """Returns a labelled text as a training row; it must have a verdict."""
    return Labelled(judged.text_id, judged.text[:MAX_CHARS], bool(judged.verdict), "label")


def _agreement(config: QualityConfig, judged: Sequence[labels.Judged]) -> JsonObject:
    return {"agreement": labels.agreement_summary(judged, config.labels)} if config.labels else {}


def _key(project: Project, config: QualityConfig, model: str) -> str:
    values = {name: getattr(config, name) for name in _FITTING_FIELDS}
    rules = project.params.tree["clean"]
    code = deps.code_version("pipelines.quality_models.fit", without=_READ)
    return parts.digest(code, model, values, rules, config.labels is None)


def _reusable(path: Path, key: str, row_ids: Sequence[str], refresh_ratio: float) -> HeadFile | None:
    """Returns the head on disk if model, code and params are those of `key` and its rows are nearly `row_ids`."""
    try:
        head = head_file.read(path)
    except (OSError, ValueError):
        return None
    if head.card.get("key") != key or head.card["head"] != head_file.digest(head.content):
        return None
    return head if drift.distance(head.card["row_ids"], row_ids) <= refresh_ratio else None


def text_features(project: Project, texts: Sequence[str]) -> TextFeatures:
    """Returns `texts` cleaned as params say, and their features."""
    return of_texts(texts, project.section("clean", CleanConfig), clean.load())


def learn(project: Project, config: QualityConfig, rows: Sequence[Labelled], told: TextFeatures) -> Learned:
    """Returns a head fitted on `rows` and their values, with its out-of-fold predictions.

    Raises:
      ConfigError: a class has fewer than 20 rows with words in them.
    """
    progress.say(f"quality: fitting a head on {len(rows)} rows")
    embeddings, able = embed(project, config, told.texts)
    kept = [r for r, a in zip(rows, able, strict=True) if a]
    good = np.array([r.good for r in kept], bool)
    if min(good.sum(), (~good).sum()) < quality_head.MIN_ROWS:
        raise ConfigError(
            f"too few rows with text: {good.sum()} good, {(~good).sum()} other; need {quality_head.MIN_ROWS} of each",
            where="quality.labels" if config.labels else "quality", remedy="add labelled rows",
        )  # fmt: skip
    picked = np.flatnonzero(able)
    told = TextFeatures(told.values[picked], [told.texts[k] for k in picked], [told.languages[k] for k in picked])
    chars = np.array([len(t) for t in told.texts], np.float64)
    folds = quality_head.folds_of(kept, config.folds, config.seed)
    fitted = quality_head.fit(embeddings[picked], told.values, chars, good, folds, quality_values.NAMES)
    return Learned(kept, told, embeddings[picked], fitted)


def embed(project: Project, config: QualityConfig, texts: Sequence[str]) -> tuple[encoding.Floats, quality_head.Bools]:
    """Returns (n, d) the mean embedding of a few windows of each text, and (n,) which texts have tokens."""
    tokenizer, model = quality_scorer.load_model(config, project.root, project.runtime.threads, encoders.load_encoder)
    cuts = learned_windows(tokenizer, config, texts)
    flat = encoding.embed(model, tokenizer, [w for row in cuts for w in row], config.batch_tokens)
    ends = np.cumsum([len(row) for row in cuts])
    found = np.zeros((len(texts), flat.shape[1] if len(flat) else 0), np.float32)
    for n, (row, end) in enumerate(zip(cuts, ends, strict=True)):
        if row:
            found[n] = flat[end - len(row) : end].mean(axis=0)
    return found, np.array([bool(row) for row in cuts], bool)


def learned_windows(tokenizer: Tokenizer, config: QualityConfig, texts: Sequence[str]) -> list[list[encoding.Ints]]:
    """Returns the windows of each text that are learned from; none of a text without tokens."""
    window, stride = config.window_tokens, config.stride_tokens
    return [
        [ids[start:end].copy() for start, end in windows.spans(len(ids), window, stride, LEARNED_WINDOWS)]
        for ids in encoding.token_ids(tokenizer, texts)
    ]


def to_file(learned: Learned, config: QualityConfig, stamp: JsonObject) -> HeadFile:
    """Returns the head and its card: data, figures on rows unseen, and `stamp`."""
    content, good, both = learned.fitted.head.to_bytes(), learned.good, learned.fitted.unseen["both"]
    groups = {"domain": [r.domain for r in learned.rows], "language": learned.told.languages}
    chars = np.array([len(t) for t in learned.told.texts], np.float64)
    card = {
        **stamp,
        "kind": "labels" if config.labels else "weak labels",
        "labels": config.labels.name if config.labels else None,
        "model": config.model,
        "head": head_file.digest(content),
        "row_ids_digest": parts.digest(stamp.get("row_ids", [])),
        "rows": {"good": int(good.sum()), "bad": int((~good).sum()), "unseen": len(good), "folds": config.folds},
        "heldout": quality_figures.evaluate(both, good),
        "detected": quality_figures.detected(learned.rows, both),
        **quality_figures.figures(learned.fitted, good, chars, groups),
    }
    return HeadFile(content, card)


def _write_labels(project: Project, config: QualityConfig, judged: Sequence[labels.Judged], learned: Learned) -> None:
    """Writes the table of labelled rows to look at again; removes that of an earlier run without labels."""
    path = project.data / LABELS_FILE
    if not judged:
        path.unlink(missing_ok=True)
        return
    by_id = {r.row_id: n for n, r in enumerate(learned.rows)}
    known = [j for j in judged if j.text_id in by_id]
    picked = [by_id[j.text_id] for j in known]
    ids = _sample_ids(project, [learned.told.texts[k] for k in picked])
    table = labels.review_rows(
        known, learned.fitted.unseen["both"][picked], learned.embeddings[picked], config.review, sample_ids=ids
    )
    labels.write_labels(path, table)


def _labels_are_whole(project: Project, judged: Sequence[labels.Judged]) -> bool:
    path = project.data / LABELS_FILE
    return not judged or (path.exists() and not trust.damaged(path.parent, [path.name]))


def _sample_ids(project: Project, texts: Sequence[str]) -> list[str | None]:
    """Returns the id of a row of the corpus that has the same clean text, for each text."""
    found: dict[str, str] = {}
    wanted = set(texts)
    for batch in parts.iter_columns(project.data, parts.names(project.folder("samples")), {"clean": ["clean_text"]}):
        rows = zip(batch["clean.clean_text"].to_pylist(), batch["sample_id"].to_pylist(), strict=True)
        found |= {text: sample_id for text, sample_id in rows if text in wanted and text not in found}
    return [found.get(text) for text in texts]
