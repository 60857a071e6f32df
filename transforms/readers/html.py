"""HTML: one page a file, and the main text of pages wherever readers find them, at position 0 and in place.

Pages are parsed in a separate process, which lives as long as a unit is read. A page that hangs,
crashes the parser or needs too much memory becomes a fault, the process is restarted, and no other
page is lost.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from scoring.core.errors import ToolError
from transforms.readers.base import (
    BrokenError,
    Extent,
    Fault,
    Item,
    Record,
    Row,
    chunks,
    excerpt,
    too_large,
    unreadable,
)
from transforms.readers.columns import Columns
from transforms.readers.fields import Repair
from transforms.readers.html_worker import ANSWER, REQUEST
from transforms.readers.source import HtmlConfig, SourceConfig

MEMORY_BYTES = 2 << 30  # of address space: a page of 10 MB takes 0.6 GB
_STALL = 6  # a page may take so many times its CPU seconds on the clock
_START_S = 120.0  # for the imports of the process, on a busy machine
_EXIT_S = 10.0
_PIPE_BYTES = 1 << 18


class Page(NamedTuple):
    """The bytes of a page, still to become text. `charset` is what its header says; `is_html` false: plain text."""

    data: bytes
    charset: str = ""
    is_html: bool = True


class PageError(Exception):
    """A page without a text; holds the reason code and the words."""

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason, error)
        self.reason, self.error = reason, error


class _EndedError(Exception):
    """The process ended before it answered, or was ended; `code` is its exit code, None if it stalled."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


def read_html(extent: Extent) -> Iterator[Item]:
    """Yields the page of one file."""
    limit, data = extent.source.html.max_bytes, b""
    try:
        for chunk in chunks(extent.path):
            data += chunk
            if len(data) > limit:
                yield Fault(0, "too_large", _over(len(data), limit), excerpt(data))
                return
    except BrokenError as error:
        yield Fault(0, "broken_archive", str(error), excerpt(data))
    except OSError as error:
        yield unreadable(error)
    else:
        charset = extent.source.encoding
        yield Record(0, {"text": Page(data, "" if charset == "utf-8" else charset)})


def _over(size: int, limit: int) -> str:
    return f"{too_large(size, limit).partition(',')[0]}, more than html.max_bytes = {limit}"


def versions() -> str:
    """Returns what decides the text of pages beside our code: the versions of the extractors and their parser."""
    return "; ".join(f"{name} {metadata.version(name)}" for name in ("trafilatura", "lxml", "resiliparse"))


def extracted(item: Item, source: SourceConfig, extractor: "Extractor") -> Item:
    """Returns `item` with the text of its page in place of the page; its title and language are columns then."""
    if isinstance(item, Fault):
        return item
    if source.markup == "html":
        item = item._replace(fields=_marked(item.fields, source))
    name, page = next(((n, v) for n, v in item.fields.items() if isinstance(v, Page)), ("", None))
    if page is None:
        return item
    try:
        found = extractor.read(page)
    except PageError as error:
        shown = "\n".join([*([str(item.fields["url"])] if item.fields.get("url") else []), excerpt(page.data)])
        return Fault(item.position, error.reason, error.error, shown)
    text = found.pop("text")
    return item._replace(fields={**found, **item.fields, name: text})


def _marked(fields: Row, source: SourceConfig) -> Row:
    """Returns `fields` with the text column marked as a page, if it holds one."""
    name = next((c for c in Columns.of(source).by_field["text"] if c in fields), "")
    value = fields.get(name)
    if not value or not isinstance(value, str | bytes):
        return fields
    return {**fields, name: Page(value) if isinstance(value, bytes) else Page(Repair().fix(value).encode(), "utf-8")}


class Extractor:
    """Makes texts of pages in a process that is started with the first one; close it to end the process."""

    def __init__(self, config: HtmlConfig) -> None:
        self._config = config
        self._child: subprocess.Popen[bytes] | None = None
        self._answered = 0  # by this child

    def read(self, page: Page) -> dict[str, str]:
        """Returns `text`, and where they are known `title` and `language`.

        Raises:
          PageError: `too_large`, `html_timeout`, `html_failed` or `no_text`.
          ToolError: the extractor is not installed.
        """
        if page.is_html and len(page.data) > self._config.max_bytes:
            raise PageError("too_large", _over(len(page.data), self._config.max_bytes))
        found = _plain(page) or self._ask(page)
        if "error" in found:
            raise PageError("html_failed", f"{self._config.extractor}: {found['error']}")
        if not found["text"]:
            raise PageError("no_text", "the page has no main text" if page.is_html else "the text is empty")
        return found

    def close(self) -> None:
        """Ends the process."""
        child, self._child, self._answered = self._child, None, 0
        if child is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _ask(self, page: Page) -> dict[str, str]:
        """Returns the answer of the process.

        One that served others before may have died of what they left in it: only a new one's death is the page's.
        """
        while True:
            used = self._answered > 0
            try:
                found = self._answer(page)
            except _EndedError as error:
                self.close()
                timed_out = error.code in (None, -signal.SIGPROF)
                if used and not timed_out:
                    continue
                raise self._fault(error.code) from None
            if "fatal" not in found:
                self._answered += 1
                return found
            self.close()
            if not used:
                return found

    def _fault(self, code: int | None) -> PageError:
        limit, name = self._config.timeout_s, self._config.extractor
        if code == -signal.SIGPROF:
            return PageError("html_timeout", f"{name}: no text after {limit:g} s of CPU time")
        if code is None:
            return PageError("html_timeout", f"{name}: no text after {_STALL * limit:g} s")
        ended = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        return PageError("html_failed", f"{name}: the process {ended}")

    def _answer(self, page: Page) -> dict[str, str]:
        if self._child is None:
            self._start()
        name = page.charset.encode("ascii", "replace")[:1000]
        request = REQUEST.pack(page.is_html, len(name), len(page.data)) + name + page.data
        return self._exchange(request, _STALL * self._config.timeout_s)

    def _start(self) -> None:
        root = str(Path(__file__).parents[2])
        paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        # -P: a module in the user's folder must not replace one of Python's.
        args = [sys.executable, "-P", "-m", "transforms.readers.html_worker", self._config.extractor]
        self._child = subprocess.Popen(
            [*args, str(self._config.timeout_s), str(MEMORY_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        self._greet()

    def _greet(self) -> None:
        """Waits for the process to be ready: its imports are no page's time."""
        remedy = f"pip install {self._config.extractor} resiliparse"
        try:
            words = self._exchange(b"", _START_S).get("error")
        except _EndedError as error:
            words, remedy = f"the process exited with code {error.code} at start-up", "free some memory, then rerun"
        if words:
            self.close()
            raise ToolError(f"{self._config.extractor} cannot start: {words}", remedy=remedy)

    def _exchange(self, request: bytes, patience_s: float) -> dict[str, str]:
        """Returns the answer to `request`, which is sent as the process takes it."""
        assert self._child is not None
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        into, out = self._child.stdin.fileno(), self._child.stdout.fileno()
        poll, left, got = select.poll(), memoryview(request), bytearray()
        poll.register(out, select.POLLIN)
        if left:
            poll.register(into, select.POLLOUT)
        deadline = time.monotonic() + patience_s
        while len(got) < ANSWER.size or len(got) < ANSWER.size + ANSWER.unpack_from(got)[0]:
            ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                raise _EndedError(None)
            for file, _ in ready:
                if file == out:
                    got += self._receive(out)
                else:
                    with suppress(BrokenPipeError):
                        left = left[os.write(into, left[:_PIPE_BYTES]) :]
                    if not left:
                        poll.unregister(into)
        return dict(json.loads(got[ANSWER.size :]))

    def _receive(self, out: int) -> bytes:
        assert self._child is not None
        data = os.read(out, _PIPE_BYTES)
        if data:
            return data
        try:
            code = self._child.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            code = None
        raise _EndedError(code)


def _plain(page: Page) -> dict[str, str] | None:
    """Returns plain text in UTF-8, the usual case, without a trip to the process; None for all else."""
    if page.is_html or page.charset.lower() not in ("", "utf-8", "utf8", "us-ascii"):
        return None
    try:
        return {"text": page.data.decode("utf-8-sig").strip()}
    except UnicodeDecodeError:
        return None
