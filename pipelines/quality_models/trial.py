"""Evaluates a head on rows that neither it nor its encoder was trained on, scored as in the stage."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipelines.core.project import Project
from pipelines.quality_models.fit import Learned, text_features
from scoring.core.types import JsonObject
from scoring.quality import additive
from scoring.quality import figures as quality_figures
from scoring.quality.head import Bools, Doubles, Fitted, Labelled, sigmoid
from transforms.quality import scorer as quality_scorer
from transforms.quality.config import QualityConfig


class Trial(NamedTuple):
    """The test rows that have words, and P(good) of each by feature set."""

    rows: list[Labelled]
    head: Fitted  # `unseen` is of these rows
    chars: Doubles
    languages: list[str]

    @property
    def good(self) -> Bools:
        """(n,) which rows are good."""
        return np.array([r.good for r in self.rows], bool)

    @property
    def scores(self) -> Doubles:
        """(n,) P(good) as the stage would write it."""
        return self.head.unseen["both"]


def of_rows(project: Project, config: QualityConfig, learned: Learned, rows: Sequence[Labelled]) -> Trial:
    """Returns what the head of `learned` says of `rows`: windows, aggregate and rounding are those of the stage."""
    told = text_features(project, [r.text for r in rows])
    content = learned.fitted.head.to_bytes()
    scorer = quality_scorer.load_scorer(config, project.root, project.runtime.threads, content)
    assert scorer is not None
    scores = quality_scorer.score_texts(told.texts, told.values, config, scorer)
    able = [k for k, score in enumerate(scores) if score]
    chars = np.array([len(told.texts[k]) for k in able], np.float64)
    found = [score for score in scores if score]
    ways = {
        **_lesser(learned, chars, told.values[able]),
        "model": np.array([s.model_quality for s in found], np.float64),
        "both": np.array([s.quality for s in found], np.float64),
    }
    head = Fitted(learned.fitted.head, ways)
    return Trial([rows[k] for k in able], head, chars, [told.languages[k] for k in able])


def _lesser(learned: Learned, chars: Doubles, values: Doubles) -> Mapping[str, Doubles]:
    """Returns P(good) by length only and by text statistics only, fitted on the same rows as the head."""
    lengths = np.log1p([len(t) for t in learned.told.texts])[:, None]
    by_length = additive.fit(lengths, learned.good).logits(np.log1p(chars)[:, None])
    by_rules = additive.fit(learned.told.values, learned.good).logits(values)
    return {"length": sigmoid(by_length), "rules": sigmoid(by_rules)}


def figures(trial: Trial) -> JsonObject:
    """Returns the figures of a trial, under the names that a head's card has for them."""
    good, groups = trial.good, {"domain": [r.domain for r in trial.rows], "language": trial.languages}
    found = quality_figures.figures(trial.head, good, trial.chars, groups)
    for way in ("length", "rules", "model"):
        found["ways"][way]["calibration_error"] = None  # they are not calibrated, but by cross-validation
    return {
        "rows": {"good": int(good.sum()), "bad": int((~good).sum())},
        "heldout": quality_figures.evaluate(trial.scores, good),
        "detected": quality_figures.detected(trial.rows, trial.scores),
        "reliability": reliability(trial.scores, good),
        **found,
    }


def reliability(probabilities: Doubles, good: Bools, bins: int = 5) -> list[JsonObject]:
    """Returns, of each of `bins` equal ranges of P(good) with rows in it: rows, mean P(good), share of good ones."""
    places = np.minimum((probabilities * bins).astype(int), bins - 1)
    return [
        {"rows": int(rows.sum()), "said": round(float(probabilities[rows].mean()), 4),
         "good": round(float(good[rows].mean()), 4)}
        for rows in (places == k for k in range(bins))
        if rows.any()
    ]  # fmt: skip
