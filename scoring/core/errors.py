"""The errors of gradsift, one tree:

GradsiftError            exit code 1
├── ConfigError          exit code 2: params, flags, sources that match nothing
├── SchemaError          exit code 1: a column that is missing or of another type
├── DataError            exit code 1: conservation, source loss, reject ratio, a full disk
└── ToolError            exit code 3: ffmpeg or a model cannot be had

A message says what, with the value; where (stage, file, sample); and the remedy.
"""


class GradsiftError(Exception):
    """Base of all errors a user is meant to read; `str()` is the whole message.

    Beam re-raises with `type(error)(str(error) + " [while running ...]")`, so one positional
    argument must always be enough.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        lines = [what, f"  where: {where}" if where else "", f"  remedy: {remedy}" if remedy else ""]
        super().__init__("\n".join(line for line in lines if line))


class ConfigError(GradsiftError):
    """Params or flags are wrong; nothing was run."""

    exit_code = 2


class SchemaError(GradsiftError):
    """A column is missing, unknown or of another type."""


class DataError(GradsiftError):
    """The data breaks a promise: conservation, source loss, reject ratio, a failed write."""


class ToolError(GradsiftError):
    """A tool or model that a stage needs is missing or broken."""

    exit_code = 3
