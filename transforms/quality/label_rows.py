"""Rows of label files: the text of each, and all its annotations. Definitions: docs/labels.md."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from scoring.core.errors import ConfigError
from scoring.quality.head import normal
from transforms.quality import label_studio
from transforms.quality.config import LabelSource
from transforms.readers.text_source import Use, read_rows, text_of

USE = Use("label file", "params, quality.labels")

_ROW = 'a row looks like {"text": "…", "label": "…"}; `columns` and `label` select other columns'
_TOTALS = ("n", "count", "total")  # in a column of counts, beside the labels: their sum
_MAX_COUNT = 10_000  # of one label of a text: what is beyond is no count of judgements
_VALUES = frozenset(label_studio.VALUES.values())


class Vote(NamedTuple):
    """A judgement: who gave it, empty where that is not known, and the label without case and outer spaces."""

    annotator: str
    label: str


class JudgedRow(NamedTuple):
    """A row: where it stands, its text, and the judgements in it."""

    where: str
    text: str
    votes: list[Vote]


class _WrongError(Exception):
    """A value that is no label; holds the words."""


def judged_rows(root: Path, source: LabelSource) -> Iterator[JudgedRow]:
    """Yields the rows of all files of `source`; tasks of Label Studio that nobody has judged are left out.

    Raises:
      ConfigError: a file, a column, a text or a label is missing, or an export is damaged.
      DataError: a row cannot be read.
    """
    plain = source.format != "label_studio"
    columns = {source.label: "label", **({source.annotator: "annotator"} if source.annotator else {})}
    columns |= dict.fromkeys(source.columns, "columns")
    for uri, group in groupby(read_rows(root, source, USE, columns if plain else {}), key=itemgetter(0)):
        rows = [row for _, row in group]  # the whole file: a column that is missing everywhere is reported first
        yield from (_plain_row if plain else _tasks)(uri, rows, source)


def _plain_row(uri: str, rows: Sequence[Mapping[str, object]], source: LabelSource) -> Iterator[JudgedRow]:
    for number, row in enumerate(rows, start=1):
        where = f"{uri}, row {number}"
        who = row.get(source.annotator) if source.annotator else None
        yield JudgedRow(where, _text(row, source, where), _votes(who, row.get(source.label), source, where))


def _tasks(uri: str, rows: Sequence[Mapping[str, object]], source: LabelSource) -> Iterator[JudgedRow]:
    for task in label_studio.read_tasks(uri, rows, source.label):
        if task.votes:
            votes = [v for who, value in task.votes for v in _votes(who, value, source, task.where)]
            yield JudgedRow(task.where, _text(task.data, source, task.where), votes)


def _text(row: Mapping[str, object], source: LabelSource, where: str) -> str:
    text = text_of(row, source.columns)
    if not text.strip():
        shown = {c: row.get(c) for c in source.columns}
        raise ConfigError(f"no text in {shown!r:.80}; columns: {', '.join(map(str, row))}", where=where, remedy=_ROW)
    return text


def _votes(who: object, value: object, source: LabelSource, where: str) -> list[Vote]:
    """Returns the annotations in one row."""
    try:
        found = [vote for w, v in _pairs(_parsed(who), _parsed(value)) for vote in _given(w, v)]
    except _WrongError as error:
        raise ConfigError(f"{error} in column {source.label!r}: {value!r:.80}", where=where, remedy=_ROW) from None
    if not found:
        raise ConfigError(f"no label in column {source.label!r}: {value!r:.80}", where=where, remedy=_ROW)
    return found


def _pairs(who: object, value: object) -> list[tuple[object, object]]:
    """Returns each judgement with who gave it: a list of labels goes with a list of annotators of the same length."""
    values = value if isinstance(value, list | tuple) else [value]
    names = who if isinstance(who, list | tuple) else [who] * (len(values) if who in (None, "") else 1)
    if isinstance(value, Mapping) and len(names) != 1:
        names = [None]
    if len(names) != len(values):
        raise _WrongError(f"{len(values)} labels but {len(names)} annotators")
    return list(zip(names, values, strict=True))


def _given(who: object, value: object) -> list[Vote]:
    """Returns the judgements that one value holds; counted ones are nobody's in particular."""
    found = _labels(value)
    return [Vote(_name(who) if len(found) == 1 else "", label) for label in found]


def _parsed(value: object) -> object:
    """Returns a list from a CSV cell that contains it as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _labels(value: object) -> list[str]:
    """Returns the labels that one value holds: one, none, or as many of each as it counts."""
    if isinstance(value, Mapping):
        inner = next(iter(value.values())) if len(value) == 1 and _VALUES.intersection(value) else None
        return _labels(inner) if inner is not None else _counted(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return []
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1.0 of a table is the label 1
    if not isinstance(value, str | int | float):
        raise _WrongError("a value that is not a label")
    return [normal(value)] if normal(value) else []


def _counted(counts: Mapping[str, object]) -> list[str]:
    known: dict[str, int] = {}
    for label, found in counts.items():
        count = found or 0
        if not isinstance(count, int) or not 0 <= count <= _MAX_COUNT:
            raise _WrongError("counts that are not whole numbers")
        known[label] = count
    for name in _TOTALS:
        if name in known and known[name] == sum(known.values()) - known[name]:
            del known[name]
    return [normal(label) for label, n in known.items() for _ in range(n)]


def _name(who: object) -> str:
    """Returns the name of an annotator; Label Studio gives a number, or a person with an email."""
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("id")
    return "" if who is None else str(who).strip()
