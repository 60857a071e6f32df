"""The fitted quality head: a logistic regression on frozen embeddings, and how well it does on unseen rows."""

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.encoding import Floats
from scoring.errors import ConfigError

MIN_ROWS = 20  # of each class: fewer rows cannot be split and measured

_INVERSE_PENALTY = 0.05  # of standardised embeddings: hundreds of rows stand against hundreds of dimensions
_CALIBRATION_BINS = 10

Bools = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]


class Labelled(NamedTuple):
    """A row to learn from. `origin` says what made it: `kept`, a kind of degradation, or `label`."""

    row_id: str
    text: str
    good: bool
    origin: str


@dataclass(frozen=True)
class Head:
    """P(good) = sigmoid(weights · embedding + bias); the scaling of the embeddings is folded in."""

    weights: Doubles  # (d,)
    bias: float

    def probabilities(self, embeddings: Floats) -> Doubles:
        """Returns (n,) P(good) of (n, d) embeddings."""
        logits = embeddings.astype(np.float64) @ self.weights + self.bias
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logits)), np.float64)

    def to_bytes(self) -> bytes:
        """Returns the head as a safetensors file: the same head is the same bytes."""
        from safetensors.numpy import save

        return bytes(save({"weights": self.weights, "bias": np.array([self.bias])}))

    @staticmethod
    def from_bytes(content: bytes) -> "Head":
        """Returns the head that `to_bytes` wrote."""
        from safetensors.numpy import load

        tensors = load(content)
        return Head(tensors["weights"], float(tensors["bias"][0]))


def fit(embeddings: Floats, good: Bools) -> Head:
    """Returns the head that tells `good` (n,) from the rest of (n, d) `embeddings`, both classes weighing the same."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(embeddings.astype(np.float64))
    model = LogisticRegression(C=_INVERSE_PENALTY, class_weight="balanced", max_iter=5000)
    model.fit(scaler.transform(embeddings.astype(np.float64)), good)
    weights = model.coef_[0] / scaler.scale_
    return Head(weights, float(model.intercept_[0] - weights @ scaler.mean_))


def heldout(rows: Sequence[Labelled], ratio: float, seed: int) -> Bools:
    """Returns (n,) which rows are held out: the share `ratio` of each class, drawn by a hash of the row's id."""
    held = np.zeros(len(rows), bool)
    for good in (False, True):
        ranked = sorted((hash64(seed, "heldout", r.row_id), k) for k, r in enumerate(rows) if r.good is good)
        held[[k for _, k in ranked[: max(1, round(ratio * len(ranked)))]]] = True
    return held


def hash64(*values: object) -> int:
    """Returns a 64-bit hash of `values`, the same on every machine."""
    text = "\x1f".join(map(str, values))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def evaluate(probabilities: Doubles, good: Bools) -> dict[str, float]:
    """Returns accuracy, F1 (the mean over both classes), AUC and calibration error of P(good) against the truth.

    F1 is the macro mean, since a head that calls every row good has an F1 of 0.67 on the good class alone.
    """
    from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

    found = probabilities >= 0.5
    values = {
        "accuracy": accuracy_score(good, found),
        "f1": f1_score(good, found, average="macro", zero_division=0.0),
        "auc": roc_auc_score(good, probabilities),
        "calibration_error": calibration_error(probabilities, good),
    }
    return {name: round(float(value), 6) for name, value in values.items()}


def calibration_error(probabilities: Doubles, good: Bools) -> float:
    """Returns the expected calibration error over ten equal bins (Guo et al. 2017, eq. 3)."""
    bins = np.minimum((probabilities * _CALIBRATION_BINS).astype(int), _CALIBRATION_BINS - 1)
    n = np.bincount(bins, minlength=_CALIBRATION_BINS)
    gaps = np.bincount(bins, probabilities - good, minlength=_CALIBRATION_BINS)
    return float(np.abs(gaps).sum() / n.sum())


def detected(rows: Sequence[Labelled], probabilities: Doubles) -> dict[str, float]:
    """Returns, for each origin of `rows`, the share that the head puts on its right side."""
    hits: dict[str, list[bool]] = {}
    for row, p in zip(rows, probabilities, strict=True):
        hits.setdefault(row.origin, []).append(bool((p >= 0.5) == row.good))
    return {origin: round(sum(found) / len(found), 6) for origin, found in sorted(hits.items())}


def excerpt(text: str, chars: int, rng: np.random.Generator) -> str:
    """Returns one of the consecutive stretches of `chars` characters of `text`, drawn at random.

    Like a window, the last one ends with the text; a stretch begins at a word where there are spaces.
    """
    if len(text) <= chars:
        return text
    start = min(int(rng.integers(-(-len(text) // chars))) * chars, len(text) - chars)
    space = text.find(" ", start, start + chars // 8) if start else -1
    return text[max(start, space + 1) : start + chars]


def read_labels(path: Path, good_labels: Collection[str]) -> list[Labelled]:
    """Returns the rows of a JSONL file of `{text, label}`, sorted by id; a text that comes twice counts once.

    Raises:
      ConfigError: the file is missing, a line is not such a row, or a class has under 20 rows.
    """
    good = {normal(label) for label in good_labels}
    rows = {r.row_id: r for r in _parse_labels(path, good)}
    found = [rows[k] for k in sorted(rows)]
    counts = {"good": sum(r.good for r in found), "other": sum(not r.good for r in found)}
    if min(counts.values()) < MIN_ROWS:
        raise ConfigError(
            f"too few labelled rows: {counts['good']} good, {counts['other']} other; {MIN_ROWS} of each needed",
            where=str(path),
            remedy=f"add rows, or correct quality.good_labels, now {sorted(good_labels)}",
        )
    return found


def normal(label: object) -> str:
    """Returns a label as it is compared: without case and outer spaces."""
    return str(label).strip().lower()


def _parse_labels(path: Path, good: Collection[str]) -> Iterator[Labelled]:
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        row = _row(line, f"{path}, line {number}")
        text = row["text"].encode("utf-8", "replace").decode()  # a lone surrogate is no character
        yield Labelled(f"{hash64(text):016x}", text, normal(row["label"]) in good, "label")


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from file
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the labels: {error}", where=str(path), remedy="mend quality.labels") from error


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"not JSON: {error}", where=where, remedy='a line is {"text": "…", "label": "…"}') from error
    if not (isinstance(row, dict) and isinstance(row.get("text"), str) and row["text"].strip()):
        raise ConfigError(f"no text in {line[:80]!r}", where=where, remedy='a line is {"text": "…", "label": "…"}')
    if not isinstance(row.get("label"), str | int | float):
        raise ConfigError(f"no label in {line[:80]!r}", where=where, remedy='a line is {"text": "…", "label": "…"}')
    return row
