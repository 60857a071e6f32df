"""A small corpus of texts with planted duplicates, for the stages clean and dedup."""

import json
from pathlib import Path
from typing import Any

from support.builders import sample

_STORY = (
    "The council of {town} decided on {day} to rebuild the old bridge over the river, which had been closed since the "
    "spring floods. Engineers told the meeting that the work would take about a year and cost less than they had "
    "feared. Shopkeepers on both banks welcomed the news, because many customers have stayed away, while the mayor "
    "promised that {what} would stay open for people on foot."
)
STORIES = [
    _STORY.format(town=town, day=day, what=what)
    for town, day, what in (
        ("Ashford", "Monday", "one lane"), ("Burnley", "Tuesday", "the ferry"), ("Carlow", "Friday", "a narrow path"),
        ("Dundalk", "Sunday", "the railway"), ("Elgin", "Thursday", "the upper deck"),
        ("Fermoy", "May Day", "the weir"),
    )
]  # fmt: skip

# (source, text): a duplicate differs in case, spacing, punctuation, numbers, or not at all
NEWS: list[tuple[str, str | None]] = [
    ("news", STORIES[0]), ("news", STORIES[1]), ("news", STORIES[2]), ("news", STORIES[3]), ("news", None),
    ("news", "Too short."), ("web", STORIES[0].upper().replace("THE", "the").replace("OF", "of")),
    ("web", STORIES[0].replace(", ", " - ").replace(" ", "  ")), ("web", STORIES[4]), ("web", STORIES[1]), ("web", " "),
    ("web", STORIES[5]), ("web", STORIES[5] + " "), ("web", "buy now\n" * 60),
]  # fmt: skip


def real(path: Path, count: int, source: str | None = None) -> list[tuple[str, str | None]]:
    """Returns the first `count` (source, text) pairs of a JSONL file; the source is its name unless given."""
    lines = path.read_text(encoding="utf-8").splitlines()[:count]
    return [(source or path.stem, json.loads(line)["text"]) for line in lines]


def rows_of(texts: list[tuple[str, str | None]], prefix: str = "s") -> list[dict[str, Any]]:
    """Returns sample rows <prefix>00, <prefix>01, … of (source, text) pairs."""
    return [sample(k, sample_id=f"{prefix}{k:02d}", source=source, text=text) for k, (source, text) in enumerate(texts)]
