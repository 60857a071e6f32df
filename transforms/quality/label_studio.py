"""Label Studio's JSON export: an array of tasks, each with its data and the annotations that people gave it.

Format: https://labelstud.io/guide/task_format. Predictions are not read. An annotation that was cancelled, or that
leaves the control empty, is no judgement. The exports JSON-MIN and CSV are plain rows and need no reader of their own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from scoring.core.errors import ConfigError
from transforms.readers.columns import has

VALUES = {"choices": "choices", "rating": "rating", "number": "number", "textarea": "text", "text": "text"}

Row = Mapping[str, object]


class Task(NamedTuple):
    """A task: where it stands, its data, and what each annotator said; no votes where nobody has judged it yet."""

    where: str
    data: Row
    votes: list[tuple[object, object]]  # (who, label)


class _Answer(NamedTuple):
    """What one annotator said with one control of the labelling page."""

    who: object
    control: str
    value: object


def read_tasks(uri: str, rows: Sequence[Row], control: str) -> Iterator[Task]:
    """Yields the tasks of one export with what was said by `control`, or by the only control there is.

    Raises:
      ConfigError: the export is damaged, or has several controls of which none is `control`.
    """
    places = [f"{uri}, task {row.get('id', number)}" for number, row in enumerate(rows, start=1)]
    answers = [list(_answers(row, where)) for row, where in zip(rows, places, strict=True)]
    chosen = _control({a.control for found in answers for a in found}, control, uri)
    for row, where, found in zip(rows, places, answers, strict=True):
        yield Task(where, _data(row, where), [(a.who, _one(a, where)) for a in found if a.control == chosen])


def _control(names: set[str], wanted: str, uri: str) -> str:
    if wanted in names or len(names) < 2:
        return wanted if wanted in names else next(iter(names), wanted)
    what = f"the annotations use the controls {', '.join(sorted(names))}, not {wanted!r}"
    raise ConfigError(what, where=uri, remedy="set `label` to one of these controls")


def _answers(row: Row, where: str) -> Iterator[_Answer]:
    for annotation in _list(row, "annotations", where):
        if not isinstance(annotation, Mapping):
            raise damaged(f"an annotation is {annotation!r:.80}", where)
        if annotation.get("was_cancelled"):
            continue
        for region in _list(annotation, "result", where):
            yield from _answer(region, annotation.get("completed_by"), where)


def _answer(region: object, who: object, where: str) -> Iterator[_Answer]:
    """Yields what a region says, if it is of a kind that judges."""
    if not isinstance(region, Mapping):
        raise damaged(f"a result is {region!r:.80}", where)
    name = VALUES.get(str(region.get("type")))
    if name is None:
        return
    value = region.get("value")
    if not isinstance(value, Mapping) or name not in value:
        raise damaged(f"a result of type {region['type']} has no value.{name}", where)
    if value[name] not in (None, "", []):
        yield _Answer(who, str(region.get("from_name", "")), value[name])


def _one(answer: _Answer, where: str) -> object:
    """Returns the one label of an answer, which may be in a list."""
    if not isinstance(answer.value, list):
        return answer.value
    if len(answer.value) > 1:
        what = f"{answer.control or 'an annotation'} has {len(answer.value)} labels: {answer.value!r:.80}"
        raise ConfigError(
            what, where=where, remedy="an annotation must be one label: set `label` to a single-choice control"
        )
    return answer.value[0]


def _data(row: Row, where: str) -> Row:
    data = row.get("data")
    if not isinstance(data, Mapping):
        raise damaged(f"`data` is {data!r:.80}", where)
    return data


def _list(row: Row, name: str, where: str) -> list[object]:
    found = row.get(name)
    if not isinstance(found, list):
        raise damaged(f"{name!r} is not a list but {found!r:.80}; {has(row)}", where)
    return found


def damaged(what: str, where: str) -> ConfigError:
    """Returns the error of an export that is not what Label Studio writes."""
    remedy = "re-export the project as JSON; for JSON-MIN and CSV exports, which are plain rows, leave `format` at auto"
    return ConfigError(f"the Label Studio export is invalid: {what}", where=where, remedy=remedy)
