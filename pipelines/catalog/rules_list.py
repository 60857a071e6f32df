"""`gradsift rules`: every rule with its variant, its constant, who published it, and what it dropped in the last run.

Reads: params, and the values in the catalog, if there are any.
Writes: nothing but the catalog, where it is out of date.
"""

import sys
from math import isnan
from pathlib import Path

import pyarrow as pa

from pipelines.catalog import current
from pipelines.catalog import views as catalog
from pipelines.catalog.results import Result, number, write_json, write_table
from pipelines.core.project import Project, open_project
from scoring.core.types import JsonObject, Record
from transforms.core import parts
from transforms.core.rules import Rule

Counts = tuple[int, int, int]  # rows with a value, rows that the rule dropped, rows that it alone dropped

SCHEMA = pa.schema(
    [
        ("code", pa.string()),
        ("stage", pa.string()),
        ("family", pa.string()),
        ("variant", pa.string()),
        ("on", pa.bool_()),
        ("value", pa.string()),
        ("bound", pa.string()),
        ("threshold", pa.float64()),
        ("param", pa.string()),
        ("source", pa.string()),
        ("meaning", pa.string()),
        ("judged", pa.int64()),
        ("dropped", pa.int64()),
        ("drop_ratio", pa.float64()),
        ("only_this_rule", pa.int64()),
    ]
)
SHOWN = ("code", "variant", "keeps", "on", "dropped", "percent", "only_this_rule", "source")


def rows(project: Project) -> pa.Table:
    """Returns one row of `SCHEMA` a rule, in the order in which they are evaluated; counts are null before a run."""
    limits, counts = catalog.limits(project), _counts(project)
    found = [_row(project, rule, limits[rule.code], counts.get(rule.code)) for rule in catalog.rules()]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def _row(project: Project, rule: Rule, limit: float, counts: Counts | None) -> JsonObject:
    judged, dropped, alone = counts or (None, None, None)
    family = rule.threshold.split(".")[0] if "." in rule.threshold else rule.stage
    variant, on = standing(project.params.tree[rule.stage], rule)
    return {
        "code": rule.code, "stage": rule.stage, "family": family, "variant": variant,
        "on": on, "value": rule.value, "bound": rule.bound, "threshold": None if isnan(limit) else limit,
        "param": f"{rule.stage}.{rule.threshold}", "source": rule.origin, "meaning": rule.sentence,
        "judged": judged, "dropped": dropped, "only_this_rule": alone,
        "drop_ratio": dropped / judged if judged and dropped is not None else None,
    }  # fmt: skip


def standing(section: Record, rule: Rule) -> tuple[str | None, bool]:
    """Returns the variant of the family of `rule`, and whether it drops rows, from the params of its stage."""
    family = section
    for key in rule.threshold.split(".")[:-1]:
        family = family[key]
    return family.get("variant"), rule.is_on(section)


def _counts(project: Project) -> dict[str, Counts]:
    """Returns the counts of each rule that has values, by its code."""
    if not parts.names(project.folder("samples")):
        return {}
    with current.reading(project) as connection:
        if ("rule_values",) not in connection.execute("SHOW TABLES").fetchall():
            return {}
        found = connection.execute(
            "SELECT code, count(*), count(*) FILTER (failed), count(*) FILTER (failed AND failures = 1) "
            "FROM rule_values GROUP BY code"
        ).fetchall()
    return {code: (judged, dropped, alone) for code, judged, dropped, alone in found}


def main(path: Path, *, json: bool) -> None:
    """Prints the rules of the project of params file `path` as a table, or as a JSON array."""
    found = rows(open_project(path))
    if json:
        write_json(Result(found.column_names, found.to_reader()), sys.stdout)
        return
    shown = pa.Table.from_pylist([_shown(row) for row in found.to_pylist()])
    write_table(Result(shown.column_names, shown.to_reader()), 0)


def _shown(row: Record) -> JsonObject:
    """Returns the columns of a row that fit a terminal."""
    ratio = row["drop_ratio"]
    limit = "" if row["threshold"] is None else number(row["threshold"])
    keeps = f"{'≥' if row['bound'] == 'min' else '≤'} {limit}" if limit else None
    told = {**row, "keeps": keeps, "percent": None if ratio is None else round(100 * ratio, 2)}
    return {name: told[name] for name in SHOWN}
