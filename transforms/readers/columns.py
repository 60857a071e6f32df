"""Which column of a source maps to which of our fields, by params or defaults."""

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from transforms.readers.base import Fault
from transforms.readers.source import FIELDS, SourceConfig

MEDIA = {"image": "image", "images": "image", "video": "video", "audio": "audio"}
_DEFAULTS = {**{f: (f,) for f in FIELDS}, "video": ("video", "videos"), "audio": ("audio", "audios")}


@dataclass(frozen=True)
class Columns:
    """Field → the source's columns. Columns that params name must be there; default ones may be absent."""

    by_field: Mapping[str, tuple[str, ...]]
    template: tuple[tuple[str, str | None], ...]  # (literal, column) pieces of the text, or ()
    named: Mapping[str, str]  # column → field, for those that params name

    @classmethod
    def of(cls, source: SourceConfig) -> "Columns":
        """Returns the columns of `source`."""
        by_field = dict(_DEFAULTS)
        template: tuple[tuple[str, str | None], ...] = ()
        for name, column in source.columns.items():
            by_field[name] = (column,) if column else ()
        if "{" in source.columns.get("text", ""):
            template = tuple((text, name) for text, name, _, _ in string.Formatter().parse(source.columns["text"]))
            by_field["text"] = tuple(dict.fromkeys(name for _, name in template if name))
        named = {c: f for f in FIELDS if f in source.columns for c in by_field[f]}
        return cls(by_field, template, named)

    @cached_property
    def media(self) -> tuple[tuple[str, str], ...]:
        """(column, kind) of every column that may hold media."""
        return tuple((c, kind) for name, kind in MEDIA.items() for c in self.by_field[name])

    @cached_property
    def taken(self) -> frozenset[str]:
        """Every column that a field takes."""
        return frozenset(c for names in self.by_field.values() for c in names)

    def missing(self, names: Iterable[str]) -> Fault | None:
        """Returns the fault of a table without any column that a sample needs, or without one that params name."""
        there = set(names)
        lost = [c for c in self.named if c not in there]
        wanted = [*self.by_field["text"], *(c for c, _ in self.media)]
        if lost:
            return Fault(0, "missing_column", f"no column {', '.join(map(repr, lost))}; {has(names)}")
        if not there.intersection(wanted):
            return Fault(0, "missing_column", f"{no_content(self)}; {has(names)}")
        return None


def has(names: Iterable[str]) -> str:
    """Returns the words that list the columns which are there."""
    shown = [str(n) for n in names]
    return f"columns: {', '.join(shown[:20])}{', …' if len(shown) > 20 else ''}" if shown else "there are no columns"


def no_content(columns: Columns) -> str:
    """Returns the words for a row or table without a text or media column."""
    text = ", ".join(columns.by_field["text"]) or "none"
    return f"no text column ({text}) and no media column; map one in ingest.sources"
