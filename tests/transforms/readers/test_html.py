"""Pages: decoded, read by a process that may die, hang or blow up without taking another page with it."""

import gzip
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reading import extent, faults, read, source

from scoring.core.errors import ToolError
from transforms.readers import html, html_worker
from transforms.readers.base import Fault, Record
from transforms.readers.html import Extractor, Page, PageError, extracted, read_html, versions
from transforms.readers.html_worker import decode
from transforms.readers.source import HtmlConfig

WORDS = "Rivers carry sand and silt from the hills to the sea, and the people there live by them. "
ARTICLE = f"<p>{WORDS * 3}</p><p>{WORDS * 2}</p>"
PAGE = f"<!DOCTYPE html><html lang='en'><head><title> On\n rivers </title></head><body><article>{ARTICLE}</article>"
DEEP = "<html><body>" + "<div>" * 200_000 + WORDS + "</div>" * 200_000


def extractor(**keys: Any) -> Extractor:
    return Extractor(HtmlConfig(**keys))


@pytest.fixture(scope="module")
def pages() -> Iterator[Extractor]:
    with closing(extractor()) as found:
        yield found


@pytest.fixture(scope="module")
def fast() -> Iterator[Extractor]:
    with closing(extractor(extractor="resiliparse", timeout_s=0.5)) as found:
        yield found


def reason(found: Extractor, page: Page) -> str:
    with pytest.raises(PageError) as caught:
        found.read(page)
    return caught.value.reason


DECODED: list[tuple[bytes, str, str]] = [
    ("naïve 中文".encode(), "", "naïve 中文"),
    (b"\xef\xbb\xbfa", "koi8-r", "a"),
    ("текст".encode("utf-16"), "", "текст"),
    ("текст".encode("cp1251"), "windows-1251", "текст"),
    ("é".encode("latin-1"), "ISO-8859-1", "é"),
    (b"<meta charset=gb2312>" + "中文".encode("gbk"), "", "<meta charset=gb2312>中文"),
    (b"<META http-equiv=x content='text/html; charset=\"euc-kr\"'>" + "한".encode("euc-kr"), "nonsense", "한"),
    (b'<?xml version="1.0" encoding="koi8-r"?>' + "текст".encode("koi8-r"), "", "текст"),
    (b"<meta charset=utf-16>" + "é".encode(), "", "é"),
    ("é中".encode(), "shift_jis", "é中"),  # the header lies
    ("日本語".encode("iso-2022-jp"), "iso-2022-jp", "日本語"),
    ("日本語".encode("utf-16-le"), "utf-16", "日本語"),
    ("Привет, мир! Как дела сегодня вечером?".encode("cp1251"), "", "Привет, мир! Как дела сегодня вечером?"),
    (WORDS.encode() * 3 + b"\xc3\x28" + "é".encode(), "utf-8", "é"),
]


@pytest.mark.parametrize(("data", "charset", "expected"), DECODED)
def test_the_charset_of_a_page(data: bytes, charset: str, expected: str) -> None:
    assert decode(data, charset, is_html=True).endswith(expected)


@given(st.binary(max_size=200), st.text(max_size=10))
@settings(deadline=None)
def test_any_bytes_are_some_text(data: bytes, charset: str) -> None:
    decode(data, charset, is_html=True).encode()


@pytest.mark.parametrize("name", html_worker.EXTRACTORS)
def test_a_page_has_text_title_and_language(name: str) -> None:
    with closing(extractor(extractor=name)) as found:
        answer = found.read(Page(PAGE.encode()))
        assert (answer["title"], answer["language"]) == ("On rivers", "en")
        assert answer["text"].replace("\n\n", "\n") == f"{(WORDS * 3).strip()}\n{(WORDS * 2).strip()}"
        assert reason(found, Page(b"<html><body></body></html>")) == "no_text"


ODD = [
    b"", b" ", b"<", b"\0" * 1000, b"<html>", b"<?xml version='1.0' encoding='x'?><html/>", b"\xff\xfe<",
    random.Random(7).randbytes(5000), b"<frameset>" * 500, b"plain words without a tag", PAGE.encode()[:100],
    b"<p>&#xD800;&#0;&#x110000;" + b"w. " * 99,
]  # fmt: skip


@pytest.mark.parametrize("data", ODD, ids=lambda d: repr(d[:12]))
def test_odd_pages_have_a_text_or_a_reason(pages: Extractor, fast: Extractor, data: bytes) -> None:
    for found in (pages, fast):
        item = extracted(Record(0, {"text": Page(data)}), source(), found)
        assert item.reason in ("no_text", "html_failed") if isinstance(item, Fault) else item.fields["text"]


def test_a_page_that_hangs_costs_no_other(fast: Extractor) -> None:
    for _ in range(2):
        assert "Rivers" in fast.read(Page(PAGE.encode()))["text"]
        with pytest.raises(PageError, match=r"no text after 0\.5 s of CPU time") as caught:
            fast.read(Page(DEEP.encode()))
        assert caught.value.reason == "html_timeout"


def test_a_process_that_stalls_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_STALL", 0.4)
    with closing(extractor(extractor="resiliparse", timeout_s=1.0)) as found:
        found.read(Page(PAGE.encode()))
        assert found._child is not None
        os.kill(found._child.pid, 19)  # SIGSTOP: no computing, no answer
        assert reason(found, Page(PAGE.encode())) == "html_timeout"
        monkeypatch.setattr(html, "_STALL", 60)
        assert found.read(Page(PAGE.encode()))["title"] == "On rivers"


def test_only_a_new_process_dies_of_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(extractor(extractor="resiliparse")) as found:
        found.read(Page(PAGE.encode()))
        assert found._child is not None
        os.kill(found._child.pid, 9)  # as if the pages before had done it
        assert found.read(Page(PAGE.encode()))["title"] == "On rivers"
        start = Extractor._start

        def doomed(self: Extractor) -> None:
            start(self)
            assert self._child is not None
            os.kill(self._child.pid, 11)

        found.close()
        monkeypatch.setattr(Extractor, "_start", doomed)
        with pytest.raises(PageError, match="the process was killed by SIGSEGV") as caught:
            found.read(Page(PAGE.encode()))
        assert caught.value.reason == "html_failed"


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MEMORY_BYTES", 200 << 20)
    with closing(extractor(extractor="resiliparse", timeout_s=60.0)) as found:
        huge = "<html><body>" + "<p>words <b>and</b> more of them" * 250_000
        assert reason(found, Page(huge.encode())) == "html_failed"
        assert found.read(Page(PAGE.encode()))["title"] == "On rivers"


def test_large_pages(tmp_path: Path, fast: Extractor) -> None:
    big = Page(b"<p>x" * 15_000_000)
    assert reason(fast, big) == "too_large"
    (tmp_path / "big.html").write_bytes(big.data)
    [fault] = faults(read_html, tmp_path / "big.html")
    assert fault.reason == "too_large"
    assert fault.error.endswith("bytes, more than html.max_bytes = 10485760")
    assert fault.excerpt.startswith("<p>x")
    (tmp_path / "bomb.html.gz").write_bytes(gzip.compress(big.data, 1))
    assert read(read_html, tmp_path / "bomb.html.gz") == [(0, "too_large")]


def test_html_files(tmp_path: Path) -> None:
    [(position, fields)] = read(read_html, tmp_path / "a.html", PAGE.encode())
    assert (position, fields) == (0, {"text": Page(PAGE.encode())})
    [(_, fields)] = read(read_html, tmp_path / "a.html", encoding="gb18030")
    assert fields["text"].charset == "gb18030"
    assert read(read_html, tmp_path / "b.html.gz", gzip.compress(PAGE.encode())[:-9]) == [(0, "broken_archive")]
    assert read(read_html, tmp_path / "gone.html") == [(0, "unreadable_file")]


def test_a_column_of_html(pages: Extractor) -> None:
    wanted = source(markup="html", columns={"text": "raw"})
    row = Record(7, {"raw": PAGE, "text": "kept", "title": "own", "url": "u"}, plain=True)
    found = extracted(row, wanted, pages)
    assert isinstance(found, Record)
    assert found.fields.pop("raw").startswith("Rivers")
    assert found.fields == {"language": "en", "text": "kept", "title": "own", "url": "u"}
    packed = extracted(Record(7, {"raw": PAGE.encode("utf-16")}), wanted, pages)
    assert isinstance(packed, Record)
    assert packed.fields["title"] == "On rivers"
    for value in (None, "", 5, ["a"]):
        assert extracted(Record(7, {"raw": value}), wanted, pages) == Record(7, {"raw": value})
    assert extracted(row, source(columns={"text": "raw"}), pages) == row
    fault = extracted(Record(7, {"raw": "<br>", "url": "http://x"}), wanted, pages)
    assert isinstance(fault, Fault)
    assert (fault.position, fault.reason, fault.excerpt) == (7, "no_text", "http://x\n<br>")


def test_plain_text_takes_no_process() -> None:
    found = extractor()
    assert found.read(Page("\ufeff é\n".encode(), "UTF-8", is_html=False)) == {"text": "é"}
    assert reason(found, Page(b" \n", "", is_html=False)) == "no_text"
    assert found._child is None
    with closing(found):
        assert found.read(Page("текст".encode("koi8-r"), "koi8-r", is_html=False)) == {"text": "текст"}


def test_an_extractor_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trafilatura.py").write_text("import that_is_not_there")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with closing(extractor()) as found, pytest.raises(ToolError, match="pip install trafilatura"):
        found.read(Page(PAGE.encode()))


def test_the_process_dies_with_its_parent() -> None:
    code = (
        "import os, sys\nfrom transforms.readers.html import *\n"
        f"e = Extractor(HtmlConfig(extractor='resiliparse')); e.read(Page({PAGE.encode()!r}))\n"
        "print(e._child.pid, flush=True)\nos.kill(os.getpid(), 9)"
    )
    root = Path(html.__file__).parents[2]
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=root).stdout
    stat = Path(f"/proc/{int(out)}/stat")
    for _ in range(100):
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("the process still runs")


def shingles(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return Counter(tuple(words[k : k + 4]) for k in range(max(1, len(words) - 3)))


@pytest.mark.parametrize(("name", "least"), [("trafilatura", 0.97), ("resiliparse", 0.94)])
def test_main_texts_of_real_articles(shared: Path, name: str, least: float) -> None:
    """The measure of the article-extraction benchmark: precision and recall of runs of four words."""
    rows = map(json.loads, (shared / "text_en/web_articles.jsonl").read_text().splitlines())
    right = {row["id"].removeprefix("aeb-"): shingles(row["text"]) for row in rows}
    found = []
    with closing(extractor(extractor=name)) as pages:
        for path in sorted((shared / "web").glob("article-*.html.gz")):
            text = shingles(pages.read(Page(gzip.decompress(path.read_bytes())))["text"])
            wanted = right[path.name.removeprefix("article-").removesuffix(".html.gz")]
            both = (text & wanted).total()
            found.append((both / text.total(), both / wanted.total()))
    precision, recall = (sum(pair[k] for pair in found) / len(found) for k in (0, 1))
    assert 2 * precision * recall / (precision + recall) >= least


def test_versions_name_what_decides_the_text() -> None:
    assert re.fullmatch(r"trafilatura [\d.]+; lxml [\d.]+; resiliparse [\d.]+", versions())


def test_the_extent_of_a_page_has_its_limit(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE)
    small = extent(tmp_path / "a.html", html=HtmlConfig(max_bytes=10))
    assert [i.reason for i in read_html(small) if isinstance(i, Fault)] == ["too_large"]
