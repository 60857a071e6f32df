"""The final score: the LQS of the gradients, mixed with the static score, cut into difficulty bands.

Reads: data/samples (names of parts), data/clean, data/dedup, data/quality, data/static, data/gradients; data/tokens
where gradients were taken of a sample of the rows.
Writes: data/lqs (and the scorer of pipelines.passes.distilled), metrics/lqs.json.
Guarantees: every kept row with a static score has a score; none is NaN; what is missing from a score is in
`score_note`; bands are exact in (score, sample_id) order, whatever the size and order of parts.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.core import stage, tables
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from pipelines.passes import canaries, distilled
from scoring.core.errors import DataError
from scoring.core.ranks import pearson
from scoring.core.sums import ExactSum
from scoring.core.types import JsonObject
from scoring.lqs.formula import Moments, band_ends, log_norm, lqs
from transforms.core import parts, schemas
from transforms.lqs import canary_figures as junk
from transforms.lqs.config import LqsSection
from transforms.lqs.distilled import with_features
from transforms.lqs.transform import Corpus, Key, ScoreRows, mix_batch, read_gradients, read_static

READS = {
    "clean": ["kept"],
    "dedup": ["kept"],
    "quality": ["kept"],
    "static": ["static_score"],
    "gradients": ["gradient_tokens", "grad_norm", "target_cosine", "costate_dot", "costate_cosine", "gradient_note"],
}
_SCORES = pa.schema([("score", pa.float64()), ("sample_id", pa.string())])
Measure = Callable[[pa.RecordBatch], npt.NDArray[np.float64]]


def run(project: Project) -> None:
    """Tries the score on canaries, then scores every kept row."""
    config = project.section("lqs", LqsSection)
    corpus = measure_corpus(project, config)
    fitted = distilled.prepare(project, config, READS, mean_norm=corpus.mean_norm)
    reads, scorer = (with_features(READS), fitted.scorer) if fitted else (READS, None)
    scores = _scores_of(project, reads, lambda batch: mix_batch(batch, config, corpus, scorer).score)
    corpus = replace(corpus, band_ends=_band_ends(project, scores))
    tried = try_canaries(project, config, corpus)
    sidecar = stage.Sidecar(
        folder="lqs",
        schema=schemas.LQS,
        reads=reads,
        code="pipelines.lqs",
        config=asdict(config.mix),
        depends=[parts.digest(asdict(corpus)), *([fitted.digest] if fitted else [])],
    )
    stage.map_parts(project, sidecar, ScoreRows(config, corpus, scorer))
    card = {"distilled": fitted.scorer.card} if fitted else {}
    stage.write_metrics(project, "lqs", {**metrics(project, config, corpus), **card, **tried})


def try_canaries(project: Project, config: LqsSection, corpus: Corpus) -> JsonObject:
    """Returns the AUC of good rows over each kind of junk, by signal.

    Raises:
      DataError: the final score is below `min_canary_auc` for some kind; metrics/lqs.json has the figures.
    """
    measured = canaries.measure(project, config.canaries)
    found = junk.figures(measured, config, corpus) if measured is not None else {}
    summary = canaries.summary(measured, found)
    try:
        canaries.require(found.get("score", {}), config)
    except DataError:
        stage.write_metrics(project, "lqs", summary)
        raise
    return summary


def measure_corpus(project: Project, config: LqsSection) -> Corpus:
    """Returns the corpus statistics but the bands, in three passes over a few small columns, part by part.

    Raises:
      ConfigError: the DELT formula, and gradients on one checkpoint only.
    """
    norm, static = _means(project, READS, lambda b: read_gradients(b).norm[:, -1:].ravel(), read_static)

    def formula(batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
        return lqs(read_gradients(batch), config, mean_norm=norm).lqs

    def log(batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
        return log_norm(read_gradients(batch))

    score, size = _means(project, READS, formula, log)
    measures, means = (read_static, formula, log), (static, score, size)
    squares = [partial(_squared, measure, mean) for measure, mean in zip(measures, means, strict=True)]
    spreads = [math.sqrt(v) for v in _means(project, READS, *squares)]
    moments = [Moments(mean, sd) for mean, sd in zip(means, spreads, strict=True)]
    return Corpus(mean_norm=norm, static=moments[0], lqs=moments[1], log_norm=moments[2], band_ends=(None, None))


def _squared(measure: Measure, mean: float, batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
    return np.asarray((measure(batch) - mean) ** 2, np.float64)


def _means(project: Project, reads: parts.Reads, *measures: Measure) -> list[float]:
    """Returns the mean of each measure over the rows that have it, exact, so independent of parts."""
    sums = [ExactSum() for _ in measures]
    for batch in parts.iter_columns(project.data, parts.names(project.folder("samples")), reads):
        for total, measure in zip(sums, measures, strict=True):
            values = measure(batch)
            total.add(values[~np.isnan(values)])
    return [s.mean() for s in sums]


def _scores_of(project: Project, reads: parts.Reads, measure: Measure) -> Iterator[pa.RecordBatch]:
    """Yields score and sample id of the rows that have a score, part by part."""
    for batch in parts.iter_columns(project.data, parts.names(project.folder("samples")), reads):
        scores = measure(batch)
        known = pa.record_batch([pa.array(scores), batch["sample_id"]], schema=_SCORES)
        yield known.filter(pa.array(~np.isnan(scores)))


def _band_ends(project: Project, scores: Iterator[pa.RecordBatch]) -> tuple[Key | None, Key | None]:
    """Returns the keys of the last rows of base and reinforcement, from an external sort of all scores."""
    with tables.connect(project) as connection:
        connection.register("scores", pa.RecordBatchReader.from_batches(_SCORES, scores))
        connection.execute("CREATE TEMP TABLE keys AS SELECT score, sample_id FROM scores")
        (rows,) = connection.execute("SELECT count(*) FROM keys").fetchone()
        base, reinforcement = (_key(connection, end) for end in band_ends(rows))
    return base, reinforcement


def _key(connection: Connection, end: int) -> Key | None:
    if not end:
        return None
    sql = f"SELECT score, sample_id FROM keys ORDER BY score, sample_id LIMIT 1 OFFSET {end - 1}"
    score, sample_id = connection.execute(sql).fetchone()
    return score, sample_id


def metrics(project: Project, config: LqsSection, corpus: Corpus) -> JsonObject:
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
        "log_norm": corpus.log_norm._asdict(),
        "static": corpus.static._asdict(),
        "spearman_static_lqs": spearman(project),
    }


def _scores(batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
    return parts.floats(batch["lqs.score"])


def _counts(project: Project) -> JsonObject:
    names = ("rows_scored", "with_gradients", "rows_distilled", "static_only", "no_score", "high_value")
    totals = dict.fromkeys(names, 0)
    bands: dict[str, int] = {}
    reads = {"lqs": ["score", "learnability", "score_note", "band", "high_value"]}
    for batch in parts.iter_columns(project.data, parts.names(project.folder("samples")), reads):
        scored, note = batch["lqs.score"].is_valid(), batch["lqs.score_note"]
        totals["rows_scored"] += _true(scored)
        totals["with_gradients"] += _true(batch["lqs.learnability"].is_valid())
        totals["rows_distilled"] += _true(pc.starts_with(note, "distilled"))
        totals["static_only"] += _true(pc.starts_with(note, "static only"))
        totals["no_score"] += _true(pc.starts_with(note, "no score"))
        totals["high_value"] += _true(batch["lqs.high_value"])
        for found in batch["lqs.band"].drop_null().value_counts().to_pylist():
            bands[found["values"]] = bands.get(found["values"], 0) + found["counts"]
    return {**totals, "by_band": dict(sorted(bands.items()))}


def _true(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)


def spearman(project: Project) -> float | None:
    """Returns the rank correlation of the static score and the measured LQS; None where one of them is constant.

    A predicted LQS is left out: it was made from the static dimensions. Ties share their mean rank. Doubled ranks
    are whole numbers, so the sums are exact.
    """
    if not parts.names(project.folder("samples")):
        return None
    rows = tables.zipped(project, {"static": ["static_score"], "lqs": ["lqs", "learnability"]})
    rank = "(2 * rank() OVER (ORDER BY {0}) + count(*) OVER (PARTITION BY {0}) - 1)::HUGEINT"
    sql = f"""SELECT count(*), sum(a), sum(b), sum(a * a), sum(b * b), sum(a * b)
              FROM (SELECT {rank.format("static_score")} AS a, {rank.format("lqs")} AS b
                    FROM ({rows}) WHERE static_score IS NOT NULL AND learnability IS NOT NULL)"""
    with tables.connect(project) as connection:
        n, a, b, aa, bb, ab = (int(v or 0) for v in connection.execute(sql).fetchone())
    found = pearson(n, a, b, aa, bb, ab)
    return None if math.isnan(found) else found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "lqs", argv)


if __name__ == "__main__":
    sys.exit(main())
