"""Pseudo-labels: scores of a larger classifier or regression model on a sample of the corpus, to train a small head.

Reads: data/samples (ids), data/clean, data/dedup, the teacher.
Writes: nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pipelines.core import progress, tables
from pipelines.core.project import Project, locked
from pipelines.passes import kept_texts
from pipelines.quality_models.fit import MAX_CHARS
from pipelines.quality_models.trial import Trial
from scoring.core.errors import ConfigError, DataError
from scoring.core.ranks import spearman
from scoring.core.types import JsonObject
from scoring.models import encoders, encoding
from scoring.models import files as model_files
from scoring.quality import figures as quality_figures
from scoring.quality import head as quality_head
from scoring.quality.head import MIN_ROWS, Doubles, Labelled
from transforms.quality import scorer as quality_scorer
from transforms.quality.config import MODEL, QualityConfig
from transforms.quality.scorer import Scorer

HELD_OUT = 5  # one row in so many is not learned from

_CHUNK_ROWS = 64  # scored between two lines of progress


class Teacher(NamedTuple):
    """The teacher: model, good labels, minimum score that counts as good, and number of rows."""

    model: str
    good_labels: tuple[str, ...]
    threshold: float | None
    rows: int


class Taught(NamedTuple):
    """Rows labelled by a teacher, those held out, and their part of the card."""

    rows: list[Labelled]
    held: list[Labelled]
    scores: dict[str, float]  # row_id → what the teacher says
    card: JsonObject


def teach(project: Project, config: QualityConfig, teacher: Teacher) -> Taught:
    """Returns a seeded sample of the kept texts with the teacher's verdicts, one in five held out.

    Raises:
      ConfigError: none of the teacher's labels is good, a regression model has no threshold, or a class has too
        few rows.
      DataError: there is no corpus.
    """
    found, texts = sample(project, teacher.rows, config.seed)
    scores, threshold = _scores(project, config, teacher, texts)
    known = [k for k, score in enumerate(scores) if np.isfinite(score)]
    rows = [Labelled(found[k][0], texts[k], bool(scores[k] >= threshold), "teacher", found[k][2]) for k in known]
    _require_classes(rows, teacher, threshold, scores[known])
    out = quality_head.folds_of(rows, HELD_OUT, config.seed) == 0
    card = {
        "model": teacher.model, "digest": model_files.digest(teacher.model, project.root), "threshold": threshold,
        "rows": {"learned": int((~out).sum()), "held_out": int(out.sum())},
        "score_quartiles": [round(float(q), 6) for q in np.quantile(scores[known], [0, 0.25, 0.5, 0.75, 1])],
    }  # fmt: skip
    kept, held = ([r for r, o in zip(rows, out, strict=True) if o == side] for side in (False, True))
    return Taught(kept, held, {found[k][0]: float(scores[k]) for k in known}, card)


def sample(project: Project, rows: int, seed: int) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Returns what `choose` does, and the clean text of each of these rows.

    Raises:
      DataError: the project holds no rows.
    """
    with locked(project):
        found = choose(project, rows, seed)
        chosen = [kept_texts.Chosen(sample_id, part) for sample_id, part, _ in found]
        return found, kept_texts.read(project, chosen, MAX_CHARS)


def choose(project: Project, rows: int, seed: int) -> list[tuple[str, str, str]]:
    """Returns sample_id, part and source of the rows with text that clean and dedup keep, of the smallest hashes.

    Neither the order of rows nor their distribution over parts matters.

    Raises:
      DataError: the project holds no rows.
    """
    columns = {"samples": ["sample_id", "source", "filename"], "clean": ["kept", "chars"], "dedup": ["kept"]}
    sql = f"""
        SELECT sample_id, parse_filename(filename), source FROM ({tables.zipped(project, columns)})
        WHERE clean_kept AND dedup_kept AND chars > 0
        ORDER BY md5(concat({seed}, ':', sample_id)), sample_id LIMIT {rows}"""
    with tables.working(project) as connection:
        return [(str(s), str(part), str(source)) for s, part, source in connection.sql(sql).fetchall()]


def _scores(project: Project, config: QualityConfig, teacher: Teacher, texts: Sequence[str]) -> tuple[Doubles, float]:
    """Returns (n,) the teacher's score of each text, NaN without tokens, and the threshold."""
    own = replace(config, head=MODEL, model=teacher.model, good_labels=teacher.good_labels)
    window = _window(project, own)
    own = replace(own, window_tokens=window, stride_tokens=min(own.stride_tokens, window))
    scorer = quality_scorer.load_scorer(own, project.root, project.runtime.threads, None)
    assert scorer is not None
    threshold = _threshold(teacher, scorer)
    found = np.full(len(texts), np.nan)
    for start in range(0, len(texts), _CHUNK_ROWS):
        chunk = texts[start : start + _CHUNK_ROWS]
        for k, score in enumerate(quality_scorer.score_texts(chunk, np.zeros((len(chunk), 0)), own, scorer)):
            found[start + k] = score.quality if score else np.nan
        progress.say(f"quality: {teacher.model} has scored {start + len(chunk)} of {len(texts)} texts")
    return found, threshold


def _window(project: Project, config: QualityConfig) -> int:
    """Returns how long the teacher's windows are: as params have it, or as long as it can."""
    one = replace(config, window_tokens=1)
    loaded = quality_scorer.load_model(one, project.root, project.runtime.threads, encoders.load_classifier)
    return min(config.window_tokens, encoding.max_window(*loaded))


def _threshold(teacher: Teacher, scorer: Scorer) -> float:
    if teacher.threshold is not None:
        return teacher.threshold
    if scorer.labels:
        return 0.5
    raise ConfigError(
        "the teacher is a regression model: it has no default threshold",
        where=f"--teacher {teacher.model}",
        remedy="set the minimum score that counts as good: --threshold X",
    )


def _require_classes(rows: Sequence[Labelled], teacher: Teacher, threshold: float, scores: Doubles) -> None:
    """Raises ConfigError unless both classes have enough rows to train on and to hold out."""
    good, needed = sum(r.good for r in rows), MIN_ROWS * HELD_OUT // (HELD_OUT - 1)
    if min(good, len(rows) - good) < needed:
        shown = [f"{q:.4g}" for q in np.quantile(scores, [0, 0.25, 0.5, 0.75, 1])] if len(rows) else []
        raise ConfigError(
            f"the teacher calls {good} of {len(rows)} rows good; {needed} good and {needed} other rows are needed",
            where=f"--teacher {teacher.model}, threshold {threshold:g}; quartiles of its scores: {', '.join(shown)}",
            remedy="choose a --threshold between the quartiles, raise --rows, or run the pipeline on more data",
        )


def agreement(trial: Trial, taught: Taught, min_spearman: float) -> JsonObject:
    """Returns AUC at the threshold and Spearman's rank correlation of the head's scores with the teacher's.

    Raises:
      DataError: the correlation is below `min_spearman`.
    """
    said = np.array([taught.scores[r.row_id] for r in trial.rows], np.float64)
    rho = float(np.nan_to_num(spearman(trial.scores, said)))  # a constant says nothing of the other
    if not rho >= min_spearman:
        raise DataError(
            f"the head does not agree with its teacher: Spearman {rho:.3f} on {len(said)} unseen rows",
            where=f"--teacher {taught.card['model']}, --min-spearman {min_spearman:g}; nothing was written",
            remedy="raise --rows, --unfreeze a few layers, use another --model, or lower --min-spearman",
        )
    return {"spearman": round(rho, 6), "auc": quality_figures.auc(trial.scores, trial.good), "unseen": len(said)}
