"""The command `gradsift quality fit`: a head from labels or from a teacher, with metrics and a model card.

Reads: the label files, the model; with a teacher data/samples, data/clean and data/dedup.
Writes: the folder of the head: head.safetensors, card.json, README.md, and `encoder` where layers were trained.
Guarantees: the same labels, params and model give the same bytes, but for the date; nothing is written that fails a
check, and no file goes that is not part of an earlier head.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipelines.core.project import Project, open_project
from pipelines.quality_models import card as quality_card
from pipelines.quality_models import fit as quality_fit
from pipelines.quality_models import folder as quality_folder
from pipelines.quality_models import head_file
from pipelines.quality_models import labels as quality_labels
from pipelines.quality_models import teacher as quality_teacher
from pipelines.quality_models import trial as quality_trial
from pipelines.quality_models import unfreeze as quality_unfreeze
from pipelines.quality_models.fit import Learned
from pipelines.quality_models.head_file import HeadFile
from pipelines.quality_models.labels import LabelFile
from pipelines.quality_models.teacher import Taught, Teacher
from scoring.core.errors import ConfigError
from scoring.core.types import JsonObject, Record
from scoring.models import files as model_files
from scoring.quality.head import Labelled
from transforms.quality.config import FITTED, QualityConfig

_REMEDY = "provide more or cleaner labels, use another --model, --unfreeze some layers, or lower min_heldout_f1"
_MAIN = ("heldout", "detected", "ways", "reliability", "auc_by_domain", "auc_by_language")  # figures on rows unseen


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command was asked for: `labels` or a `teacher`."""

    out: Path
    labels: str | None = None
    test: str | None = None
    model: str | None = None
    label: str = "label"
    text: tuple[str, ...] = ("text",)
    annotator: str | None = None
    format: str = "auto"
    good: tuple[str, ...] = ()
    unfreeze: int | None = None
    teacher: str | None = None
    teacher_good: tuple[str, ...] = ()
    threshold: float | None = None
    rows: int = 1000
    min_spearman: float = 0.3


class _Data(NamedTuple):
    """Training rows, a file of labelled test rows, and what the card says of both."""

    rows: list[Labelled]
    config: QualityConfig
    card: JsonObject
    taught: Taught | None
    test: LabelFile | None


def main(params: Path, request: Request) -> None:
    """Fits the head that `request` asks for in the project of `params`; prints the result."""
    project = open_project(params)
    card = fit(project, request)
    found, unseen = card["heldout"], card["rows"]["unseen"]
    print(f"{request.out}: AUC {found['auc']:.3f}, F1 {found['f1']:.3f} on {unseen} unseen rows")
    if teacher := card.get("teacher"):
        print(f"agreement with its teacher on {teacher['unseen']} unseen rows: Spearman {teacher['spearman']:.3f}")
    print(f"in params.yaml: {card['usage']}; see {request.out / quality_folder.README}")


def fit(project: Project, request: Request) -> JsonObject:
    """Writes the head that `request` asks for into its folder; returns its card.

    Raises:
      ConfigError: options that clash, labels or a test that cannot be used, or a folder that holds foreign files.
      DataError: the head or its labels are worse than params allow, or the head does not agree with its teacher.
    """
    _check_options(request)
    config = _config(project, request)
    quality_folder.require_free(request.out)
    quality_folder.require_outside(request.out, config.model, project.root)
    data = _data(project, config, request)
    told = quality_fit.text_features(project, [r.text for r in data.rows])
    good = np.array([r.good for r in data.rows], bool)
    with quality_unfreeze.trained(project, data.config, told.texts, good, request.unfreeze, request.out) as encoder:
        used = quality_unfreeze.embedded(data.config, encoder)
        learned = quality_fit.learn(project, used, data.rows, told)
        card = {**_card(project, used, data, learned), **_tested(project, used, data, learned, request)}
        card |= _with_encoder(card, encoder)
        card |= _place(project, data.config, request)
        if card["kind"] == "labels":
            head_file.check(data.config, card, _REMEDY)
        head = HeadFile(learned.fitted.head.to_bytes(), card)
        return quality_folder.write(request.out, head, encoder, quality_card.readme(card, card["usage"]))


def _check_options(request: Request) -> None:
    """Raises ConfigError for options that do not go together."""
    taught, given = request.teacher is not None, request.labels is not None
    only = {"--teacher-good": request.teacher_good, "--threshold": request.threshold is not None}
    faults = {
        "LABELS and --teacher are mutually exclusive" if given else "either LABELS or --teacher is required": taught
        == given,
        "--unfreeze needs --test: cross-validation would evaluate the encoder on its own training rows": (
            request.unfreeze is not None and not request.test and not taught
        ),
        f"{', '.join(k for k, v in only.items() if v)} without --teacher": any(only.values()) and not taught,
        f"--rows is {request.rows}": request.rows < 1,
        f"--min-spearman is {request.min_spearman}": not -1 <= request.min_spearman <= 1,
    }
    if what := next((words for words, wrong in faults.items() if wrong), None):
        raise ConfigError(
            what,
            where="gradsift quality fit",
            remedy="pass either LABELS or --teacher; with --unfreeze also --test LABELS; --rows of at least 1; "
            "--min-spearman in [-1, 1]",
        )


def _config(project: Project, request: Request) -> QualityConfig:
    """Returns section `quality` with what the command changes of it."""
    config = project.section("quality", QualityConfig)
    changes: JsonObject = {"head": FITTED, "labels": None, "good_labels": request.good or config.good_labels}
    if not 0 <= config.min_quality <= 1:
        changes["min_quality"] = 0.5  # was on the scale of another head; nothing is dropped here
    return replace(config, model=request.model or config.model, **changes)


def _data(project: Project, config: QualityConfig, request: Request) -> _Data:
    test = _read(request.test, "--test", config, request) if request.test else None
    if request.teacher:
        teacher = Teacher(request.teacher, request.teacher_good or config.good_labels, request.threshold, request.rows)
        taught = quality_teacher.teach(project, config, teacher)
        quality_labels.require_apart(taught.rows, f"the sample of {request.teacher}", test)
        return _Data(taught.rows, config, {"kind": "teacher"}, taught, test)
    assert request.labels
    found = _read(request.labels, "LABELS", config, request)
    quality_labels.require_apart(found.rows, request.labels, test)
    card = {"kind": "labels", "labels": found.name, "labels_digest": found.digest, "agreement": found.agreement}
    return _Data(found.rows, replace(config, labels=found.source), card, None, test)


def _read(path: str, option: str, config: QualityConfig, request: Request) -> LabelFile:
    columns = {"label": request.label, "columns": request.text, "annotator": request.annotator}
    return quality_labels.read(path, option, config.good_labels, columns, request.format)


def _card(project: Project, config: QualityConfig, data: _Data, learned: Learned) -> JsonObject:
    """Returns the card of a head by cross-validation; the ids of rows stay out, as a digest."""
    ids = sorted(f"{r.row_id}:{r.good:d}" for r in learned.rows)
    card = quality_fit.to_file(learned, config, {"row_ids": ids}).card
    del card["row_ids"]
    reliability = quality_trial.reliability(learned.fitted.unseen["both"], learned.good)
    return {
        **card, "labels": None, **data.card, "reliability": reliability, "good_labels": list(config.good_labels),
        "learned": {name: card["rows"][name] for name in ("good", "bad")},
        "model_digest": model_files.digest(config.model, project.root), "date": datetime.now(UTC).date().isoformat(),
    }  # fmt: skip


def _tested(project: Project, config: QualityConfig, data: _Data, learned: Learned, request: Request) -> JsonObject:
    """Returns the card's figures on the test rows."""
    found: JsonObject = {}
    if data.test:
        trial = quality_trial.of_rows(project, config, learned, data.test.rows)
        found["test"] = {"file": data.test.name, "digest": data.test.digest, **quality_trial.figures(trial)}
    if data.taught:
        trial = quality_trial.of_rows(project, config, learned, data.taught.held)
        agreement = quality_teacher.agreement(trial, data.taught, request.min_spearman)
        found["teacher"] = {**data.taught.card, **agreement, "figures": quality_trial.figures(trial)}
    return found


def _with_encoder(card: Record, encoder: quality_unfreeze.Encoder | None) -> JsonObject:
    """Returns what changes in a card when the encoder has learned from the rows: the figures are those of the test."""
    if encoder is None:
        return {}
    main = card["test"] if "test" in card else card["teacher"]["figures"]
    unseen = sum(main["rows"].values())
    return {
        **{name: main[name] for name in _MAIN},
        "rows": {**card["rows"], "unseen": unseen},
        "seen": {name: card[name] for name in _MAIN},
        "encoder": encoder.card,
    }


def _place(project: Project, config: QualityConfig, request: Request) -> JsonObject:
    """Returns the model as params are to name it, and the line of params that uses the head."""
    folder = quality_folder.named(project.root, request.out)
    model = f"{folder}/{quality_folder.ENCODER}" if request.unfreeze else config.model
    same = model == project.section("quality", QualityConfig).model
    return {"model": model, "usage": f"quality: {{{'' if same else f'model: {model}, '}head: {folder}}}"}
