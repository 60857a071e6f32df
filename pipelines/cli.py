"""The `gradsift` command. Heavy imports stand inside the commands, so that `--help` answers at once."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="gradsift",
    help="Offline data curation: raw multimodal files in; scored, ordered, cost-balanced Parquet out.",
    epilog="example: gradsift run && gradsift query top_lqs",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ParamsFile = Annotated[Path, typer.Option("--params", help="The project's params file.")]
DEFAULT = Path("params.yaml")


def _exit(name: str, action: Callable[[], None]) -> None:
    """Runs `action` and leaves with its exit code: 0 done, 1 data, 2 configuration, 3 missing tool."""
    from pipelines.stage import guard

    raise typer.Exit(guard(name, action))


@app.command(epilog="example: gradsift run clean dedup --engine processes --workers 4")
def run(
    stages: Annotated[list[str] | None, typer.Argument(help="Stages to run; all of them when none is named.")] = None,
    params: ParamsFile = DEFAULT,
    engine: Annotated[str | None, typer.Option(help="local, processes, or the name of a Beam runner.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes of the engine `processes`.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Compute finished parts again.")] = False,
) -> None:
    """Run the pipeline, or the named stages of it; finished parts are skipped."""
    from pipelines import runner

    _exit("run", lambda: runner.run(params, stages or [], engine=engine, workers=workers, force=force))


@app.command(epilog='example: gradsift query "SELECT source, count(*) FROM samples_all GROUP BY 1"')
def query(
    sql: Annotated[str | None, typer.Argument(help="SQL, or the name of a shipped query; none lists them.")] = None,
    params: ParamsFile = DEFAULT,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
    parquet: Annotated[Path | None, typer.Option(help="Write a Parquet file.")] = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows shown in a table on the terminal.")] = 50,
    rule: Annotated[list[str] | None, typer.Option(help="For whatif: the code of a rule; may be repeated.")] = None,
    threshold: Annotated[list[float] | None, typer.Option(help="For whatif: its threshold, in the same order.")] = None,
) -> None:
    """Ask DuckDB about samples, scores, drops and shards, read-only; `whatif` tries out other thresholds."""
    from pipelines import query as module

    shape: dict[str, Any] = {"csv": csv, "json": json, "parquet": parquet, "rows": rows}
    _exit("query", lambda: module.main(params, sql, **shape, rules=rule or [], thresholds=threshold or []))


@app.command(epilog="""example: gradsift rescore "label = 'good'" --away "label = 'bad'" --parquet wanted.parquet""")
def rescore(
    where: Annotated[str, typer.Argument(help="SQL that chooses rows of `fates`: what the others are compared with.")],
    params: ParamsFile = DEFAULT,
    away: Annotated[str | None, typer.Option(help="SQL that chooses rows to point away from.")] = None,
    duplicates: Annotated[float | None, typer.Option(help="List pairs of the chosen rows above this cosine.")] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write a Parquet file.")] = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows shown in a table on the terminal.")] = 20,
) -> None:
    """Rank all rows by how far their gradients point where the chosen ones do; no model runs."""
    from pipelines import rescore as module

    def find(project: Any) -> Any:
        if duplicates is not None:
            return module.duplicates(project, where, duplicates)
        return module.rescore(project, where, away)

    _exit("rescore", lambda: module.main(params, find, parquet=parquet, rows=rows))


@app.command(epilog="example: gradsift rules --json")
def rules(
    params: ParamsFile = DEFAULT,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array, with more columns.")] = False,
) -> None:
    """List every rule: variant, constant, who published it, and what it dropped in the last run."""
    from pipelines import rules_list as module

    _exit("rules", lambda: module.main(params, json=json))


@app.command(epilog="example: gradsift explain texts/fault-exact_duplicate-00")
def explain(
    sample_id: Annotated[str, typer.Argument(help="A sample_id, or the unique beginning of one.")],
    params: ParamsFile = DEFAULT,
) -> None:
    """Print one row's life: every value against its threshold, its scores, its shard or why it was dropped."""
    from pipelines import explain as module
    from pipelines.project import open_project

    _exit("explain", lambda: print(module.explain(open_project(params), sample_id)))


@app.command(epilog="example: gradsift report")
def report(params: ParamsFile = DEFAULT) -> None:
    """Write reports/index.html anew and print the summary of the last run."""
    from pipelines import report as module
    from pipelines.stage import run_one

    def action() -> None:
        project = run_one(module.run, params, force=False, engine=None, workers=None)
        print(module.summary(project))

    _exit("report", action)


@app.command(epilog="example: gradsift doctor")
def doctor(params: ParamsFile = DEFAULT) -> None:
    """Check ffmpeg, models, versions, disk and params; say what is wrong and how to mend it."""
    from pipelines import doctor as module

    _exit("doctor", lambda: module.main(params))


@app.command(epilog="example: gradsift ahp; gradsift ahp --weights length=3 cleanliness=2")
def ahp(
    more: Annotated[list[str] | None, typer.Argument(help="Further importances, after --weights.")] = None,
    params: ParamsFile = DEFAULT,
    weights: Annotated[list[str] | None, typer.Option(help="Print the matrix of these, DIMENSION=NUMBER.")] = None,
) -> None:
    """Check the judgements of static.ahp: weights, consistency, and a small fix as YAML; exit code 2 if they clash."""
    from pipelines import ahp as module

    _exit("ahp", lambda: module.main(params, [*(weights or []), *(more or [])]))


@app.command(epilog="example: gradsift nightly --params /srv/corpus/params.yaml")
def nightly(params: ParamsFile = DEFAULT) -> None:
    """Take the lock, compute only what new or changed sources need, and end with an exit code."""
    from pipelines import nightly as module

    _exit("nightly", lambda: module.main(params))


def main() -> None:
    """Entry point of the console script."""
    sys.exit(app())


if __name__ == "__main__":
    main()
