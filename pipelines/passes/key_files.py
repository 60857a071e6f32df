"""Global sets over the corpus from a small file of keys a part: what boilerplate and shared lines are found with.

A key file is cached like any part, so a nightly run hashes new parts only. DuckDB adds the files up out of core. What
a part reads of the set is identified by a digest of its own share: a part that a change of the set does not
touch keeps its fingerprint.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa

from pipelines.core import progress, stage, tables
from pipelines.core.project import Project
from transforms.core import part_io, parts


def write(
    project: Project,
    folder: str,
    transform: beam.PTransform,
    *,
    wanted: Sequence[parts.Task],
    reads: parts.Reads,
    schema: pa.Schema,
) -> None:
    """Writes those of the parts `wanted` of `folder` that are not done; removes strays."""
    target = project.folder(folder)
    parts.remove_strays(target, [t.name for t in wanted])
    todo = [t for t in wanted if project.force or not parts.is_done(target, t)]
    progress.say(f"{folder}: {len(todo)} of {len(wanted)} parts to do")
    with progress.watch(folder, target, {t.name for t in todo}):
        stage.run_tasks(project, todo, reads, transform, part_io.WriteParts(target, schema))


def shares(connection: Any, folder: Path, found: str, keys: Sequence[str]) -> dict[str, str]:
    """Returns part name → digest of the rows of the table `found` that its key file has; no entry where it has none.

    The last of the columns `keys`, which both have, is a 64-bit hash. The rows are told by count, sum and xor: no
    order, no list of them in memory.
    """
    *others, key = keys
    named = "".join(f", {other}" for other in others)
    told = f"count(*), sum({key}::HUGEINT)::VARCHAR, bit_xor({key})"
    rows_of = f"{tables.scan(folder)} SEMI JOIN {found} USING ({', '.join(keys)})"
    sql = f"SELECT filename{named}, {told} FROM {rows_of} GROUP BY filename{named} ORDER BY filename{named}"
    rows: dict[str, list[Any]] = {}
    for filename, *row in connection.sql(sql).fetchall():
        rows.setdefault(Path(filename).name, []).append(row)
    return {name: parts.digest(share) for name, share in rows.items()}


def with_shares(wanted: Sequence[parts.Task], digests: Mapping[str, str]) -> list[parts.Task]:
    """Returns `wanted` with each part's digest in its fingerprint."""
    return [parts.Task(t.name, parts.digest(t.fingerprint, digests.get(t.name, ""))) for t in wanted]
