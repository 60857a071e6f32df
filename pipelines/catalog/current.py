"""The catalog as it must be now: what it depends on, and a connection that only reads.

Reads: `data/catalog.duckdb`, the times of the folders that it shows, and the params of the filters.
Writes: nothing; a catalog that shows an older state is built again by `views`.
Guarantees: a catalog that is current is opened without pyarrow, models or the params of other stages.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.core import tables, trust
from pipelines.core.project import Project
from pipelines.core.tables import Connection

# As literals, for the schemas that name them load pyarrow.
FOLDERS = (
    "samples", "rejects", "clean", "dedup", "dedup/lines", "quality", "tokens/raw", "tokens", "gradients",
    "gradients/sketches", "static/raw", "static", "lqs", "quality/also", "plan", "shards",
)  # fmt: skip
RULE_MODULES = ("clean", "quality")  # their folder, their section of params and their module have one name
VIEWS = Path(__file__).with_name("views.py")


def path(project: Project) -> Path:
    """Returns where the catalog lies."""
    return project.data / "catalog.duckdb"


def fresh(project: Project) -> Path:
    """Returns the path of a catalog that shows the folders as they are now, building it when needed."""
    return path(project) if stored(path(project)) == state(project) else _build(project)


def _build(project: Project) -> Path:
    from pipelines.catalog import views

    return views.build(project)


@contextmanager
def reading(project: Project) -> Iterator[Connection]:
    """Yields a DuckDB connection on a fresh catalog that can change nothing and reads only `data/`."""
    import duckdb

    for folder in map(project.folder, FOLDERS):
        trust.require(folder, [p.name for p in folder.glob("*.parquet")])
    with duckdb.connect(config={"temp_directory": str(project.data / ".duckdb")}) as connection:
        if _attached(connection, path(project)) != state(project):
            connection.execute("DETACH DATABASE IF EXISTS gradsift")
            _attached(connection, _build(project))
        connection.execute("USE gradsift")
        literal = str(project.data)
        # DuckDB compares a view's glob as it is written, so its escaped form must be allowed as well.
        allowed = ", ".join(tables.quote(p) for p in (literal, literal.replace("[", "[[]")))
        connection.execute(f"SET allowed_directories = [{allowed}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def state(project: Project) -> str:
    """Returns a digest that changes with any part, threshold, place of the project, or view."""
    times = {f: project.folder(f).stat().st_mtime_ns for f in FOLDERS if project.folder(f).is_dir()}
    sections = {name: project.params.tree.get(name) for name in RULE_MODULES}
    seen = [VIEWS.read_text(encoding="utf-8"), str(project.root), times, sections]
    told = json.dumps(seen, sort_keys=True, default=str)
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


def stored(catalog: Path) -> str | None:
    """Returns the state that the file `catalog` shows; None where there is none, or it cannot be read."""
    import duckdb

    with duckdb.connect() as connection:
        return _attached(connection, catalog)


def _attached(connection: Connection, catalog: Path) -> str | None:
    """Attaches `catalog`, read-only, as gradsift; returns the state that it shows, None where it cannot be read."""
    import duckdb

    if not catalog.exists():
        return None
    try:
        connection.execute(f"ATTACH {tables.quote(str(catalog))} AS gradsift (READ_ONLY)")
        return str(connection.execute("SELECT state FROM gradsift.catalog_state").fetchall()[0][0])
    except duckdb.Error:  # another version's file, or a corrupt one: rebuild it
        return None
