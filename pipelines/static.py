"""The static score: twelve dimensions of a row itself, put in their place in the corpus and weighed by AHP.

Reads: data/samples, data/clean, data/dedup, data/quality, data/tokens, data/gradients (loss).
Writes: data/static, and under it raw (values before scaling), counts (tokens of each part) and unigrams.parquet;
metrics/static.json.
Guarantees: the scores do not depend on part size or order; dropped rows are null; a constant dimension is 0.5.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.core import stage, tables, trust
from pipelines.core.project import Project
from pipelines.core.tables import Connection
from scoring.core import files
from scoring.core.sums import ExactSum
from scoring.core.types import JsonObject
from scoring.models import files as model_files
from scoring.static.alignment import Aligner, load_aligner
from scoring.static.dimensions import DIMENSIONS
from scoring.static.scale import BY_LANGUAGE, TEXTUAL, Bounds, group
from transforms.core import parts, schemas, sealed
from transforms.core.columns import column_digests
from transforms.static.config import StaticConfig
from transforms.static.transform import CountTokens, ReadDimensions, ScoreStatic, no_aligner

MODULE = "pipelines.static"
COUNTS = "static/counts"
KEPT = {"dedup": ["kept"], "quality": ["kept"]}
COUNT_READS = {"clean": ["clean_text", "kept"], **KEPT}
RAW_READS = {
    "samples": ["modality", "images", "audio", "width", "height", "duration_s"],
    "clean": ["clean_text", "language", "dup_5_gram_char_ratio", "kept"],
    **KEPT,
    "tokens": ["text_tokens"],
    "gradients": ["loss", "order_gain"],
}
SCORE_READS = {"samples": ["modality"], "clean": ["language"], "static/raw": list(DIMENSIONS)}


def run(project: Project) -> None:
    """Scores every kept row."""
    config = project.section("static", StaticConfig)
    read_dimensions(project, config, count_tokens(project, config))
    bounds = quantiles(project, config)
    sidecar = stage.Sidecar(
        folder="static",
        schema=schemas.STATIC,
        reads=SCORE_READS,
        code=MODULE,
        config=config,
        depends=[parts.digest(bounds)],
    )
    stage.map_parts(project, sidecar, ScoreStatic(bounds, config.scale))
    stage.write_metrics(project, "static", metrics(project, config, bounds))


def count_tokens(project: Project, config: StaticConfig) -> Path:
    """Writes the corpus frequencies of words and characters; returns their file.

    Each part is counted by itself, once; DuckDB adds the counts up out of core.
    """
    counts = stage.Sidecar(
        folder=COUNTS,
        schema=schemas.TOKEN_COUNTS,
        reads=COUNT_READS,
        code=MODULE,
        config=config.max_tokens,
    )
    wanted = stage.tasks(project, counts)
    stage.write_parts(project, counts, wanted, CountTokens(config.max_tokens))
    sums = parts.Task("unigrams.parquet", stage.fingerprint(MODULE, config.vocabulary, wanted))
    path = project.folder("static") / sums.name
    if not trust.is_done(path.parent, sums):
        table = _add_up(project, config.vocabulary) if wanted else schemas.TOKEN_COUNTS.empty_table()
        columns = [column.combine_chunks() for column in table.columns]
        values = parts.digest(column_digests(pa.record_batch(columns, table.schema)))
        record = parts.footer_metadata(table.schema, {"fingerprint": sums.fingerprint, "values": values})
        table = table.replace_schema_metadata(record)
        files.write_atomic(path, lambda temporary: sealed.write_table(table, temporary, compression="zstd"))
    return path


def _add_up(project: Project, vocabulary: int) -> pa.Table:
    """Returns all characters and the `vocabulary` commonest words, ties by word; the empty word is the rest."""
    totals = f"SELECT kind, token, sum(count)::BIGINT AS count FROM {tables.scan(project.folder(COUNTS))} GROUP BY ALL"
    sql = f"""
        WITH totals AS MATERIALIZED ({totals}),
        top AS (SELECT * FROM totals WHERE kind = 'word' AND token <> '' ORDER BY count DESC, token LIMIT {vocabulary}),
        rest AS (SELECT 'word' AS kind, '' AS token, coalesce((SELECT sum(count) FROM totals WHERE kind = 'word'), 0)
                 - coalesce((SELECT sum(count) FROM top), 0) AS count)
        SELECT kind, token, count::BIGINT AS count FROM (
            SELECT * FROM totals WHERE kind = 'char' UNION ALL SELECT * FROM top UNION ALL SELECT * FROM rest)
        ORDER BY kind, token"""
    with tables.connect(project) as connection:
        return connection.sql(sql).to_arrow_table().cast(schemas.TOKEN_COUNTS)


def read_dimensions(project: Project, config: StaticConfig, unigrams: Path) -> None:
    """Writes the raw dimensions of every kept row."""
    load: Callable[[], Aligner | None] = no_aligner
    depends = [str(parts.Footer(unigrams).meta["values"])]  # not of the parts that they were counted in
    if config.alignment:
        load = partial(load_aligner, config.alignment, project.root, project.runtime.threads)
        depends.append(model_files.digest(config.alignment, project.root))
    sidecar = stage.Sidecar(
        folder="static/raw",
        schema=schemas.STATIC_RAW,
        reads=RAW_READS,
        code=MODULE,
        config=config.max_tokens,
        depends=depends,
    )
    stage.map_parts(project, sidecar, ReadDimensions(unigrams, config.max_tokens, load))


def quantiles(project: Project, config: StaticConfig) -> dict[str, dict[str, tuple[float, float]]]:
    """Returns dimension → group → (low, high) quantile of the raw values.

    One dimension at a time: DuckDB holds one column of the corpus, 8 bytes per row.
    """
    if not parts.names(project.folder("samples")):
        return {}
    with tables.connect(project) as connection:
        return {d: _bounds(project, connection, d, config) for d in DIMENSIONS}


def _bounds(
    project: Project, connection: Connection, dimension: str, config: StaticConfig
) -> dict[str, tuple[float, float]]:
    rows = tables.zipped(project, {"samples": ["modality"], "clean": ["language"], "static/raw": [dimension]})
    split = f"modality IN {TEXTUAL} AND coalesce(language = 'en', false)" if dimension == BY_LANGUAGE else "false"
    found = connection.sql(
        f"""SELECT modality, {split} AS english,
                   quantile_cont({dimension}, [{config.low_quantile}, {config.high_quantile}])
            FROM ({rows}) WHERE {dimension} IS NOT NULL GROUP BY ALL ORDER BY ALL"""
    ).fetchall()
    return {group(m, dimension, english=e): (low, high) for m, e, (low, high) in found}


def metrics(project: Project, config: StaticConfig, bounds: Mapping[str, Bounds]) -> JsonObject:
    """Returns the weights, the quantiles, and the mean score by modality."""
    sums: dict[str, ExactSum] = {}
    reads = {"samples": ["modality"], "static": ["static_score"]}
    for batch in parts.iter_columns(project.data, parts.names(project.folder("samples")), reads):
        known = batch.filter(batch["static.static_score"].is_valid())
        for modality in known["samples.modality"].unique().to_pylist():
            scores = known.filter(pc.equal(known["samples.modality"], modality))["static.static_score"]
            sums.setdefault(modality, ExactSum()).add(scores.to_numpy())
    return {
        "rows_scored": sum(s.count for s in sums.values()),
        "mean_score": {m: s.mean() for m, s in sorted(sums.items())},
        "weights": config.weights,
        "consistency_ratio": config.priorities.consistency_ratio,
        "lambda_max": config.priorities.lambda_max,
        "quantiles": bounds,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "static", argv)


if __name__ == "__main__":
    sys.exit(main())
