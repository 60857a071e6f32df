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

quality = typer.Typer(
    help="Quality models of your own, for `quality.head` and `quality.model` in params.",
    epilog="example: gradsift quality fit labels.jsonl --out heads/mine",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(quality, name="quality")

ParamsFile = Annotated[Path, typer.Option("--params", help="The project's params file.")]
DEFAULT = Path("params.yaml")


def _exit(name: str, action: Callable[[], None]) -> None:
    """Runs `action` and leaves with its exit code: 0 done, 1 data, 2 configuration, 3 missing tool."""
    from pipelines.core.stage import guard

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
    from pipelines.catalog import query as module

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
    from pipelines.catalog import rescore as module

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
    from pipelines.catalog import rules_list as module

    _exit("rules", lambda: module.main(params, json=json))


@app.command(epilog="example: gradsift explain texts/fault-exact_duplicate-00")
def explain(
    sample_id: Annotated[str, typer.Argument(help="A sample_id, or the unique beginning of one.")],
    params: ParamsFile = DEFAULT,
) -> None:
    """Print one row's life: every value against its threshold, its scores, its shard or why it was dropped."""
    from pipelines.catalog import explain as module
    from pipelines.core.project import open_project

    _exit("explain", lambda: print(module.explain(open_project(params), sample_id)))


@app.command(epilog="example: gradsift report")
def report(params: ParamsFile = DEFAULT) -> None:
    """Write reports/index.html anew and print the summary of the last run."""
    from pipelines import report as module
    from pipelines.core.stage import run_one

    def action() -> None:
        project = run_one(module.run, params, force=False, engine=None, workers=None)
        print(module.summary(project))

    _exit("report", action)


@app.command(epilog="example: gradsift doctor")
def doctor(params: ParamsFile = DEFAULT) -> None:
    """Check ffmpeg, models, versions, disk and params; say what is wrong and how to mend it."""
    from pipelines.commands import doctor as module

    _exit("doctor", lambda: module.main(params))


@app.command(epilog="example: gradsift deps && dvc repro")
def deps(params: ParamsFile = DEFAULT) -> None:
    """Write the files and folders of ingest.sources into dvc.yaml, so that `dvc repro` sees when they change."""
    from pipelines.commands import deps as module

    _exit("deps", lambda: module.main(params))


@app.command(epilog="example: gradsift ahp; gradsift ahp --weights length=3 cleanliness=2")
def ahp(
    more: Annotated[list[str] | None, typer.Argument(help="Further importances, after --weights.")] = None,
    params: ParamsFile = DEFAULT,
    weights: Annotated[list[str] | None, typer.Option(help="Print the matrix of these, DIMENSION=NUMBER.")] = None,
) -> None:
    """Check the judgements of static.ahp: weights, consistency, and a small fix as YAML; exit code 2 if they clash."""
    from pipelines.commands import ahp as module

    _exit("ahp", lambda: module.main(params, [*(weights or []), *(more or [])]))


@quality.command(epilog="example: gradsift quality fit labels.jsonl --out heads/mine --test test.jsonl --unfreeze 2")
def fit(
    out: Annotated[Path, typer.Option(help="The folder to write; params then name it in quality.head.")],
    labels: Annotated[
        str | None, typer.Argument(metavar="LABELS", help="Labelled texts: a file, folder or glob.")
    ] = None,
    params: ParamsFile = DEFAULT,
    model: Annotated[str | None, typer.Option(help="The encoder; that of quality.model when none is named.")] = None,
    test: Annotated[str | None, typer.Option(help="Further labelled texts, to measure on alone.")] = None,
    label: Annotated[str, typer.Option(help="Column of the label.")] = "label",
    text: Annotated[list[str] | None, typer.Option(help="Column of the text; may be repeated.")] = None,
    annotator: Annotated[str | None, typer.Option(help="Column that names who judged.")] = None,
    format: Annotated[str, typer.Option(help="auto, jsonl, json, parquet, csv or label_studio.")] = "auto",
    good: Annotated[list[str] | None, typer.Option(help="A label that is good; may be repeated.")] = None,
    unfreeze: Annotated[int | None, typer.Option(help="Train the last K layers of the encoder too.")] = None,
    teacher: Annotated[str | None, typer.Option(help="A classifier whose scores of the corpus are the labels.")] = None,
    teacher_good: Annotated[list[str] | None, typer.Option(help="A good label of the teacher's.")] = None,
    threshold: Annotated[float | None, typer.Option(help="The teacher's score from which on a text is good.")] = None,
    rows: Annotated[int, typer.Option(help="Rows that the teacher scores.")] = 1000,
    min_spearman: Annotated[float, typer.Option(help="Refuse a head that agrees less with its teacher.")] = 0.3,
) -> None:
    """Fit a quality head on labelled texts or on a teacher's scores, measure it, and write it with its model card."""
    from pipelines.quality_models import fit_command as module

    def action() -> None:
        columns: dict[str, Any] = {"label": label, "text": tuple(text or ["text"]), "annotator": annotator}
        taught: dict[str, Any] = {"teacher": teacher, "teacher_good": tuple(teacher_good or ()), "threshold": threshold}
        module.main(params, module.Request(
            out=out, labels=labels, test=test, model=model, format=format, good=tuple(good or ()), unfreeze=unfreeze,
            rows=rows, min_spearman=min_spearman, **columns, **taught,
        ))  # fmt: skip

    _exit("quality fit", action)


@quality.command(epilog="example: gradsift quality export --out onnx/mine")
def export(
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    params: ParamsFile = DEFAULT,
    model: Annotated[str | None, typer.Option(help="The model; quality.model when none is named.")] = None,
    rows: Annotated[int, typer.Option(help="Rows of the corpus that agreement is measured on.")] = 256,
) -> None:
    """Write the quality model as ONNX, in float32 and int8, and measure how far int8 agrees with it on the corpus."""
    from pipelines.quality_models import export as module

    _exit("quality export", lambda: module.main(params, out, model, rows))


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
