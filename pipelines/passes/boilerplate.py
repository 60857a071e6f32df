"""Boilerplate lines of each source: the first pass of stage `clean`.

Reads:      samples (source, modality, text)
Writes:     clean/lines (LINE_DOCUMENTS of each part), clean/boilerplate.parquet (BOILERPLATE)
Guarantees: the set does not depend on part size, order or workers; copies of a document count once.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from pipelines.core import stage, tables, trust
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from pipelines.passes import key_files
from scoring.core import files
from transforms.clean.config import BoilerplateConfig
from transforms.clean.lines import BOILERPLATE, BOILERPLATE_READS, LINE_DOCUMENTS, ListLines, example_lines
from transforms.core import parts, sealed

MODULE = "pipelines.passes.boilerplate"
FOLDER = "clean/lines"


class Found(NamedTuple):
    """The file of the set, None if detection is off; and part name → digest of its share of the set."""

    path: Path | None
    shares: Mapping[str, str]


def find(project: Project, config: BoilerplateConfig) -> Found:
    """Returns the boilerplate lines of every source; reuses those on disk for the same parts and params."""
    if not config.min_docs or not parts.names(project.folder("samples")):
        parts.remove_strays(project.folder(FOLDER), ())
        return Found(None, {})
    sidecar = stage.Sidecar(
        folder=FOLDER, schema=LINE_DOCUMENTS, reads=BOILERPLATE_READS, code=MODULE, config=config.min_chars
    )
    wanted = stage.tasks(project, sidecar)
    stage.write_parts(project, sidecar, wanted, ListLines(config.min_chars))
    limits = [config.min_docs, config.min_doc_ratio, sorted(config.skip_sources)]
    result = parts.Task("boilerplate.parquet", parts.digest(limits, wanted))
    path = project.folder("clean") / result.name
    if project.force or not trust.is_done(path.parent, result):
        with tables.working(project) as connection:
            _write(project, connection, config, result, path)
    return Found(path, dict(parts.Footer(path).meta["shares"]))


def _write(project: Project, connection: Connection, config: BoilerplateConfig, result: parts.Task, path: Path) -> None:
    folder = project.folder(FOLDER)
    connection.execute(f"CREATE TEMP TABLE boilerplate AS {_query(folder, config)}")
    shares = key_files.shares(connection, folder, "boilerplate", ["source", "line"])
    table = _with_texts(project, connection).cast(BOILERPLATE)
    record = {"fingerprint": result.fingerprint, "shares": shares}
    table = table.replace_schema_metadata(parts.footer_metadata(table.schema, record))
    files.write_atomic(path, lambda temporary: sealed.write_table(table, temporary, compression="zstd"))


def _query(folder: Path, config: BoilerplateConfig) -> str:
    """Returns the SQL of the set; only lines that may reach the limit have their distinct documents counted."""
    skipped = ", ".join(tables.quote(source) for source in config.skip_sources) or "NULL"
    seen = f"(SELECT * FROM {tables.scan(folder)} WHERE (source IN ({skipped})) IS NOT TRUE)"
    return f"""
        WITH totals AS (
            SELECT source, count(DISTINCT document) AS source_documents FROM {seen} WHERE line IS NULL GROUP BY source),
        often AS MATERIALIZED (
            SELECT source, line FROM {seen} WHERE line IS NOT NULL GROUP BY ALL HAVING count(*) >= {config.min_docs}),
        counted AS (
            SELECT source, line, count(DISTINCT document) AS documents
            FROM {seen} SEMI JOIN often USING (source, line) GROUP BY ALL)
        SELECT source, line, documents, source_documents FROM counted JOIN totals USING (source)
        WHERE documents >= {config.min_docs} AND documents::DOUBLE / source_documents >= {config.min_doc_ratio}"""


def _with_texts(project: Project, connection: Connection) -> pa.Table:
    """Returns the set with an example of each line, from the first part that has it; sorted."""
    places = f"SELECT line, min(filename) AS file FROM {tables.scan(project.folder(FOLDER))} SEMI JOIN boilerplate"
    wanted: dict[str, set[int]] = {}
    for line, file in connection.sql(f"{places} USING (source, line) GROUP BY line").fetchall():
        wanted.setdefault(Path(file).name, set()).add(line)
    texts: dict[int, str] = {}
    for name, hashes in sorted(wanted.items()):
        texts |= example_lines(parts.read_columns(project.data, name, BOILERPLATE_READS), hashes)
    table = connection.sql("SELECT * FROM boilerplate ORDER BY source, line").to_arrow_table()
    return table.append_column("text", pa.array([texts.get(k) for k in table["line"].to_pylist()], pa.string()))


def summary(found: Found) -> dict[str, dict[str, int]]:
    """Returns source → its boilerplate lines and its distinct documents, for sources that have any."""
    if found.path is None:
        return {}
    table = sealed.read_table(found.path, ["source", "source_documents"])
    groups = table.group_by("source").aggregate([("source_documents", "count"), ("source_documents", "max")])
    rows = groups.sort_by("source").to_pylist()
    return {r["source"]: {"lines": r["source_documents_count"], "documents": r["source_documents_max"]} for r in rows}
