"""`gradsift query`: SQL, or a built-in query by name, on the catalog; read-only.

Reads: `data/catalog.duckdb`, which it builds when a part is newer, and the parts behind its views.
Writes: the table, CSV, JSON or Parquet that the user asked for.
Guarantees: one SELECT a call; results are streamed, so memory does not grow with their length.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipelines.catalog import current
from pipelines.catalog.results import (
    BATCH_ROWS,
    PLAIN,
    PlainResult,
    Result,
    shown_text,
    write_csv,
    write_json,
    write_parquet,
    write_table,
)
from pipelines.core.project import Project, look_at
from pipelines.core.tables import Connection
from scoring.core.errors import ConfigError
from scoring.core.types import JsonObject, Record

if TYPE_CHECKING:
    import duckdb

SQL = Path(__file__).parent / "sql"

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.IGNORECASE)
_DEFAULT = re.compile(r"^-- \$(\w+) = (-?[\d.]+)", re.MULTILINE)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b(?:\s+ANALYZE\b|\s*\([^()]*\))?", re.IGNORECASE)


@dataclass(frozen=True)
class Shipped:
    """A built-in query: its description, its text, and the defaults of its parameters."""

    name: str
    description: str
    sql: str
    defaults: Mapping[str, float]


def shipped() -> dict[str, Shipped]:
    """Returns the built-in queries by name; their first line, a comment, describes them."""
    return {f.stem: _shipped(f.stem, f.read_text(encoding="utf-8")) for f in sorted(SQL.glob("*.sql"))}


def _shipped(name: str, sql: str) -> Shipped:
    defaults = {key: float(v) if "." in v else int(v) for key, v in _DEFAULT.findall(sql)}
    return Shipped(name, sql.split("\n", 1)[0].removeprefix("--").strip(), sql, defaults)


@contextmanager
def run_query(project: Project, text: str, values: Record | None = None) -> Iterator[Result]:
    """Yields the result of `text`: SQL, or the name of a built-in query whose `$` parameters are `values`.

    Raises:
      ConfigError: the SQL is invalid, has more than one statement, or is not read-only.
      DataError: there are no samples yet.
    """
    with _asked(project, text, values or {}) as asked:
        yield _arrow(asked.relation)


@contextmanager
def run_plain(project: Project, text: str) -> Iterator[Result | PlainResult]:
    """Yields the same; a result of plain values alone comes without Arrow, which takes longer to load than to use."""
    with _asked(project, text, {}) as asked:
        kinds = [kind.id for kind in asked.relation.types]
        if PLAIN.issuperset(kinds):
            cursor = asked.connection.execute(asked.sql, asked.bound)
            yield PlainResult(list(asked.relation.columns), kinds, cursor)
        else:
            yield _arrow(asked.relation)


def _arrow(relation: "duckdb.DuckDBPyRelation") -> Result:
    return Result(list(relation.columns), relation.to_arrow_reader(BATCH_ROWS))


class _Asked(NamedTuple):
    """A query that has been checked and not run yet."""

    connection: Connection
    relation: "duckdb.DuckDBPyRelation"
    sql: str
    bound: JsonObject | None


@contextmanager
def _asked(project: Project, text: str, values: Record) -> Iterator[_Asked]:
    import duckdb

    sql, bound = _resolve(text, values)
    with current.reading(project) as connection:
        try:
            _check(sql)
            yield _Asked(connection, connection.sql(sql, params=bound or None), sql, bound or None)
        except duckdb.Error as error:
            raise ConfigError(_message(error), where="the query", remedy=_remedy(connection, error)) from error


def _resolve(text: str, values: Record) -> tuple[str, JsonObject]:
    known = shipped()
    name = text.strip()
    if name in known:
        return known[name].sql, {**known[name].defaults, **values}
    if _NAME.fullmatch(name):
        raise ConfigError(f"no such query: {name}", remedy=f"use one of {', '.join(known)}, or SQL")
    return text, dict(values)


def _check(sql: str) -> None:
    """Raises ConfigError unless `sql` is one statement that only reads; the connection refuses files as well."""
    import duckdb

    found = duckdb.extract_statements(sql)
    if len(found) != 1:
        raise ConfigError(
            f"expected one SQL statement, got {len(found)}", where="the query", remedy="run them one by one"
        )
    kind = found[0].type.name
    if kind == "SELECT" or (kind == "EXPLAIN" and _explains_select(sql)):
        return
    remedy = "use SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE or SHOW, or EXPLAIN one of them"
    if kind == "MULTI":
        remedy = "PIVOT needs an explicit list of values: PIVOT … ON column IN ('a', 'b') …"
    raise ConfigError(f"queries are read-only; this is a statement of type {kind}", where="the query", remedy=remedy)


def _explains_select(sql: str) -> bool:
    """Returns whether what is explained is a SELECT: EXPLAIN ANALYZE runs its statement, COPY included."""
    import duckdb

    match = _EXPLAIN.match(sql)
    try:
        return bool(match) and [s.type.name for s in duckdb.extract_statements(sql[match.end() :])] == ["SELECT"]  # type: ignore[union-attr]
    except duckdb.Error:
        return False


def _message(error: Exception) -> str:
    """Returns DuckDB's message; quoted values must not control the terminal."""
    return shown_text(re.sub(r"\n\n+", "\n", str(error)))


def _remedy(connection: Connection, error: Exception) -> str:
    """Returns what exists, for a name that does not; a view that is missing is a stage that has not run."""
    import duckdb

    if not isinstance(error, duckdb.CatalogException | duckdb.BinderException):
        return "`gradsift query` without arguments lists the built-in queries; docs/queries.md describes the views"
    views = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
    return f"views: {', '.join(views)}; DESCRIBE VIEW lists columns; later stages add more views"


def main(
    path: Path,
    text: str | None,
    *,
    csv: bool,
    json: bool,
    parquet: Path | None,
    rows: int,
    rules: Sequence[str] = (),
    thresholds: Sequence[float] = (),
) -> None:
    """Prints the result of `text` as a table of `rows` rows, or writes it as asked; without `text`, lists queries.

    `parquet` is a path, or `-` for standard output. `rules` and `thresholds` are pairs for `whatif`.
    """
    asks_whatif = text is not None and text.strip() == "whatif"
    if (rules or thresholds) and not asks_whatif:
        raise ConfigError(
            "--rule and --threshold apply only to `whatif`",
            remedy="gradsift query whatif --rule CODE --threshold NUMBER",
        )
    if text is None:
        print(listing())
        return
    if csv + json + (parquet is not None) > 1:
        raise ConfigError("--csv, --json and --parquet are mutually exclusive", remedy="pass only one of them")
    project = look_at(path)
    try:
        if asks_whatif:
            from pipelines.catalog import whatif

            changes = whatif.changes(rules, thresholds)
            with whatif.answer(project, changes) as result:
                told = not (csv or json or parquet)
                if told:
                    print(whatif.heading(project, changes))
                if parquet is not None:
                    write_parquet(result, parquet)
                else:
                    _write(result, csv=csv, json=json, rows=rows)
                if told:
                    print(whatif.LEGEND)
        elif parquet is not None:
            with run_query(project, text) as result:
                write_parquet(result, parquet)
        else:
            with run_plain(project, text) as shown:
                _write(shown, csv=csv, json=json, rows=rows)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(result: Result | PlainResult, *, csv: bool, json: bool, rows: int) -> None:
    if csv or json:
        (write_csv if csv else write_json)(result, sys.stdout)
    else:
        write_table(result, rows)


def listing() -> str:
    """Returns the built-in queries, one per line with its description."""
    from pipelines.catalog import whatif

    known = {**{q.name: q.description for q in shipped().values()}, "whatif": whatif.DESCRIPTION}
    width = max(map(len, known))
    return "\n".join(f"{name:<{width}}  {description}" for name, description in known.items())
