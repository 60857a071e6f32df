"""The final score: the LQS of the gradients, mixed with the static score, cut into difficulty bands.

Reads: data/samples (names of parts), data/clean, data/dedup, data/quality, data/static, data/gradients.
Writes: data/lqs, metrics/lqs.json.
Guarantees: every kept row with a static score has a score; none is NaN; what a score lacks stands in
`score_note`; bands are exact in (score, sample_id) order, whatever the size and order of parts.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines import stage, tables
from pipelines.project import Project
from scoring.lqs import LqsConfig, Moments, band_ends, lqs
from scoring.sums import ExactSum
from transforms import parts, schemas
from transforms.lqs import Corpus, Key, ScoreRows, mix_batch, read_gradients, read_static

READS = {
    "clean": ["kept"],
    "dedup": ["kept"],
    "quality": ["kept"],
    "static": ["static_score"],
    "gradients": ["grad_norm", "target_cosine", "costate_dot", "costate_cosine", "gradient_note"],
}
Measure = Callable[[pa.RecordBatch], npt.NDArray[np.float64]]


def run(project: Project) -> None:
    """Scores every kept row."""
    config = project.section("lqs", LqsConfig)
    corpus = measure_corpus(project, config)
    stage.map_parts(
        project,
        ScoreRows(config, corpus),
        module="pipelines.lqs",
        folder="lqs",
        schema=schemas.LQS,
        reads=READS,
        config=config,
        depends=[parts.digest(asdict(corpus))],
    )
    stage.write_metrics(project, "lqs", metrics(project, config, corpus))


def measure_corpus(project: Project, config: LqsConfig) -> Corpus:
    """Returns the corpus statistics, in four passes over a few small columns, part by part.

    Raises:
      ConfigError: the DELT formula, and gradients on one checkpoint only.
    """
    norm, static = _means(project, READS, lambda b: read_gradients(b).norm[:, -1:].ravel(), read_static)

    def formula(batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
        return lqs(read_gradients(batch), config, mean_norm=norm).lqs

    score, static_variance = _means(project, READS, formula, lambda b: (read_static(b) - static) ** 2)
    (variance,) = _means(project, READS, lambda b: (formula(b) - score) ** 2)
    moments = Moments(static, math.sqrt(static_variance)), Moments(score, math.sqrt(variance))
    corpus = Corpus(mean_norm=norm, static=moments[0], lqs=moments[1], band_ends=(None, None))
    return replace(corpus, band_ends=_band_ends(project, config, corpus))


def _means(project: Project, reads: parts.Reads, *measures: Measure) -> list[float]:
    """Returns the mean of each measure over the rows that have it, exact, so independent of parts."""
    sums = [ExactSum() for _ in measures]
    for batch in parts.iter_columns(project.data, parts.names(project.folder("samples")), reads):
        for total, measure in zip(sums, measures, strict=True):
            values = measure(batch)
            total.add(values[~np.isnan(values)])
    return [s.mean() for s in sums]


def _band_ends(project: Project, config: LqsConfig, corpus: Corpus) -> tuple[Key | None, Key | None]:
    """Returns the keys of the last rows of base and reinforcement, from an external sort of all scores."""
    schema = pa.schema([("score", pa.float64()), ("sample_id", pa.string())])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in parts.iter_columns(project.data, parts.names(project.folder("samples")), READS):
            scores = mix_batch(batch, config, corpus).score
            known = pa.record_batch([pa.array(scores), batch["sample_id"]], schema=schema)
            yield known.filter(pa.array(~np.isnan(scores)))

    with tables.connect(project) as connection:
        connection.register("scores", pa.RecordBatchReader.from_batches(schema, batches()))
        connection.execute("CREATE TEMP TABLE keys AS SELECT score, sample_id FROM scores")
        (rows,) = connection.execute("SELECT count(*) FROM keys").fetchone()
        base, reinforcement = (_key(connection, end) for end in band_ends(rows))
    return base, reinforcement


def _key(connection: Any, end: int) -> Key | None:
    if not end:
        return None
    sql = f"SELECT score, sample_id FROM keys ORDER BY score, sample_id LIMIT 1 OFFSET {end - 1}"
    score, sample_id = connection.execute(sql).fetchone()
    return score, sample_id


def metrics(project: Project, config: LqsConfig, corpus: Corpus) -> dict[str, Any]:
    """Returns how many rows have which score, band and flag, and how the two parts of the score agree."""
    reads = {"lqs": ["score"]}
    (mean,) = _means(project, reads, _scores)
    (variance,) = _means(project, reads, lambda b: (_scores(b) - mean) ** 2)
    return {
        "formula": config.formula,
        **_counts(project),
        "mean": mean,
        "sd": math.sqrt(variance),
        "mean_norm": corpus.mean_norm,
        "lqs": corpus.lqs._asdict(),
        "static": corpus.static._asdict(),
        "spearman_static_lqs": spearman(project),
    }


def _scores(batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
    return np.asarray(batch["lqs.score"].to_numpy(zero_copy_only=False), np.float64)


def _counts(project: Project) -> dict[str, Any]:
    totals = {"rows_scored": 0, "with_gradients": 0, "static_only": 0, "no_score": 0, "high_value": 0}
    bands: dict[str, int] = {}
    reads = {"lqs": ["score", "lqs", "score_note", "band", "high_value"]}
    for batch in parts.iter_columns(project.data, parts.names(project.folder("samples")), reads):
        scored, note = batch["lqs.score"].is_valid(), batch["lqs.score_note"]
        totals["rows_scored"] += _true(scored)
        totals["with_gradients"] += _true(batch["lqs.lqs"].is_valid())
        totals["static_only"] += _true(pc.starts_with(note, "static only"))
        totals["no_score"] += _true(pc.starts_with(note, "no score"))
        totals["high_value"] += _true(batch["lqs.high_value"])
        for found in batch["lqs.band"].drop_null().value_counts().to_pylist():
            bands[found["values"]] = bands.get(found["values"], 0) + found["counts"]
    return {**totals, "by_band": dict(sorted(bands.items()))}


def _true(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)


def spearman(project: Project) -> float | None:
    """Returns the rank correlation of the static score and the LQS; None where one of them is constant.

    Ties share their mean rank. Doubled ranks are whole numbers, so the sums are exact.
    """
    if not parts.names(project.folder("samples")):
        return None
    rows = tables.zipped(project, {"static": ["static_score"], "lqs": ["lqs"]})
    rank = "(2 * rank() OVER (ORDER BY {0}) + count(*) OVER (PARTITION BY {0}) - 1)::HUGEINT"
    sql = f"""SELECT count(*), sum(a), sum(b), sum(a * a), sum(b * b), sum(a * b)
              FROM (SELECT {rank.format("static_score")} AS a, {rank.format("lqs")} AS b
                    FROM ({rows}) WHERE static_score IS NOT NULL AND lqs IS NOT NULL)"""
    with tables.connect(project) as connection:
        n, a, b, aa, bb, ab = (int(v or 0) for v in connection.execute(sql).fetchone())
    spread = (n * aa - a * a) * (n * bb - b * b)
    return (n * ab - a * b) / math.sqrt(spread) if spread else None


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "lqs", argv)


if __name__ == "__main__":
    sys.exit(main())
