"""`gradsift rescore`: rows ranked by gradient similarity to chosen rows, from sketches, without a model.

Reads: data/gradients/sketches (the last checkpoint kept), and the catalog, which says which rows are chosen.
Writes: the table or Parquet that the user asked for.
Guarantees: part by part, so memory grows with the corpus by only 12 bytes per row; the pairs of `duplicates`
are those of the chosen rows alone.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.catalog import query
from pipelines.catalog.results import BATCH_ROWS, Result, write_parquet, write_table
from pipelines.core.project import Project, open_project
from scoring.core.errors import ConfigError, DataError
from scoring.gradients import sketches
from transforms.core import parts

FOLDER = "gradients/sketches"
MAX_CHOSEN = 20_000  # rows that duplicates are looked for among: every pair is compared

Codes = npt.NDArray[np.int8]


class Sketched(NamedTuple):
    """The rows of a part that have a sketch."""

    ids: list[str]
    codes: Codes  # (n, width)
    scale: npt.NDArray[np.float32]  # (n,)


def rescore(project: Project, toward: str, away: str | None = None) -> pa.Table:
    """Returns `sample_id` and `cosine`, best first: with the mean gradient of the rows where SQL `toward` holds.

    With `away`, the direction is that mean minus the mean of the rows where `away` holds.

    Raises:
      ConfigError: the SQL is wrong, or no row with a sketch is chosen.
      DataError: no sketches were kept.
    """
    direction = _mean(project, toward)
    if away is not None:
        direction = direction - _mean(project, away)
    ids, found = list[str](), [np.zeros(0, np.float32)]
    for part in _sketched(project):
        ids += part.ids
        found.append(sketches.cosines(part.codes, direction[None])[:, 0])
    table = pa.table({"sample_id": pa.array(ids, pa.string()), "cosine": np.concatenate(found)})
    return table.sort_by([("cosine", "descending"), ("sample_id", "ascending")])


def duplicates(project: Project, where: str, min_cosine: float) -> pa.Table:
    """Returns `sample_id`, `other_id` and `cosine` of the pairs of chosen rows with nearly equal gradients.

    Raises:
      ConfigError: as `rescore`; or more than 20 000 rows are chosen.
    """
    chosen = _chosen(project, where)
    if len(chosen) > MAX_CHOSEN:
        raise ConfigError(
            f"{len(chosen):,} rows match; at most {MAX_CHOSEN:,} can be compared pairwise",
            where=where, remedy="narrow the condition, for example to one source",
        )  # fmt: skip
    found = [_only(part, chosen) for part in _sketched(project)]
    ids = np.array([i for part in found for i in part.ids], object)
    codes = np.concatenate([part.codes for part in found]) if found else np.zeros((0, 1), np.int8)
    pairs, cosine = sketches.near_duplicates(codes, min_cosine)
    columns = {"sample_id": ids[pairs[:, 0]].tolist(), "other_id": ids[pairs[:, 1]].tolist(), "cosine": cosine}
    return pa.table(columns).sort_by([("cosine", "descending"), ("sample_id", "ascending"), ("other_id", "ascending")])


def _chosen(project: Project, where: str) -> set[str]:
    with query.run_query(project, f"SELECT sample_id FROM fates WHERE ({where})") as result:
        return {i for batch in result.stream() for i in batch["sample_id"].to_pylist()}


def _mean(project: Project, where: str) -> npt.NDArray[np.float32]:
    """Returns (width,) the mean sketch of the chosen rows."""
    chosen, count = _chosen(project, where), 0
    total: npt.NDArray[np.float64] = np.zeros(1)
    for part in _sketched(project):
        mine = _only(part, chosen)
        total = total + sketches.dequantize(mine.codes, mine.scale).sum(0, dtype=np.float64)
        count += len(mine.ids)
    if not count:
        raise ConfigError(
            f"none of the {len(chosen):,} matching rows has a gradient sketch", where=where,
            remedy="match kept rows with text; test the condition: gradsift query \"SELECT ... FROM fates WHERE ...\"",
        )  # fmt: skip
    return np.asarray(total / count, np.float32)


def _only(part: Sketched, chosen: set[str]) -> Sketched:
    rows = [n for n, i in enumerate(part.ids) if i in chosen]
    return Sketched([part.ids[n] for n in rows], part.codes[rows], part.scale[rows])


def _sketched(project: Project) -> Iterator[Sketched]:
    """Yields the sketches at the last kept checkpoint, part by part."""
    names = parts.names(project.folder(FOLDER))
    if not names:
        raise DataError(
            "no gradient sketches are stored", where=str(project.folder(FOLDER)),
            remedy="set gradients.sketch.keep to last, then rerun the stage: gradsift run gradients",
        )  # fmt: skip
    for name in names:
        batch = parts.read_part(project.folder(FOLDER) / name, ["sample_id", "sketch", "sketch_scale"])
        batch = batch.filter(batch["sketch"].is_valid())
        if batch.num_rows:
            codes = np.frombuffer(b"".join(v[-1] for v in batch["sketch"].to_pylist()), np.int8)
            scale = np.array([v[-1] for v in batch["sketch_scale"].to_pylist()], np.float32)
            yield Sketched(batch["sample_id"].to_pylist(), codes.reshape(batch.num_rows, -1).copy(), scale)


def main(params: Path, find: Callable[[Project], pa.Table], *, parquet: Path | None, rows: int) -> None:
    """Prints the table that `find` returns, or writes it as Parquet."""
    table = find(open_project(params))
    result = Result(table.column_names, table.to_reader(BATCH_ROWS))
    if parquet:
        write_parquet(result, parquet)
    else:
        write_table(result, rows)
