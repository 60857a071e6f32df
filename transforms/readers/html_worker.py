"""The process that parses pages: if it hangs, crashes or runs out of memory, only one page is lost.

It reads requests from stdin and writes answers to stdout, each behind its length; the parent is
`transforms.readers.html`. Nothing but these bytes passes between them.
"""

import importlib
import json
import os
import re
import resource
import signal
import struct
import sys
from collections.abc import Callable
from typing import BinaryIO

from transforms.core.worker import die_with_parent

REQUEST = struct.Struct("<?HQ")  # whether it is HTML, bytes of the charset's name, bytes of the page
ANSWER = struct.Struct("<Q")  # bytes of the JSON behind it
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_LIKE_ASCII = ("utf-16", "iso-2022", "iso2022")  # valid UTF-8, but of another meaning
_MAX_DAMAGE = 0.01  # of a page that is UTF-8 by its own word
_META_BYTES = 4096
_META = re.compile(
    rb"""<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)""", re.I
)

Extract = Callable[[str], dict[str, str | None]]


def decode(page: bytes, charset: str, *, is_html: bool) -> str:
    """Returns a page as text: by its byte order mark, as UTF-8, by the charset of its header, its own word, or a guess.

    UTF-8 goes before what is declared: text in another charset is hardly ever valid in it, and headers often
    lie. What no charset explains becomes U+FFFD.
    """
    for mark, name in _BOMS:
        if page.startswith(mark):
            return page[len(mark) :].decode(name, "replace")
    declared = [_codec(label) for label in (charset, _declared(page) if is_html else "") if label]
    like_ascii = [name for name in declared if name.startswith(_LIKE_ASCII)]
    for name in filter(None, (*like_ascii, "utf-8", *declared)):
        try:
            return page.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    text = page.decode("utf-8", "replace")
    if "utf-8" in declared and text.count("\ufffd") <= len(text) * _MAX_DAMAGE:
        return text
    from resiliparse.parse.encoding import detect_encoding

    return page.decode(detect_encoding(page) or "utf-8", "replace")


def _declared(page: bytes) -> str:
    """Returns the charset that a page names itself; one that can be read in ASCII is not UTF-16."""
    found = _META.search(page[:_META_BYTES])
    name = (found[1] or found[2]).decode() if found else ""
    return "utf-8" if name.lower().startswith("utf-16") else name


def _codec(label: str) -> str:
    """Returns Python's name of the encoding that browsers take `label` for, or an empty string."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    return map_encoding_to_html5(label, fallback_utf8=False) or ""


def with_trafilatura() -> Extract:
    """Returns the extractor that reads articles best."""
    from trafilatura import extract, load_html

    def run(page: str) -> dict[str, str | None]:
        tree = load_html(page)
        if tree is None:
            return {}
        facts = {"title": tree.findtext(".//title"), "language": tree.get("lang")}
        return {**facts, "text": extract(tree, include_comments=False, favor_precision=True)}

    return run


def with_resiliparse() -> Extract:
    """Returns the extractor that is fastest."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    def run(page: str) -> dict[str, str | None]:
        tree = HTMLTree.parse(page)
        top = tree.document.query_selector("html") if tree.document else None
        text = extract_plain_text(tree, main_content=True, alt_texts=False, comments=False, post_meta=False)
        return {"title": tree.title, "language": top.getattr("lang") if top else None, "text": text}

    return run


EXTRACTORS: dict[str, Callable[[], Extract]] = {"trafilatura": with_trafilatura, "resiliparse": with_resiliparse}


def answer(extract: Extract, page: bytes, charset: str, *, is_html: bool) -> dict[str, object]:
    """Returns the text and facts of a page, or the words of an error; `fatal` where the process must end."""
    try:
        text = decode(page, charset, is_html=is_html)
        found = extract(text) if is_html else {"text": text}
    except MemoryError:
        return {"error": "out of memory", "fatal": True}
    except Exception as error:  # noqa: BLE001 (a parser raises what it likes)
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    tidy = {k: " ".join(v.split()) for k, v in found.items() if k != "text" and v}
    return {**{k: v for k, v in tidy.items() if v}, "text": (found.get("text") or "").strip()}


def serve(extract: Extract, requests: BinaryIO, answers: BinaryIO, timeout_s: float) -> None:
    """Answers requests until there are no more; the kernel ends the process after `timeout_s` of CPU time a page."""
    while head := requests.read(REQUEST.size):
        is_html, name_size, size = REQUEST.unpack(head)
        charset, page = requests.read(name_size).decode("ascii", "replace"), requests.read(size)
        signal.setitimer(signal.ITIMER_PROF, timeout_s)
        found = answer(extract, page, charset, is_html=is_html)
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(answers, found)
        if "fatal" in found:
            return


def send(answers: BinaryIO, found: dict[str, object]) -> None:
    """Writes one answer."""
    data = json.dumps(found).encode()
    answers.write(ANSWER.pack(len(data)) + data)
    answers.flush()


def main(extractor: str, timeout_s: str, memory_bytes: str) -> None:
    """Runs until stdin ends."""
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_AS, (int(memory_bytes),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand among the answers
    try:
        extract = EXTRACTORS[extractor]()
        importlib.import_module("resiliparse.parse.encoding")
    except ImportError as error:
        send(answers, {"error": str(error)})
        return
    send(answers, {})
    serve(extract, sys.stdin.buffer, answers, float(timeout_s))


if __name__ == "__main__":
    main(*sys.argv[1:])
