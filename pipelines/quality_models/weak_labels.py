"""Weak labels for quality: rows that the rules keep, rows that they drop, and degraded copies of kept rows.

Reads: data/samples (ids), data/clean, data/dedup.
Writes: nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pipelines.core import tables
from pipelines.core.project import Project
from pipelines.passes import kept_texts
from scoring.core.hashing import hash64
from scoring.quality import degrade
from scoring.quality.head import MIN_ROWS, Labelled
from transforms.core import parts
from transforms.text.decontaminate import rules as decontaminate

GOOD, SPOILT, DROPPED = "good", "spoilt", "dropped"

_SPOILT_CHARS = 4_000  # of a text that is spoilt
_NOT_QUALITY = ("empty", "language_not_allowed", *(rule.code for rule in decontaminate.RULES))


class Source(NamedTuple):
    """A row to learn from: GOOD as it is, SPOILT a degraded copy of it, or DROPPED by a rule about quality."""

    sample_id: str
    part: str
    domain: str
    kind: str


def choose(project: Project, train_rows: int, seed: int) -> list[Source]:
    """Returns up to `train_rows` kept rows with text to stand as good, and as many others: half of them dropped
    rows, as far as there are any, and the rest kept rows to be spoilt.

    They have the smallest hashes: neither the order of rows nor their distribution over parts matters, and new rows
    displace few old ones. Captions count too: a head that has seen no short text drops a quarter of the good ones.
    """
    if not parts.names(project.folder("samples")):
        return []
    columns = {"samples": ["sample_id", "source", "filename"], "clean": ["kept", "chars", "reasons"], "dedup": ["kept"]}
    sql = f"""
        WITH rows AS (SELECT sample_id, parse_filename(filename) AS part, source,
                             md5(concat({seed}, ':', sample_id)) AS hash,
                             CASE WHEN clean_kept AND dedup_kept AND hash[-1] < '8' THEN '{GOOD}'
                                  WHEN clean_kept AND dedup_kept THEN '{SPOILT}'
                                  WHEN NOT clean_kept AND NOT list_has_any(reasons, {list(_NOT_QUALITY)})
                                  THEN '{DROPPED}' END AS kind
                      FROM ({tables.zipped(project, columns)}) WHERE chars > 0)
        SELECT sample_id, part, source, kind FROM
            (SELECT *, row_number() OVER (PARTITION BY kind ORDER BY hash, sample_id) AS place FROM rows
             WHERE kind IS NOT NULL)
        WHERE place <= {train_rows} ORDER BY hash, sample_id"""
    with tables.working(project) as connection:
        return _balanced([Source(*row) for row in connection.sql(sql).fetchall()], train_rows)


def _balanced(found: Sequence[Source], train_rows: int) -> list[Source]:
    """Returns all good rows, and dropped and spoilt ones: half and half, or more of those that there are enough of."""
    by_kind = {kind: [s for s in found if s.kind == kind] for kind in (GOOD, DROPPED, SPOILT)}
    dropped = by_kind[DROPPED][: max(train_rows // 2, train_rows - len(by_kind[SPOILT]))]
    return [*by_kind[GOOD], *dropped, *by_kind[SPOILT][: train_rows - len(dropped)]]


def too_few(sources: Sequence[Source]) -> bool:
    """Returns whether the sources are too few to learn from."""
    good = sum(s.kind == GOOD for s in sources)
    return min(good, len(sources) - good) < MIN_ROWS


def rows(project: Project, sources: Sequence[Source], seed: int, max_chars: int) -> list[Labelled]:
    """Returns the rows to learn from; the kinds of degradation come in turn, and a copy that is no worse is none."""
    chosen = [kept_texts.Chosen(s.sample_id, s.part) for s in sources]
    texts = dict(zip((s.sample_id for s in sources), kept_texts.read(project, chosen, max_chars), strict=True))
    found = [
        Labelled(s.sample_id, texts[s.sample_id], s.kind == GOOD, "kept" if s.kind == GOOD else DROPPED, s.domain)
        for s in sources
        if s.kind != SPOILT
    ]
    spoilt = [s for s in sources if s.kind == SPOILT]
    before = [texts[s.sample_id][:_SPOILT_CHARS] for s in spoilt]
    copies = degrade.degrade_in_turn(before, [hash64(seed, "degrade", s.sample_id) for s in spoilt])
    for source, text, (kind, worse) in zip(spoilt, before, copies, strict=True):
        if worse != text:
            found.append(Labelled(source.sample_id, worse, False, kind, source.domain))
    return found
