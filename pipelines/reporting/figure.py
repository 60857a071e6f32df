"""What a figure of the report is, and what it is drawn from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.catalog.totals import Totals
from pipelines.core.project import Project
from pipelines.core.tables import Connection, select
from scoring.core.types import JsonObject, Record


@dataclass(frozen=True)
class Figure:
    """A chart, the table behind it, and what it says; or, with `missing`, why it cannot be drawn."""

    key: str
    title: str
    note: str = ""
    svg: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    missing: str = ""
    open: bool = False  # whether the table is shown without asking


@dataclass(frozen=True)
class FigureData:
    """What figures are drawn from: the catalog, its columns, the totals, and the project's metrics."""

    project: Project
    connection: Connection
    columns: frozenset[str]  # of samples_all
    totals: Totals

    def select(self, sql: str) -> list[JsonObject]:
        """Returns the rows of `sql`."""
        return select(self.connection, sql)

    def metrics(self, stage: str) -> Record:
        """Returns the metrics that `stage` wrote, or nothing."""
        path = self.project.metrics(stage)
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def not_run(stage: str) -> str:
    return f"The stage {stage} has not run yet."
