"""How a command ends: its error in words, and the exit code of the error."""

import re
import signal
import sys
from collections.abc import Callable

from scoring.core.errors import ConfigError, DataError, GradsiftError, SchemaError, ToolError


def guard(name: str, action: Callable[[], object]) -> int:
    """Calls `action`; returns 0, or the exit code of the error that it printed."""
    try:
        action()
    except GradsiftError as error:
        return _fail(name, error)
    except KeyboardInterrupt:
        return _stopped(name)
    except RuntimeError as error:
        if str(error).startswith("KeyboardInterrupt"):  # Beam's way of handing it on
            return _stopped(name)
        found = from_beam(error)
        if found is None:
            raise
        return _fail(name, found)
    except _duckdb_errors() as error:
        return _fail(name, DataError(f"DuckDB: {error}", remedy="find the damaged file: gradsift verify"))
    return 0


def _duckdb_errors() -> tuple[type[Exception], ...]:
    """Returns the base of DuckDB's errors, where something has imported it."""
    module = sys.modules.get("duckdb")
    return (module.Error,) if module else ()


def _stopped(name: str) -> int:
    print(f"gradsift {name}: interrupted; rerun to resume", file=sys.stderr)
    return 128 + signal.SIGINT


def _fail(name: str, error: GradsiftError) -> int:
    print(f"gradsift {name}: {_plain(str(error))}", file=sys.stderr)
    return error.exit_code


_OURS = re.compile(r"^(?:scoring[\w.]*\.)?(ConfigError|DataError|SchemaError|ToolError): (.*)", re.M | re.S)


def from_beam(error: BaseException) -> GradsiftError | None:
    """Returns the gradsift error that a worker raised, which Beam passes on as text; None if there is none."""
    kinds: dict[str, type[GradsiftError]] = {k.__name__: k for k in (ConfigError, DataError, SchemaError, ToolError)}
    found = _OURS.search(str(error))
    if not found:
        return None
    return kinds[found[1]](_plain(found[2]))


def _plain(message: str) -> str:
    """Returns `message` without what Beam appends."""
    return re.split(r" \[while running |\n\nDuring handling|\nTraceback ", message)[0].strip()
