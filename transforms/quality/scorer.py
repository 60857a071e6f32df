"""The quality of texts by a BERT-like model: windows, batches by token budget, one score a text.

Definitions: docs/quality.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.core.errors import ConfigError, ToolError
from scoring.models import encoders, encoding, windows
from scoring.models import load as models
from scoring.models.types import Model, Tokenizer
from scoring.quality.head import Head, logit, normal, sigmoid
from transforms.quality.config import MODEL, QualityConfig

Floats = npt.NDArray[np.float64]
Classified = tuple[Floats, encoding.Floats]  # (n, k) values and (n, d) embeddings; d is 0 where there are none
_DIGITS = 6  # scores are rounded to: below it, sums depend on how batches and threads split them


@dataclass(frozen=True)
class Scorer:
    """A loaded model. `classify` maps n windows to (n, k) values; the score is the sum of the columns `good`."""

    tokenizer: Tokenizer
    classify: Callable[[Sequence[encoding.Ints]], Classified]
    labels: tuple[str, ...]  # k names; none when the one column is the score itself
    good: tuple[int, ...]
    head: Head | None = None  # None: the model's own score is the row's
    exclusive: bool = True  # false: labels do not exclude each other, and the best of the good ones counts


class RowScore(NamedTuple):
    """The sidecar's values of one scored row, by column."""

    quality: float
    model_quality: float
    quality_min: float
    quality_max: float
    window_scores: list[float]
    windows: int
    coverage: float
    quality_label: str
    embedding: npt.NDArray[np.int8] | None


def load_scorer(
    config: QualityConfig, root: Path, threads: int, head: bytes | None, *, at: str = "quality"
) -> Scorer | None:
    """Returns the scorer of `config`, at the params key `at`; None if there is no head and rows pass unscored.

    Raises:
      ConfigError: the windows are longer than the model's, or it knows none of the good labels.
      ToolError: the model is not on this machine.
    """
    if config.head == MODEL:
        return _classifier(config, *load_model(config, root, threads, encoders.load_classifier, at=at), at)
    if head is None:
        return None
    return _fitted(config, *load_model(config, root, threads, encoders.load_encoder), Head.from_bytes(head))


def load_model(
    config: QualityConfig, root: Path, threads: int, load: Callable[..., Model], *, at: str = "quality"
) -> tuple[Tokenizer, Model]:
    """Returns the tokenizer and the model of `config`, whose windows it is known to take."""
    models.use_threads(threads)
    tokenizer = models.load_tokenizer(config.model, root)
    model = load(config.model, root, dtype=models.dtype_of(config.dtype))
    longest = encoding.max_window(tokenizer, model)
    if config.window_tokens > longest:
        raise ConfigError(
            f"{at}.window_tokens is {config.window_tokens}, but the model accepts at most {longest} plus special ones",
            where=config.model,
            remedy=f"set {at}.window_tokens to {longest} or less",
        )
    return tokenizer, model


def _fitted(config: QualityConfig, tokenizer: Tokenizer, model: Model, head: Head) -> Scorer:
    def classify(found: Sequence[encoding.Ints]) -> Classified:
        embeddings = encoding.embed(model, tokenizer, found, config.batch_tokens)
        return sigmoid(head.linear.logits(embeddings))[:, None], embeddings

    return Scorer(tokenizer, classify, labels=(), good=(0,), head=head)


def _classifier(config: QualityConfig, tokenizer: Tokenizer, model: Model, at: str) -> Scorer:
    def classify(found: Sequence[encoding.Ints]) -> Classified:
        values = encoding.classify(model, tokenizer, found, config.batch_tokens)
        return values.astype(np.float64), np.zeros((len(found), 0), np.float32)

    if model.config.num_labels == 1:
        return Scorer(tokenizer, classify, labels=(), good=(0,))
    labels = tuple(str(model.config.id2label[k]) for k in range(model.config.num_labels))
    exclusive = not encoding.is_multi_label(model)
    return Scorer(tokenizer, classify, labels, _good_columns(config, labels, at), exclusive=exclusive)


def _good_columns(config: QualityConfig, labels: tuple[str, ...], at: str) -> tuple[int, ...]:
    wanted = {normal(label) for label in config.good_labels}
    good = tuple(k for k, label in enumerate(labels) if normal(label) in wanted)
    if not good:
        raise ConfigError(
            f"the classifier has none of {at}.good_labels {list(config.good_labels)}; it has {list(labels)}",
            where=config.model,
            remedy=f"set {at}.good_labels to some of these",
        )
    return good


def score_texts(texts: Sequence[str], values: Floats, config: QualityConfig, scorer: Scorer) -> list[RowScore | None]:
    """Returns the score of each text, whose values are (n, f); None for a text without tokens.

    All windows of all texts go through the model together, so short ones fill its batches too.
    """
    cuts: list[list[encoding.Ints]] = []
    coverage: list[float] = []
    for ids in encoding.token_ids(scorer.tokenizer, texts):
        found = windows.spans(len(ids), config.window_tokens, config.stride_tokens, config.max_windows)
        cuts.append([ids[start:end].copy() for start, end in found])  # a copy: a view would hold all of `ids`
        coverage.append(windows.coverage(found, len(ids)))
    flat = [window for row in cuts for window in row]
    told, embeddings = scorer.classify(flat) if flat else (np.zeros((0, 1)), np.zeros((0, 0), np.float32))
    if not np.isfinite(told).all():
        raise ToolError("the model returned scores that are not finite", where=config.model, remedy="use another model")
    own = [slice(end - len(row), end) for row, end in zip(cuts, np.cumsum([len(row) for row in cuts]), strict=True)]
    return [
        _row_score((told[k], embeddings[k]), values[n], share, config, scorer) if row else None
        for n, (row, k, share) in enumerate(zip(cuts, own, coverage, strict=True))
    ]


def _row_score(
    classified: Classified, values: Floats, coverage: float, config: QualityConfig, scorer: Scorer
) -> RowScore:
    """Returns the score of one row from what its windows were found to be, and its values (f,)."""
    told, embeddings = classified
    good = told[:, list(scorer.good)]
    scores = good.sum(axis=1) if scorer.exclusive else good.max(axis=1)
    model = _aggregated(scores, embeddings, config, scorer)
    quality = model
    if scorer.head:
        quality = float(scorer.head.probabilities(logit(np.array([model])), values[None])[0])
    quality, model = round(quality, _DIGITS), round(model, _DIGITS)
    if scorer.labels:
        label = scorer.labels[int(told.mean(axis=0).argmax())]
    else:
        label = "good" if quality >= config.min_quality else "bad"
    windows = np.round(scores, _DIGITS).tolist()
    return RowScore(quality, model, min(windows), max(windows), windows, len(windows), coverage, label,
                    _direction(embeddings))  # fmt: skip


def _aggregated(scores: Floats, embeddings: encoding.Floats, config: QualityConfig, scorer: Scorer) -> float:
    """Returns what the model says of a row; the mean of a fitted head is that of the log-odds, as it learned."""
    if config.aggregate == "mean" and scorer.head:
        return float(sigmoid(scorer.head.linear.logits(embeddings.mean(axis=0)[None]))[0])
    return float({"min": scores.min(), "mean": scores.mean(), "max": scores.max()}[config.aggregate])


def _direction(embeddings: encoding.Floats) -> npt.NDArray[np.int8] | None:
    """Returns (d,) the mean of (n, d) embeddings, scaled to a largest entry of 127; None where d is 0."""
    mean = embeddings.mean(axis=0)
    if not mean.size:
        return None
    return np.asarray(np.round(mean * (127.0 / max(float(np.abs(mean).max()), 1e-12))).astype(np.int8))
