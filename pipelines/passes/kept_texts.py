"""Seeded samples of the kept rows with text: training rows of the reference, and the default target of gradients."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow.compute as pc

from pipelines.core import stage, tables
from pipelines.core.project import Project
from transforms.core import parts

READS: parts.Reads = {
    "samples": ["sample_id"],
    "clean": ["clean_text", "kept", "chars"],
    "dedup": ["kept"],
    "quality": ["kept", "quality"],
}


class Chosen(NamedTuple):
    """A row of the sample, and its part."""

    sample_id: str
    part: str


def choose(project: Project, rows: int, seed: int, *, better_half: bool) -> list[Chosen]:
    """Returns the kept rows with text of the smallest seeded hashes, at most `rows`, in the order of these.

    `better_half` draws from rows of at least the median quality; where no row has a quality, from all.
    Neither the order of rows nor their distribution over parts matters, and new rows displace few old ones.
    """
    if not parts.names(project.folder("samples")):
        return []
    columns = {
        "samples": ["sample_id", "filename"], "clean": ["kept", "chars"], "dedup": ["kept"],
        "quality": ["kept", "quality"],
    }  # fmt: skip
    bound = "quality >= (SELECT median(quality) FROM kept)" if better_half else "true"
    sql = f"""
        WITH kept AS (SELECT sample_id, parse_filename(filename) AS part, quality,
                             md5(concat({seed}, ':', sample_id)) AS hash
                      FROM ({tables.zipped(project, columns)})
                      WHERE clean_kept AND dedup_kept AND quality_kept AND chars > 0)
        SELECT sample_id, part FROM kept WHERE coalesce({bound}, (SELECT count(quality) = 0 FROM kept))
        ORDER BY hash, sample_id LIMIT {rows}"""
    with tables.working(project) as connection:
        return [Chosen(*row) for row in connection.sql(sql).fetchall()]


def read(project: Project, chosen: Sequence[Chosen], chars: int) -> list[str]:
    """Returns the first `chars` characters of the clean text of each chosen row."""
    wanted = {c.sample_id for c in chosen}
    found: dict[str, str] = {}
    for batch in parts.iter_columns(project.data, sorted({c.part for c in chosen}), {"clean": ["clean_text"]}):
        ids = batch["sample_id"].to_pylist()
        rows = [n for n, sample_id in enumerate(ids) if sample_id in wanted]
        texts = pc.utf8_slice_codeunits(batch["clean.clean_text"].take(rows), 0, chars).to_pylist()
        found |= {ids[n]: text for n, text in zip(rows, texts, strict=True)}
    return [found[c.sample_id] for c in chosen]


def inputs(project: Project) -> str:
    """Returns the digest of all columns that the samples above are drawn from."""
    return stage.corpus_digest(project, READS)
