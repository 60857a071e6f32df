"""Beam engines: which runner carries the transforms, and with what flags."""

import logging
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from scoring.core.config import config
from scoring.core.errors import ConfigError

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

MOST = 1024
T = TypeVar("T")
LOCAL = ("local", "processes")
FETCHING = ("DirectRunner", "SwitchingDirectRunner", "PrismRunner")


@config
class RuntimeConfig:
    """How stages run; does not affect results, so a change here invalidates nothing."""

    engine: str  # local | processes | the name of any Beam runner
    workers: int  # worker processes of the engine `processes`
    threads: int  # torch threads per worker
    beam_args: tuple[str, ...]  # further flags for the runner

    def __post_init__(self) -> None:
        if self.workers < 1 or self.threads < 1:
            raise ValueError(f"workers and threads must be at least 1, got {self.workers} and {self.threads}")
        if self.workers > MOST or self.threads > MOST:
            raise ValueError(f"workers and threads must be at most {MOST}, got {self.workers} and {self.threads}")


def make_pipeline(runtime: RuntimeConfig) -> "beam.Pipeline":
    """Returns an empty pipeline on the engine of `runtime`.

    Raises:
      ConfigError: Beam has no such runner, or it would access the network.
    """
    if runtime.engine in FETCHING:
        raise ConfigError(
            f"{runtime.engine} would download another engine from the network first",
            where="runtime.engine",
            remedy="use local or processes, which run on this machine",
        )
    import apache_beam as beam

    from transforms.core import part_io  # noqa: F401 (registers the coder of parts)
    from transforms.core.beam_options import CachedOptions

    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)  # the error itself carries the traceback
    arguments = list(runtime.beam_args)
    if runtime.engine == "processes":
        arguments.append(f"--direct_num_workers={runtime.workers}")
    try:
        return beam.Pipeline(runner=_runner(runtime.engine), options=CachedOptions(arguments))
    except ValueError as error:
        what = "unknown engine" if "Unexpected pipeline runner" in str(error) else f"{runtime.engine} cannot start"
        remedy = "use local, processes, or a Beam runner with the flags it needs in runtime.beam_args"
        raise ConfigError(f"{what}: {error}", where="runtime.engine", remedy=remedy) from error


def spread(pipeline: "beam.Pipeline", items: Sequence[T], kind: type[T], engine: str) -> "beam.PCollection[T]":
    """Returns `items` as elements that the workers of `engine` share; the one of `local` takes them as they come."""
    import apache_beam as beam

    listed = pipeline | "ListItems" >> beam.Create(items, reshuffle=False).with_output_types(kind)
    return listed if engine == "local" else listed | "SpreadItems" >> beam.Reshuffle()


def _runner(engine: str) -> "str | FnApiRunner":
    if engine not in LOCAL:
        return engine
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    return FnApiRunner(default_environment=_worker_processes() if engine == "processes" else None)


def _worker_processes() -> "SubprocessSDKEnvironment":
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    command = f"exec {shlex.quote(sys.executable)} -m transforms.core.worker"
    return SubprocessSDKEnvironment.from_command_string(command_string=command)
