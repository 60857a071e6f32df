"""What ingest read, counted from the written files; conservation, reject ratio and mappings checked."""

from collections.abc import Mapping, Sequence

from pipelines.core import stage, tables
from pipelines.core.project import Project
from scoring.core.errors import ConfigError, DataError
from scoring.core.types import JsonObject, Record
from transforms.core import parts
from transforms.core.rejects import REASONS
from transforms.ingest.config import IngestConfig
from transforms.ingest.units import Unit
from transforms.readers.columns import Columns
from transforms.readers.source import SourceConfig

_SHOWN_REASONS = 3


def finish(project: Project, config: IngestConfig, units: Sequence[Unit]) -> None:
    """Writes `metrics/ingest.json` and checks what was read.

    Raises:
      DataError: rows vanished, or a source has more rejects than `max_reject_ratio`.
      ConfigError: a column that params name is in no row of its source.
    """
    marks = [parts.Footer(project.folder("rejects") / u.part(0)).meta for u in units]
    counted = _counts(project, config, units)
    _check_conservation(project, counted, marks)
    stage.write_metrics(project, "ingest", _metrics(counted))
    for source in config.sources:
        _check_columns(source, [m for m in marks if m["source"] == source.name])
        _check_ratio(project, source.name, counted[source.name], config.max_reject_ratio)


def _counts(project: Project, config: IngestConfig, units: Sequence[Unit]) -> dict[str, JsonObject]:
    """Returns the counts of each source, in the order of params, from DuckDB over the written parts."""
    counted: dict[str, JsonObject] = {
        s.name: {"files": len({f.uri for u in units if u.source == s.name for f in u.files}),
                 "inputs": 0, "rows": 0, "rejects": 0, "partial": 0, "by_reason": {}, "by_modality": {}}
        for s in config.sources
    }  # fmt: skip
    samples, rejects = (tables.scan(project.folder(f)) for f in ("samples", "rejects"))
    with tables.working(project) as connection:
        for source, inputs in connection.sql(
            f"SELECT source, count(*) FROM (SELECT DISTINCT source, uri, position FROM {samples}) GROUP BY source"
        ).fetchall():
            counted[source]["inputs"] += inputs
        for source, modality, rows in connection.sql(
            f"SELECT source, modality, count(*) FROM {samples} GROUP BY ALL ORDER BY ALL"
        ).fetchall():
            counted[source]["rows"] += rows
            counted[source]["by_modality"][modality] = rows
        for source, reason, whole, partial in connection.sql(
            f"""SELECT source, reason, count(*) FILTER (NOT partial), count(*) FILTER (partial) FROM {rejects}
                GROUP BY ALL ORDER BY ALL"""
        ).fetchall():
            counted[source]["inputs"] += whole
            counted[source]["rejects"] += whole
            counted[source]["partial"] += partial
            counted[source]["by_reason"][reason] = whole + partial
    return counted


def _metrics(counted: Mapping[str, Record]) -> JsonObject:
    """Returns the counts of all sources together, and `by_source`."""
    total: JsonObject = {"by_source": dict(counted)}
    for name in ("files", "inputs", "rows", "rejects", "partial"):
        total[name] = sum(c[name] for c in counted.values())
    for name in ("by_reason", "by_modality"):
        keys = sorted({k for c in counted.values() for k in c[name]})
        total[name] = {k: sum(c[name].get(k, 0) for c in counted.values()) for k in keys}
    return total


def _check_conservation(project: Project, counted: Mapping[str, Record], marks: Sequence[Record]) -> None:
    for source, counts in counted.items():
        read = sum(int(m["inputs"]) for m in marks if m["source"] == source)
        if read != counts["inputs"]:
            raise DataError(
                f"conservation is broken: source {source}: {read:,} rows were read, but "
                f"{counts['inputs']:,} are samples or rejects",
                where=str(project.data),
                remedy="run `gradsift run ingest --force`; if it persists, report it",
            )


def _check_columns(source: SourceConfig, marks: Sequence[Record]) -> None:
    """Checks that each column that params name occurs in a row: a typo must not silently become nulls."""
    there = {c for m in marks for c in m["columns"]}
    found = {c for m in marks for c in m["named_columns"]}
    named = Columns.of(source).named
    lost = [f"{column!r} (for {field})" for column, field in named.items() if column not in found]
    if lost and there:
        raise ConfigError(
            f"source {source.name}: no row has the column {', '.join(lost)}",
            where=f"params, ingest.sources, {source.name}.columns",
            remedy=f"use one of the columns found: {', '.join(sorted(there)[:30])}",
        )


def _check_ratio(project: Project, source: str, counts: Record, limit: float) -> None:
    inputs, rejects = counts["inputs"], counts["rejects"]
    if not inputs or rejects / inputs <= limit:
        return
    top = sorted(counts["by_reason"].items(), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN_REASONS]
    reasons = "; ".join(f"{n:,} {code} ({REASONS[code]})" for code, n in top)
    raise DataError(
        f"source {source}: {rejects:,} of {inputs:,} inputs are rejects ({rejects / inputs:.1%}, "
        f"max_reject_ratio {limit:.1%}): {reasons}",
        where=str(project.folder("rejects")),
        remedy=f'inspect them: gradsift query "SELECT uri, position, reason, error FROM rejects WHERE source = '
        f"'{source}' LIMIT 20\"; fix the files or ingest.sources, or raise max_reject_ratio. What was read is kept",
    )
