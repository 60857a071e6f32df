"""Stage `tokens`: what each row costs a trainer, in tokens, FLOPs and bytes, and against the median row.

Reads: data/samples, data/clean, the tokenizer.
Writes: data/tokens/raw (counts), data/tokens (counts and complexity), metrics/tokens.json.
Guarantees: counts depend on the row alone; complexity also on the median cost of all rows that clean kept
and that have tokens.
"""

import sys
from collections.abc import Sequence

from pipelines.core import stage, tables
from pipelines.core.project import Project
from scoring.core.types import JsonObject
from scoring.models import files as model_files
from scoring.order.cost_config import TokensConfig
from transforms import tokens
from transforms.core import parts, schemas

COUNTS = tuple(n for n in schemas.TOKENS_RAW.names if n.endswith("tokens"))


def run(project: Project) -> None:
    """Counts, takes the median, and writes every row's complexity and the metrics."""
    config = project.section("tokens", TokensConfig)
    raw = stage.Sidecar(
        folder="tokens/raw",
        schema=schemas.TOKENS_RAW,
        reads=tokens.READS,
        code="pipelines.tokens",
        config=config,
        depends=[model_files.digest(config.tokenizer, project.root, weights=False)],
    )
    stage.map_parts(project, raw, tokens.CountTokens(config, project.root, project.runtime.threads))
    totals = _totals(project)
    median = totals["median_flops"]
    sidecar = stage.Sidecar(
        folder="tokens",
        schema=schemas.TOKENS,
        reads={"tokens/raw": [n for n in schemas.TOKENS_RAW.names if n != "sample_id"]},
        code="pipelines.tokens",
        config={},
        depends=[parts.digest(median)],
    )
    stage.map_parts(project, sidecar, tokens.AddComplexity(median))
    stage.write_metrics(project, "tokens", totals)


def _totals(project: Project) -> JsonObject:
    """Returns rows, tokens by modality, FLOPs and the median cost of a row that has tokens.

    FLOPs are summed as integers: the sum of floats depends on how DuckDB's threads split it.
    """
    sums = ", ".join(f"coalesce(sum({name}), 0)::HUGEINT" for name in COUNTS)
    sql = f"""
        SELECT count(tokens), coalesce(sum(flops::HUGEINT), 0), median(flops) FILTER (flops > 0), {sums}
        FROM {tables.scan(project.folder("tokens/raw"))}"""
    with tables.working(project) as connection:
        rows, flops, median, *counts = connection.sql(sql).fetchall()[0]
    return {"rows": rows, "flops": float(flops), "median_flops": median, **dict(zip(COUNTS, counts, strict=True))}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stage; returns the exit code."""
    return stage.main(run, "tokens", argv)


if __name__ == "__main__":
    sys.exit(main())
