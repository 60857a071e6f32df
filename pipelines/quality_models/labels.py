"""Label files named on the command line: read, counted, and kept apart from the rows of a test."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from pipelines.quality_models.fit import labelled
from scoring.core import files
from scoring.core.errors import ConfigError, DataError
from scoring.core.hashing import hash64
from scoring.core.types import JsonObject, Record
from scoring.quality.head import Labelled
from transforms.quality import labels
from transforms.quality.config import LabelSource
from transforms.quality.label_rows import USE
from transforms.readers import text_source

_OPTIONS = {"`columns` and `label`": "--text and --label", "`columns`": "--text", "`label`": "--label",
            "`annotator`": "--annotator", "`format`": "--format"}  # fmt: skip
_EXCERPT_CHARS = 80


class LabelFile(NamedTuple):
    """The rows of label files with a majority label, and their digest and agreement."""

    rows: list[Labelled]  # sorted by row_id
    source: LabelSource
    name: str
    digest: str
    agreement: JsonObject


def read(path: str, option: str, good: Collection[str], columns: Record, form: str) -> LabelFile:
    """Returns the labelled rows of `path`, a file, folder or glob; relative ones begin at the working directory.

    `option` is what the user knows it by, `columns` are the keys `columns`, `label` and `annotator` of a LabelSource.

    Raises:
      ConfigError: a file, a column, a text or a label is missing, or there are too few rows of a class.
      DataError: a row cannot be read.
    """
    root = Path.cwd()
    try:
        source = LabelSource(name="test" if "test" in option else "labels", paths=(path,), format=form, **columns)  # type: ignore[arg-type]
        judged = labels.read_judged(root, source, good)
        digest = _digest(root, source, path)
    except ValueError as error:
        raise ConfigError(str(error), where=f"{option} {path}", remedy="fix the options") from error
    except (ConfigError, DataError) as error:
        raise type(error)(_as_option(str(error), f"{option} {path}")) from error
    remedy = f"set the good labels with --good LABEL (now {', '.join(sorted(good))}), or add rows"
    labels.require_classes(judged, f"{option} {path}", remedy)
    found = [labelled(j) for j in judged if j.verdict is not None]
    return LabelFile(found, source, Path(path).name, digest, labels.agreement_summary(judged, source))


def _digest(root: Path, source: LabelSource, path: str) -> str:
    return (
        files.file_digest(root / path) if (root / path).is_file() else text_source.sources_digest(root, [source], USE)
    )


def _as_option(message: str, where: str) -> str:
    """Returns an error about a key of params in the words of the command line."""
    message = message.replace(USE.where, where)
    for key, option in _OPTIONS.items():
        message = message.replace(key, option)
    return message


def require_apart(rows: Sequence[Labelled], name: str, test: LabelFile | None) -> None:
    """Raises ConfigError if texts of the test are among those learned from, but for case and white space."""
    if test is None:
        return
    learned = {_plain(r.text) for r in rows}
    both = [r.text for r in test.rows if _plain(r.text) in learned]
    if both:
        raise ConfigError(
            f"{len(both)} test texts are also in the training data, such as {both[0][:_EXCERPT_CHARS]!r}",
            where=f"{name} and --test {test.name}",
            remedy="remove them from one of the two, so that the test measures unseen rows only",
        )


def _plain(text: str) -> int:
    return hash64(" ".join(text.casefold().split()))
