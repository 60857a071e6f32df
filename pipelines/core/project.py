"""A project: the folder with `params.yaml`, and the paths of everything a run writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pipelines.core import params
from pipelines.core.options import RuntimeConfig
from scoring.core import files
from scoring.core.errors import ConfigError, DataError

C = TypeVar("C")


@dataclass(frozen=True)
class Project:
    """The root folder and its params. Relative paths in params are relative to the root."""

    root: Path
    params: params.Params
    runtime: RuntimeConfig
    force: bool = False

    @property
    def data(self) -> Path:
        """The folder of all part folders."""
        return self.root / "data"

    def folder(self, name: str) -> Path:
        """Returns the folder that stage `name` writes."""
        return self.data / name

    def metrics(self, name: str) -> Path:
        """Returns the metrics file of stage `name`."""
        return self.root / "metrics" / f"{name}.json"

    def section(self, name: str, kind: type[C]) -> C:
        """Returns section `name` of the params as a `kind`."""
        return self.params.section(name, kind)


def open_project(path: Path, *, force: bool = False, engine: str | None = None, workers: int | None = None) -> Project:
    """Returns the project of params file `path`, every section validated; flags override `runtime`."""
    from dataclasses import replace

    found = params.read(path)
    found.check()
    runtime = found.section("runtime", RuntimeConfig)
    changes = {k: v for k, v in {"engine": engine, "workers": workers}.items() if v is not None}
    try:
        runtime = replace(runtime, **changes)  # type: ignore[arg-type]
    except ValueError as error:
        raise ConfigError(str(error), where="--workers", remedy="pass a number of at least 1") from error
    return Project(path.resolve().parent, found, runtime, force)


def look_at(path: Path) -> Project:
    """Returns the project of params file `path` for a look at what is there; a section is validated when it is used.

    Validating all of them takes longer than most queries.
    """
    found = params.read(path)
    return Project(path.resolve().parent, found, RuntimeConfig(engine="local", workers=1, threads=1, beam_args=()))


@contextmanager
def locked(project: Project) -> Iterator[None]:
    """Holds the project's lock, since two runs in one folder would remove each other's files.

    Raises:
      DataError: another run holds it, or the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    path = project.data / ".lock"
    lock = FileLock(path, timeout=0)
    try:
        project.data.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise DataError(
            "another gradsift run is active in this project", where=str(path), remedy="wait for it to finish"
        ) from None
    except OSError as error:
        raise files.cannot_write(path, error) from error
    try:
        yield
    finally:
        lock.release()
