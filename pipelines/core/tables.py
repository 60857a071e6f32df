"""Part folders as DuckDB relations: sidecars zipped by position into wide rows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pipelines.core import trust
from pipelines.core.project import Project
from scoring.core.errors import DataError
from scoring.core.types import JsonObject

if TYPE_CHECKING:
    import duckdb

    Connection: TypeAlias = duckdb.DuckDBPyConnection
else:
    Connection = Any  # nothing waits for DuckDB to be imported

MEMORY_LIMIT = "2GB"  # DuckDB spills beyond it

Columns = Mapping[str, Sequence[str]]  # folder → columns


def connect(project: Project) -> Connection:
    """Returns an in-memory DuckDB connection that spills to the project's disk."""
    import duckdb

    spill = project.data / ".duckdb"
    spill.mkdir(parents=True, exist_ok=True)
    settings = {"temp_directory": str(spill), "memory_limit": MEMORY_LIMIT, "preserve_insertion_order": True}
    return duckdb.connect(config=settings)


@contextmanager
def working(project: Project) -> Iterator[Connection]:
    """Yields a connection for work that spills; closes it.

    Raises:
      DataError: the disk or the memory is full.
    """
    import duckdb

    with connect(project) as connection:
        try:
            yield connection
        except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
            raise DataError(
                f"DuckDB failed: {error}",
                where=str(project.data / ".duckdb"),
                remedy="free disk space, then rerun",
            ) from error


def select(connection: Connection, sql: str, values: Sequence[object] = ()) -> list[JsonObject]:
    """Returns the rows of `sql` as dicts."""
    found = connection.execute(sql, list(values))
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def quote(text: str) -> str:
    """Returns `text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def scan(folder: Path) -> str:
    """Returns the SQL that reads all parts of `folder`, in the order of their names.

    Raises:
      DataError: the folder holds no part, or a damaged one: DuckDB would read it as other data.
    """
    from transforms.core import parts

    names = parts.names(folder)
    if not names:
        raise DataError("no parts to read", where=str(folder), remedy="run the stage that writes them: gradsift run")
    trust.require(folder, names)
    literal = str(folder).replace("[", "[[]")
    return f"read_parquet({quote(literal + '/' + parts.PATTERN)})"


def zipped(project: Project, columns: Columns) -> str:
    """Returns a SELECT of `columns` zipped by position; column c of folder f is named f_c if c repeats."""
    counts: dict[str, int] = {}
    for wanted in columns.values():
        for column in wanted:
            counts[column] = counts.get(column, 0) + 1
    picked = [
        f'"{folder}"."{column}" AS "{column if counts[column] == 1 else folder.replace("/", "_") + "_" + column}"'
        for folder, wanted in columns.items()
        for column in wanted
    ]
    tables = " POSITIONAL JOIN ".join(f'{scan(project.folder(f))} AS "{f}"' for f in columns)
    return f"SELECT {', '.join(picked)} FROM {tables}"
