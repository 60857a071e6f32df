"""A project from Python: the same work as the commands of `gradsift`, with values for results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.core import project as opened


class Project:
    """The project of a folder that holds `params.yaml`, or of a params file.

    Every call reads params and data as they are on disk at that moment.

        project = gradsift.Project("corpus")
        project.run(["ingest", "clean"])
        project.query("SELECT source, count(*) AS rows FROM samples_all GROUP BY 1").to_pandas()
    """

    def __init__(self, path: str | Path = ".") -> None:
        """Opens the project.

        Raises:
          ConfigError: there is no params file, or it is wrong; the message has the dotted path of the key.
        """
        found = Path(path)
        self.path = found / "params.yaml" if found.is_dir() else found
        self._open()

    @property
    def params(self) -> Mapping[str, Any]:
        """Every param, defaults included, as `gradsift params` prints them."""
        return self._open().params.tree

    def run(
        self,
        stages: Sequence[str] = (),
        *,
        engine: str | None = None,
        workers: int | None = None,
        force: bool = False,
    ) -> None:
        """Runs `stages`, or all of them, in the order of the pipeline; finished parts are skipped.

        Progress goes to standard error; a run of the stage `report` prints the summary.

        Raises:
          GradsiftError: what `gradsift run` would end with; `exit_code` says which kind it is.
        """
        from pipelines import runner

        runner.run(self.path, list(stages), engine=engine, workers=workers, force=force)

    def query(self, sql: str, **values: Any) -> "pa.Table":
        """Returns the result of `sql`: a SELECT, or the name of a shipped query, whose parameters are `values`.

        Raises:
          ConfigError: the SQL is wrong, or does anything but read.
          DataError: there are no samples yet.
        """
        import pyarrow as pa

        from pipelines.catalog.query import run_query

        with run_query(self._open(), sql, values) as result:
            return pa.Table.from_batches(result.stream(), result.batches.schema)

    def explain(self, sample_id: str) -> str:
        """Returns one row's life: every value against its threshold, its scores, its shard or why it was dropped.

        Raises:
          ConfigError: no row has this id or uri, or several begin with it.
        """
        from pipelines.catalog.explain import explain

        return explain(self._open(), sample_id)

    def _open(self) -> "opened.Project":
        from pipelines.core.project import open_project

        return open_project(self.path)
