"""The catalog: one DuckDB file of views over the parts, and the thresholds of all rules.

Reads: the parts of every folder that is complete, `data/plan`, `data/shards`, the labels, the params of the filters.
Writes: `data/catalog.duckdb`, which holds no rows: it may be deleted at any time.
Guarantees: `samples_all` has one row per sample, its sidecars zipped by position; a folder that lacks a
part, or holds other samples than `samples`, is left out, so the catalog is right half-way through a run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pyarrow as pa

from pipelines.catalog import current
from pipelines.core import params, tables
from pipelines.core.conserve import FILTERS
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from pipelines.quality_models import also_columns
from scoring.core import files
from scoring.core.errors import DataError
from transforms.core import parts, schemas
from transforms.core.rules import Rule

PLAN_FILE = "plan/plan.parquet"
SHARD_PATTERN = "shard-*.parquet"

_PAYLOADS = ("images", "audio", "embedding")
_WIDE = ("samples", "clean", "dedup", "quality", "tokens", "gradients", "static/raw", "static", "lqs")
_PREFIXED = ("kept", "reasons")
_TYPES = {"int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN"}  # else VARCHAR
_ROW = "parse_filename(samples.filename) AS part, samples.file_row_number AS row"
_PLACE = {"rank": "rank", "shard": "shard", "position": "shard_position", "phase": "phase", "pool": "pool",
          "tier": "tier"}  # fmt: skip


def view_name(folder: str) -> str:
    """Returns the name of the view over `folder`: `static/raw` is `static_raw`."""
    return folder.replace("/", "_")


def complete(project: Project) -> list[str]:
    """Returns the folders that have exactly the parts of `samples`, with the same samples."""
    folders = [*schemas.PARTS, *([also_columns.FOLDER] if also_columns.columns(project) else [])]
    with tables.connect(project) as connection:
        ids = {f: _ids(connection, project.folder(f)) for f in folders}
    found = [f for f in folders if f != "rejects" and ids[f] and ids[f] == ids["samples"]]
    return [*found, "rejects"] if ids["rejects"] else found


def filters(folders: Sequence[str]) -> list[str]:
    """Returns the filters whose verdicts count: those before the first that is not complete."""
    missing = [k for k, f in enumerate(FILTERS) if f not in folders]
    return list(FILTERS[: missing[0]] if missing else FILTERS)


def rules() -> list[Rule]:
    """Returns the rules of every filter, in the order in which they are evaluated."""
    return [rule for name in current.RULE_MODULES for rule in import_module(f"transforms.{name}.rules").RULES]


def sentences() -> list[tuple[str, str, str]]:
    """Returns (stage, reason code, meaning) of every filter."""
    found: dict[tuple[str, str], str] = {}
    for stage in FILTERS:
        module = import_module(f"transforms.{stage}.rules")
        found |= {(stage, rule.code): rule.sentence for rule in getattr(module, "RULES", ())}
        found |= {(stage, code): sentence for code, sentence in getattr(module, "REASONS", {}).items()}
    return [(stage, code, sentence) for (stage, code), sentence in found.items()]


def limits(project: Project) -> dict[str, float]:
    """Returns the threshold in params for the code of each rule."""
    sections = {}
    for name in current.RULE_MODULES:
        module, kind = params.SECTIONS[name].split(":")
        sections[name] = project.section(name, getattr(import_module(module), kind))
    return {rule.code: rule.limit(sections[rule.stage]) for rule in rules()}


def build(project: Project) -> Path:
    """Rebuilds the catalog and returns its path.

    Raises:
      DataError: there are no samples yet.
    """
    import duckdb

    state = current.state(project)
    folders = complete(project)
    if "samples" not in folders:
        raise DataError("there are no samples yet", where=str(project.folder("samples")), remedy="gradsift run ingest")
    statements = [*_views(project, folders), _fates(project, folders), _samples_all(project)]

    def write(temporary: str) -> None:
        Path(temporary).unlink()  # DuckDB takes an empty file for a damaged database
        try:
            with duckdb.connect(temporary) as connection:
                for statement in statements:
                    connection.execute(statement)
                _add_rules(connection, project, folders)
                connection.execute("CREATE TABLE catalog_state AS SELECT ? AS state", [state])
        except (duckdb.IOException, duckdb.TransactionException, duckdb.OutOfMemoryException) as error:
            raise files.cannot_write(current.path(project), error) from error
        finally:
            Path(f"{temporary}.wal").unlink(missing_ok=True)

    files.write_atomic(current.path(project), write)
    return current.path(project)


def _ids(connection: Connection, folder: Path) -> dict[str, str]:
    """Returns the digest of the sample ids of each part in `folder`, by its name."""
    if not parts.names(folder):
        return {}
    glob = tables.scan(folder).removeprefix("read_parquet")
    found = connection.execute(
        f"SELECT parse_filename(file_name), value FROM parquet_kv_metadata{glob} WHERE decode(key) = 'gradsift'"
    ).fetchall()
    return {name: str(json.loads(value).get("ids")) for name, value in found}


def _views(project: Project, folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        place = f", {_ROW}" if folder == "samples" else ""
        scan = tables.scan(project.folder(folder))
        yield f"CREATE VIEW {view_name(folder)} AS SELECT *{place} FROM {scan} AS samples"
    if "rejects" not in folders:
        yield f"CREATE VIEW rejects AS {_no_rows(schemas.REJECTS)}"
    yield f"CREATE VIEW labels AS {_labels(project)}"
    if (project.data / PLAN_FILE).is_file():
        yield f"CREATE VIEW plan AS SELECT * FROM read_parquet({_glob(project.folder('plan'), 'plan.parquet')})"
    if (project.folder("shards") / "manifest.json").is_file():  # written last: without it, shards are missing
        shards = f"read_parquet({_glob(project.folder('shards'), SHARD_PATTERN)})"
        yield f"CREATE VIEW shards AS SELECT parse_filename(filename) AS shard_file, * FROM {shards} AS s"


def _glob(folder: Path, pattern: str) -> str:
    return tables.quote(str(folder).replace("[", "[[]") + "/" + pattern)


def _labels(project: Project) -> str:
    """Returns the SELECT of the labelled texts; of no rows if the head was not fitted on labels."""
    found = project.data / schemas.LABELS_FILE
    if not found.is_file():
        return _no_rows(schemas.LABELS)
    return f"SELECT * FROM read_parquet({_glob(found.parent, found.name)})"


def _no_rows(schema: pa.Schema) -> str:
    """Returns the SELECT of no rows with the columns of an Arrow schema."""
    kinds = {f.name: "VARCHAR[]" if pa.types.is_list(f.type) else _TYPES.get(str(f.type), "VARCHAR") for f in schema}
    return f"SELECT {', '.join(f'NULL::{kind} AS {name}' for name, kind in kinds.items())} WHERE false"


def wide_columns(folders: Sequence[str]) -> dict[str, dict[str, str]]:
    """Returns, for each folder of `samples_all`, its columns and the names that they have there."""
    return {
        folder: {
            column: _wide_name(folder, column)
            for column in schemas.PARTS[folder].names
            if column not in _PAYLOADS and (column != "sample_id" or folder == "samples")
        }
        for folder in _WIDE
        if folder in folders
    }


def _wide_name(folder: str, column: str) -> str:
    if folder == "static/raw":
        return f"raw_{column}"
    return f"{folder}_{column}" if column in _PREFIXED else column


def _fates(project: Project, folders: Sequence[str]) -> str:
    """Returns the view of all sidecars zipped by position, with the verdict of all filters."""
    wide = wide_columns(folders)
    if also_columns.FOLDER in folders:
        wide[also_columns.FOLDER] = {name: name for name in also_columns.columns(project)}
    columns = [_ROW, *(f'"{f}"."{column}" AS "{name}"' for f, names in wide.items() for column, name in names.items())]
    sidecars = " POSITIONAL JOIN ".join(f'{tables.scan(project.folder(f))} AS "{f}"' for f in wide)
    verdict = ", ".join(f"{sql} AS {name}" for name, sql in _verdict(filters(folders)).items())
    return f"CREATE VIEW fates AS SELECT *, {verdict} FROM (SELECT {', '.join(columns)} FROM {sidecars})"


def _samples_all(project: Project) -> str:
    """Returns the view of `fates` with each row's place in the plan."""
    if not (project.data / PLAN_FILE).is_file():
        return "CREATE VIEW samples_all AS SELECT * FROM fates"
    places = ", ".join(f"place.{name}" for name in _PLACE.values())
    # Grouped, a sample that the plan repeats stays one row, and aggregates that ask for no place skip the join.
    place = ", ".join(f"min_by({column}, rank) AS {name}" for column, name in _PLACE.items())
    return f"""CREATE VIEW samples_all AS
        SELECT fates.*, place.rank IS NOT NULL AS selected, {places} FROM fates
        LEFT JOIN (SELECT sample_id, {place} FROM plan GROUP BY sample_id) AS place USING (sample_id)"""


def _verdict(stages: Sequence[str]) -> dict[str, str]:
    kept = " AND ".join(f"coalesce({f}_kept, false)" for f in stages) or "true"
    cases = " ".join(f"WHEN NOT {f}_kept THEN '{f}'" for f in stages)
    reasons = " || ".join(f"coalesce({f}_reasons, [])" for f in stages) or "[]::VARCHAR[]"
    return {"kept": kept, "dropped_by": f"CASE {cases} END" if cases else "NULL::VARCHAR", "reasons": reasons}


def _add_rules(connection: Connection, project: Project, folders: Sequence[str]) -> None:
    """Adds the tables `rules` and `reasons`, and the view `rule_values` of every rule's value for every row."""
    found, threshold = rules(), limits(project)
    connection.execute(
        "CREATE TABLE rules (position INTEGER, stage VARCHAR, code VARCHAR, value VARCHAR, bound VARCHAR, "
        "threshold DOUBLE, param VARCHAR, sentence VARCHAR)"
    )
    rows = [
        (k, r.stage, r.code, r.value, r.bound, threshold[r.code], f"{r.stage}.{r.threshold}", r.sentence)
        for k, r in enumerate(found)
    ]
    connection.executemany("INSERT INTO rules VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.execute("CREATE TABLE reasons (stage VARCHAR, code VARCHAR, sentence VARCHAR)")
    connection.executemany("INSERT INTO reasons VALUES (?, ?, ?)", sentences())
    there = [r for r in found if r.stage in folders]
    if there:
        connection.execute(_rule_values(there, threshold))


def _rule_values(found: Sequence[Rule], threshold: Mapping[str, float]) -> str:
    """Returns the view. `margin` is the distance to the threshold relative to it, negative if the row fails;
    `failures` is the number of reasons that the row was dropped for."""

    def constants(values: Iterable[str]) -> str:
        return f"([{', '.join(values)}])[k]"

    # Each row's values and their numbers are unrolled side by side; a join with `rules` would hash every value.
    measured = ", ".join(f'"{r.value}"::DOUBLE' for r in found)
    told = {name: constants(tables.quote(getattr(r, name)) for r in found) for name in ("stage", "code", "bound")}
    measure = constants(tables.quote(r.value) for r in found)
    limit = constants(f"{tables.quote(repr(threshold[r.code]))}::DOUBLE" for r in found)  # 'inf' too
    return f"""CREATE VIEW rule_values AS
        SELECT sample_id, source, stage, code, measure, value, bound, threshold,
               CASE bound WHEN 'min' THEN value - threshold ELSE threshold - value END
                   / CASE threshold WHEN 0 THEN 1 ELSE abs(threshold) END AS margin,
               list_contains(reasons, code) AS failed, failures
        FROM (SELECT sample_id, source, reasons, failures, value, {told["stage"]} AS stage, {told["code"]} AS code,
                     {told["bound"]} AS bound, {measure} AS measure, {limit} AS threshold
              FROM (SELECT sample_id, source, reasons, len(reasons) AS failures, unnest([{measured}]) AS value,
                           unnest(range(1, {len(found) + 1})) AS k FROM fates)
              WHERE value IS NOT NULL)"""
