"""Why a row has its quality score: the windows that lowered it, and what each feature of its text contributed.

Reads: the row as `explain` has it, data/quality/also, the tokenizer of the model and the head; never the model itself.
Writes: nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt

from pipelines.catalog.results import cell, cut, number
from pipelines.core.project import Project
from pipelines.quality_models import also_columns, head_file
from scoring.core.errors import DataError, GradsiftError
from scoring.core.types import Record
from scoring.models import encoding, windows
from scoring.models import files as model_files
from scoring.models import load as models
from scoring.models.types import Tokenizer
from scoring.quality.head import Head, logit
from transforms.quality import values as quality_values
from transforms.quality.config import FITTED, MODEL, QualityConfig

EXCERPT_CHARS = 120
LOWEST = 3  # windows shown
DOWN, UP = 5, 3  # values shown
STALE = "the text, the params or the head changed after this row was scored: run `gradsift run quality`"

_ROUNDED = 1e-5  # scores are kept to six digits
_LEAST = 0.005  # log-odds: less would be shown as zero

Fact = tuple[str, str]  # a name and its text


def facts(project: Project, folders: Mapping[str, Record]) -> Iterator[Fact]:
    """Yields why the row with `folders`, that of `quality` among them, has its score: windows, then values.

    If the tokenizer or the head is unavailable, one fact says why.
    """
    config, row, clean = project.section("quality", QualityConfig), folders["quality"], folders.get("clean", {})
    if row["window_scores"]:
        yield from _windows(project, config, row, clean)
    if config.head != MODEL and row["model_quality"] is not None:
        try:
            yield from _pulls(_head(project, config), row, clean)
        except GradsiftError as error:
            yield "values", _unknown(error)


def further(project: Project, part: str, row: int) -> Iterator[Fact]:
    """Yields what each model of `quality.also` says of a row: its score and label, if it scored the row."""
    for name, (score, label, share) in also_columns.scores(project, part, row).items():
        told = f"{number(score)}, label {label}" if label else number(score)
        yield name, f"{told}, {cell(100 * share)} % of the tokens scored"


def _unknown(error: GradsiftError) -> str:
    return f"not shown: {str(error).splitlines()[0]}"


def _windows(project: Project, config: QualityConfig, row: Record, clean: Record) -> Iterator[Fact]:
    scores = row["window_scores"]
    shown = lowest(scores)
    texts = dict.fromkeys(shown, "")
    try:
        texts = _excerpts(project, config, row, clean.get("clean_text"), shown)
    except GradsiftError as error:
        yield "text of windows", _unknown(error)
    for k in shown:
        yield f"window {k + 1} of {len(scores)}", f"{number(scores[k]):<8} {texts[k]}".rstrip()


def _excerpts(
    project: Project, config: QualityConfig, row: Record, text: str | None, shown: Sequence[int]
) -> dict[int, str]:
    """Returns `excerpts` by the tokens of the model's tokenizer.json, and by the whole tokenizer where they differ."""
    quick = models.quick_tokenizer(config.model, project.root)
    if quick is not None:
        with suppress(DataError):
            return excerpts(quick, config, row, text, shown)
    return excerpts(models.load_tokenizer(config.model, project.root), config, row, text, shown)


def lowest(scores: Sequence[float]) -> list[int]:
    """Returns the windows to show, the lowest first: up to three of those below the mean, or the only one."""
    mean = round(fmean(scores), 6)  # as scores are: windows that are all alike are not below it
    below = [k for k, score in enumerate(scores) if score < mean or len(scores) == 1]
    return sorted(below, key=lambda k: (scores[k], k))[:LOWEST]


def excerpts(
    tokenizer: Tokenizer | SimpleNamespace, config: QualityConfig, row: Record, text: str | None, shown: Sequence[int]
) -> dict[int, str]:
    """Returns the beginning of each window `shown` of `text`, on one line.

    Raises:
      DataError: the windows of `text` are not those that the row was scored by.
    """
    places = token_places(tokenizer, text or "")
    found = windows.spans(len(places), config.window_tokens, config.stride_tokens, config.max_windows)
    covered = windows.coverage(found, len(places))
    if text is None or len(found) != len(row["window_scores"]) or abs(covered - row["coverage"]) > _ROUNDED:
        raise DataError(STALE)
    return {k: cut(text[places[found[k][0], 0] : places[found[k][1] - 1, 1]].strip(), EXCERPT_CHARS) for k in shown}


def token_places(tokenizer: Tokenizer | SimpleNamespace, text: str) -> npt.NDArray[np.int64]:
    """Returns (n, 2) `[start, end)` in characters of the tokens of `text`, cut in pieces as the stage cuts it."""
    found, before = [np.zeros((0, 2), np.int64)], 0
    for piece in encoding.pieces(text):
        offsets = tokenizer.backend_tokenizer.encode(piece, add_special_tokens=False).offsets
        found.append(np.array(offsets, np.int64).reshape(-1, 2) + before)
        before += len(piece)
    return np.concatenate(found)


def _head(project: Project, config: QualityConfig) -> Head:
    """Returns the head of params.

    Raises:
      ConfigError: there is none, it is damaged, or it is of another model.
    """
    folder = head_file.folder(project) if config.head == FITTED else project.root / config.head
    return Head.from_bytes(head_file.load(folder, config, model_files.digest(config.model, project.root)).content)


def _pulls(head: Head, row: Record, clean: Record) -> Iterator[Fact]:
    """Yields the values that lowered the score most, then those that raised it most.

    Raises:
      DataError: head and values do not give the row's score.
    """
    if clean.get("clean_text") is None:
        raise DataError(STALE)
    values, model = _values(clean), logit(np.array([row["model_quality"]]))
    if abs(head.probabilities(model, values)[0] - row["quality"]) > _ROUNDED:
        raise DataError(STALE)
    added, own = head.contributions(model, values)[0], [*values[0], row["model_quality"]]
    shown = strongest(added)
    if shown:
        yield "values", "what each adds to the log-odds of the score, relative to the mean training row"
    width = max((len(head.names[k]) for k in shown), default=0)
    for k in shown:
        told = "missing" if np.isnan(own[k]) else number(float(own[k]))
        yield f"{'↓' if added[k] < 0 else '↑'} {head.names[k]:<{width}}", f"{told:>8}  {_signed(added[k])}"


def _values(clean: Record) -> quality_values.Floats:
    """Returns (1, f) the values of one row of `clean`."""
    numbers = {n: np.array([np.nan if clean[n] is None else clean[n]], np.float64) for n in quality_values.NUMBERS}
    return quality_values.of_numbers(numbers, [clean["language"]], [clean["clean_text"]])


def strongest(added: npt.NDArray[np.float64]) -> list[int]:
    """Returns the up to five that lower the score most, then the up to three that raise it most, of (n,) log-odds."""
    order = np.argsort(added, kind="stable").tolist()
    down = [k for k in order if added[k] <= -_LEAST][:DOWN]
    return down + [k for k in reversed(order) if added[k] >= _LEAST][:UP]


def _signed(log_odds: float) -> str:
    return f"{log_odds:+.2f}".replace("-", "−")
