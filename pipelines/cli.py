"""The `gradsift` command. Heavy imports are inside the commands, so that `--help` answers at once."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.core.types import JsonObject

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.core.project import Project

app = typer.Typer(
    name="gradsift",
    help="Offline data curation: turns raw multimodal files into scored, ordered, cost-balanced Parquet.",
    epilog="example: gradsift run && gradsift query top_lqs",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

quality = typer.Typer(
    help="Train and export your own quality models, for quality.head and quality.model in params.yaml.",
    epilog="example: gradsift quality fit labels.jsonl --out heads/mine",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(quality, name="quality")

ParamsFile = Annotated[Path, typer.Option("--params", help="The project's params file.")]
DEFAULT = Path("params.yaml")


def _exit(name: str, action: Callable[[], None]) -> None:
    """Runs `action` and exits with its exit code: 0 done, 1 data, 2 configuration, 3 missing tool."""
    from pipelines.core.exits import guard

    raise typer.Exit(guard(name, action))


@app.command(epilog="example: gradsift run clean dedup --engine processes --workers 4")
def run(
    stages: Annotated[list[str] | None, typer.Argument(help="Stages to run; default: all.")] = None,
    params: ParamsFile = DEFAULT,
    engine: Annotated[
        str | None, typer.Option(help="local, processes, or the name of a Beam runner; overrides runtime.engine.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Number of worker processes (engine `processes`).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Recompute finished parts.")] = False,
) -> None:
    """Run the whole pipeline or the given stages; finished parts are skipped."""
    from pipelines import runner

    _exit("run", lambda: runner.run(params, stages or [], engine=engine, workers=workers, force=force))


@app.command(epilog='example: gradsift query "SELECT source, count(*) FROM samples_all GROUP BY 1"')
def query(
    sql: Annotated[str | None, typer.Argument(help="SQL or the name of a built-in query; omit to list them.")] = None,
    params: ParamsFile = DEFAULT,
    csv: Annotated[bool, typer.Option("--csv", help="Print the result as CSV.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as a JSON array.")] = False,
    parquet: Annotated[Path | None, typer.Option(help="Write the result to this Parquet file.")] = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows to show on the terminal.")] = 50,
    rule: Annotated[list[str] | None, typer.Option(help="For whatif: reason code of a rule; repeatable.")] = None,
    threshold: Annotated[
        list[float] | None, typer.Option(help="For whatif: new threshold of each --rule, in order.")
    ] = None,
) -> None:
    """Run a read-only SQL query over samples, scores, drops and shards; `whatif` tries other thresholds."""
    from pipelines.catalog import query as module

    shape: JsonObject = {"csv": csv, "json": json, "parquet": parquet, "rows": rows}
    _exit("query", lambda: module.main(params, sql, **shape, rules=rule or [], thresholds=threshold or []))


@app.command(epilog="""example: gradsift rescore "label = 'good'" --away "label = 'bad'" --parquet wanted.parquet""")
def rescore(
    where: Annotated[str, typer.Argument(help="SQL condition on `fates`: the rows to compare all others with.")],
    params: ParamsFile = DEFAULT,
    away: Annotated[
        str | None, typer.Option(help="SQL condition on `fates`: rows whose direction is subtracted.")
    ] = None,
    duplicates: Annotated[
        float | None, typer.Option(help="List pairs of matching rows above this cosine instead.")
    ] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write the result to this Parquet file.")] = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows to show on the terminal.")] = 20,
) -> None:
    """Rank all rows by gradient similarity to the rows that match WHERE; uses stored sketches, runs no model."""
    from pipelines.catalog import rescore as module

    def find(project: "Project") -> "pa.Table":
        if duplicates is not None:
            return module.duplicates(project, where, duplicates)
        return module.rescore(project, where, away)

    _exit("rescore", lambda: module.main(params, find, parquet=parquet, rows=rows))


@app.command(epilog="example: gradsift rules --json")
def rules(
    params: ParamsFile = DEFAULT,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array with more columns.")] = False,
) -> None:
    """List every rule with its variant, threshold, publication, and what it dropped in the last run."""
    from pipelines.catalog import rules_list as module

    _exit("rules", lambda: module.main(params, json=json))


@app.command(epilog="example: gradsift explain texts/fault-exact_duplicate-00")
def explain(
    sample_id: Annotated[str, typer.Argument(help="A sample_id, a unique prefix of one, or uri:position of a reject.")],
    params: ParamsFile = DEFAULT,
) -> None:
    """Explain one row: each value against its threshold, its scores, and its shard or why it was dropped."""
    from pipelines.catalog import explain as module
    from pipelines.core.project import look_at

    _exit("explain", lambda: print(module.explain(look_at(params), sample_id)))


@app.command(epilog="example: gradsift report")
def report(params: ParamsFile = DEFAULT) -> None:
    """Rewrite reports/index.html and print a summary of the last run."""
    from pipelines import report as module
    from pipelines.core.stage import run_one

    def action() -> None:
        project = run_one(module.run, params, force=False, engine=None, workers=None)
        print(module.summary(project))

    _exit("report", action)


@app.command(epilog="example: gradsift verify && echo whole")
def verify(params: ParamsFile = DEFAULT) -> None:
    """Compare every file under data/ with its checksum; list what is damaged and which stage rewrites it."""
    from pipelines.commands import verify as module

    _exit("verify", lambda: module.main(params))


@app.command(epilog="example: gradsift doctor")
def doctor(params: ParamsFile = DEFAULT) -> None:
    """Check ffmpeg, models, versions, disk space and params; say what is wrong and how to fix it."""
    from pipelines.commands import doctor as module

    _exit("doctor", lambda: module.main(params))


@app.command(epilog="example: gradsift init corpus && cd corpus && gradsift run")
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the new project.")],
    force: Annotated[bool, typer.Option("--force", help="Replace params.yaml, its schema and dvc.yaml.")] = False,
) -> None:
    """Start a project: a params file of what differs from the defaults, its JSON schema, dvc.yaml and ignore files."""
    from pipelines.commands import init as module

    _exit("init", lambda: module.main(folder, force=force))


@app.command(name="params", epilog="example: gradsift params; gradsift params --schema >params.schema.json")
def print_params(
    params: ParamsFile = DEFAULT,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, without comments.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of params files.")] = False,
) -> None:
    """Print every param, defaults included, with the comments that describe them."""
    from pipelines.commands import print_params as module

    _exit("params", lambda: module.main(params, as_json=json, schema=schema))


@app.command(epilog="example: gradsift deps && dvc repro")
def deps(params: ParamsFile = DEFAULT) -> None:
    """Write the files and folders of ingest.sources into dvc.yaml, so that `dvc repro` sees when they change."""
    from pipelines.commands import deps as module

    _exit("deps", lambda: module.main(params))


@app.command(epilog="example: gradsift ahp; gradsift ahp --weights length=3 cleanliness=2")
def ahp(
    more: Annotated[list[str] | None, typer.Argument(help="More DIMENSION=NUMBER pairs, after --weights.")] = None,
    params: ParamsFile = DEFAULT,
    weights: Annotated[
        list[str] | None, typer.Option(help="Print the matrix for these importances, DIMENSION=NUMBER.")
    ] = None,
) -> None:
    """Check static.ahp: print weights and consistency; if inconsistent, propose a small fix as YAML (exit code 2)."""
    from pipelines.commands import ahp as module

    _exit("ahp", lambda: module.main(params, [*(weights or []), *(more or [])]))


@quality.command(epilog="example: gradsift quality fit labels.jsonl --out heads/mine --test test.jsonl --unfreeze 2")
def fit(
    out: Annotated[Path, typer.Option(help="Output folder; set quality.head to it afterwards.")],
    labels: Annotated[
        str | None, typer.Argument(metavar="LABELS", help="Labelled texts: a file, folder or glob.")
    ] = None,
    params: ParamsFile = DEFAULT,
    model: Annotated[str | None, typer.Option(help="The encoder; default: quality.model.")] = None,
    test: Annotated[str | None, typer.Option(help="Held-out labelled texts, used for evaluation only.")] = None,
    label: Annotated[str, typer.Option(help="Label column.")] = "label",
    text: Annotated[list[str] | None, typer.Option(help="Text column; repeatable.")] = None,
    annotator: Annotated[str | None, typer.Option(help="Annotator column.")] = None,
    format: Annotated[str, typer.Option(help="auto, jsonl, json, parquet, csv or label_studio.")] = "auto",
    good: Annotated[list[str] | None, typer.Option(help="A label that counts as good; repeatable.")] = None,
    unfreeze: Annotated[int | None, typer.Option(help="Also fine-tune the last K encoder layers.")] = None,
    teacher: Annotated[
        str | None, typer.Option(help="A classifier whose scores on the corpus become the labels.")
    ] = None,
    teacher_good: Annotated[
        list[str] | None, typer.Option(help="A teacher label that counts as good; repeatable.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Minimum teacher score that counts as good.")] = None,
    rows: Annotated[int, typer.Option(help="Number of corpus rows the teacher scores.")] = 1000,
    min_spearman: Annotated[
        float, typer.Option(help="Reject the head if its agreement with the teacher is lower.")
    ] = 0.3,
) -> None:
    """Fit a quality head on labelled texts or a teacher's scores, evaluate it, and write it with a model card."""
    from pipelines.quality_models import fit_command as module

    def action() -> None:
        columns: JsonObject = {"label": label, "text": tuple(text or ["text"]), "annotator": annotator}
        taught: JsonObject = {"teacher": teacher, "teacher_good": tuple(teacher_good or ()), "threshold": threshold}
        module.main(params, module.Request(
            out=out, labels=labels, test=test, model=model, format=format, good=tuple(good or ()), unfreeze=unfreeze,
            rows=rows, min_spearman=min_spearman, **columns, **taught,
        ))  # fmt: skip

    _exit("quality fit", action)


@quality.command(epilog="example: gradsift quality export --out onnx/mine")
def export(
    out: Annotated[Path, typer.Option(help="Output folder.")],
    params: ParamsFile = DEFAULT,
    model: Annotated[str | None, typer.Option(help="The model; default: quality.model.")] = None,
    rows: Annotated[int, typer.Option(help="Number of corpus rows to measure agreement on.")] = 256,
) -> None:
    """Export the quality model to ONNX (float32 and int8) and measure how well int8 agrees on the corpus."""
    from pipelines.quality_models import export as module

    _exit("quality export", lambda: module.main(params, out, model, rows))


@app.command(epilog="example: gradsift nightly --params /srv/corpus/params.yaml")
def nightly(params: ParamsFile = DEFAULT) -> None:
    """Run the pipeline once for new and changed sources, under the project lock; for cron and systemd."""
    from pipelines import nightly as module

    _exit("nightly", lambda: module.main(params))


def main() -> None:
    """Entry point of the console script."""
    sys.exit(app())


if __name__ == "__main__":
    main()
