"""Global sets over the corpus from a small file of keys a part: what boilerplate and shared lines are found with.

A key file is cached like any part, so a nightly run hashes new parts only. DuckDB adds the files up out of core. What
a part reads of the set is identified by a digest of its own share: a part that a change of the set does not
touch keeps its fingerprint.
"""

from collections.abc import Sequence
from pathlib import Path

from pipelines.core import tables
from pipelines.core.tables import Connection
from transforms.core import parts


def shares(connection: Connection, folder: Path, found: str, keys: Sequence[str]) -> dict[str, str]:
    """Returns part name → digest of the rows of the table `found` that its key file has; no entry where it has none.

    The last of the columns `keys`, which both have, is a 64-bit hash. The rows are told by count, sum and xor: no
    order, no list of them in memory.
    """
    *others, key = keys
    named = "".join(f", {other}" for other in others)
    told = f"count(*), sum({key}::HUGEINT)::VARCHAR, bit_xor({key})"
    rows_of = f"{tables.scan(folder)} SEMI JOIN {found} USING ({', '.join(keys)})"
    sql = f"SELECT filename{named}, {told} FROM {rows_of} GROUP BY filename{named} ORDER BY filename{named}"
    rows: dict[str, list[object]] = {}
    for filename, *row in connection.sql(sql).fetchall():
        rows.setdefault(Path(filename).name, []).append(row)
    return {name: parts.digest(share) for name, share in rows.items()}
