"""Duplicate sample ids across units: the first row by source, file and position keeps the id."""

from collections.abc import Mapping, Sequence

from pipelines.core import tables
from pipelines.core.project import Project
from transforms.ingest.rows import storable
from transforms.ingest.units import Unit

# A row claims its id whether it has it (a sample) or lost it (a reject), so the claims do not depend on who won.
_CLAIMS = """
    SELECT sample_id, source, uri, position, filename FROM {samples} WHERE segment = 0
    UNION ALL
    SELECT sample_id, source, uri, position, filename FROM {rejects} WHERE reason = 'duplicate_id'"""

_EXCLUDED = """
    WITH claims AS ({claims}),
    doubles AS (SELECT sample_id FROM claims GROUP BY sample_id HAVING count(*) > 1),
    placed AS (SELECT sample_id, list_position($sources, source) AS place, uri, position,
                      regexp_extract(filename, 'part-([0-9a-f]+)-[0-9]+[.]parquet$', 1) AS unit
               FROM claims SEMI JOIN doubles USING (sample_id)),
    ranked AS (SELECT unit, uri, position, first_value(unit) OVER first AS winner FROM placed
               WINDOW first AS (PARTITION BY sample_id ORDER BY place, uri, position))
    SELECT unit, uri, position FROM ranked WHERE unit <> winner ORDER BY ALL"""


def unit_of(part: str) -> str:
    """Returns the name of the unit that a part belongs to."""
    return part.split("-")[1]


def excluded(project: Project, sources: Sequence[str], units: Mapping[str, Unit]) -> dict[str, list[tuple[int, int]]]:
    """Returns, by unit, the rows whose id belongs to a row of another unit, as (file of the unit, position)."""
    folders = {f: tables.scan(project.folder(f)) for f in ("samples", "rejects")}
    with tables.working(project) as connection:
        rows = connection.execute(_EXCLUDED.format(claims=_CLAIMS.format(**folders)), {"sources": list(sources)})
        found: dict[str, list[tuple[int, int]]] = {}
        numbers: dict[str, dict[str, int]] = {}
        for unit, uri, position in rows.fetchall():
            files = numbers.setdefault(unit, {storable(f.uri): k for k, f in enumerate(units[unit].files)})
            found.setdefault(unit, []).append((files[uri], position))
    return {unit: sorted(pairs) for unit, pairs in found.items()}
