"""Lines and paragraphs that rows share with other rows of the corpus: a step of stage `dedup`.

Reads:      clean (clean_text) and the `kept` columns that it is given
Writes:     dedup/lines (schemas.DEDUP_LINES), and under it keys (LINE_KEYS of each part), shared.npy and shared.json
Guarantees: the values do not depend on part size, order or workers; a part whose rows share the same lines as before
            keeps its bytes, however the corpus grows.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipelines.core import stage, tables
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from pipelines.passes import key_files
from scoring.core import files
from transforms.clean.lines import LINE_KEYS, ListLineKeys, MeasureSharedLines
from transforms.core import parts, schemas

MODULE = "pipelines.passes.corpus_lines"
FOLDER, KEYS = "dedup/lines", "dedup/lines/keys"
_BATCH_ROWS = 1 << 20


def run(project: Project, *, kept: parts.Reads) -> None:
    """Writes `dedup/lines` for every part of `samples`.

    `kept` names the folders whose `kept` columns say which rows take part, e.g. {"clean": ["kept"]}. A row that
    they drop has nulls, and what it shares with others does not count for them either.
    """
    reads = {**kept, "clean": ["clean_text", *kept.get("clean", ())]}
    keys = stage.Sidecar(folder=KEYS, schema=LINE_KEYS, reads=reads, code=MODULE, config=None)
    wanted = stage.tasks(project, keys)
    stage.write_parts(project, keys, wanted, ListLineKeys())
    path = project.folder(FOLDER) / "shared.npy"
    if not wanted:
        parts.remove_strays(path.parent, ())
        return
    shared = replace(keys, folder=FOLDER, schema=schemas.DEDUP_LINES, own=_shares(project, path, parts.digest(wanted)))
    stage.write_parts(project, shared, stage.tasks(project, shared), MeasureSharedLines(path))


def _shares(project: Project, path: Path, corpus: str) -> dict[str, str]:
    """Returns the digest of each part's share of the keys in `path`, which are recomputed for another `corpus`."""
    record = path.with_suffix(".json")
    try:
        seen = json.loads(record.read_text(encoding="utf-8")) if path.exists() and not project.force else {}
    except (OSError, ValueError):
        seen = {}
    if seen.get("corpus") != corpus or seen.get("digest") != files.file_digest(path):
        with tables.working(project) as connection:
            shares = _find_shared(connection, project.folder(KEYS), path)
        seen = {"corpus": corpus, "shares": shares, "digest": files.file_digest(path)}
        files.write_json(record, seen)
    return dict(seen["shares"])


def _find_shared(connection: Connection, folder: Path, path: Path) -> dict[str, str]:
    """Writes the keys that two rows or more have to `path`, ascending; returns the digest of each part's share."""
    connection.execute(
        f"CREATE TEMP TABLE shared AS SELECT key FROM {tables.scan(folder)} GROUP BY key HAVING sum(rows) > 1"
    )
    files.write_atomic(path, lambda temporary: _write_keys(connection, temporary))
    return key_files.shares(connection, folder, "shared", ["key"])


def _write_keys(connection: Connection, path: str) -> None:
    """Writes table `shared` as an .npy file of uint64, a batch at a time."""
    ((count,),) = connection.sql("SELECT count(*) FROM shared").fetchall()
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<u8", "fortran_order": False, "shape": (count,)})
        for batch in connection.sql("SELECT key FROM shared ORDER BY key").to_arrow_reader(_BATCH_ROWS):
            file.write(batch.column(0).to_numpy(zero_copy_only=False).astype("<u8", copy=False).tobytes())
