"""Plain English: odd words that came back often stay out of messages, docstrings, comments and pages."""

import re
from pathlib import Path

import pytest
from support.places import ROOT

FOLDERS = ("pipelines", "transforms", "scoring", "gradsift", "docs")
PAGES = ("README.md", "CHANGELOG.md", "params.yaml", "Makefile", "dvc.yaml")
SUFFIXES = {".py", ".md", ".j2", ".sql", ".yaml"}

ODD = {  # a pattern → what to write instead
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\banew\b": "again, re-…",
    r"\b(thereof|wherefrom|whereof|therewith|hereby)\b": "of it, from where, …",
    r"\bgo(es)? on where\b": "resume",
    r"\bhang(s|ing)? on\b": "depend on",
    r"\bfrom which on\b": "at least, minimum",
    r"\bif it stays\b": "if it persists",
    r"\bnames who judged\b": "annotator",
    r"\bby heart\b": "has seen in training",
    r"\bdo(es)? not settle\b": "remain unresolved",
    r"\b(is|are|what is) told of\b": "is known about",
    r"\b(card|metrics|sidecar|archive) tells? of\b": "holds, describes",
    r"\bslip of the pen\b": "typo",
    r"\bfor want of\b": "without, if there is no",
    r"\bat like length\b": "at equal length",
    r"\b(knows?|know) junk\b": "separates junk from good rows",
    r"\bsees no length\b": "does not use length",
    r"\bdata sets?\b": "dataset",
}  # fmt: skip


def texts() -> list[Path]:
    """Returns the files that a reader of this repository sees."""
    found = [p for f in FOLDERS for p in (ROOT / f).rglob("*") if p.suffix in SUFFIXES]
    return sorted([*found, *(ROOT / page for page in PAGES)])


@pytest.mark.parametrize("pattern", ODD)
def test_odd_words_stay_out(pattern: str) -> None:
    odd = re.compile(pattern, re.I)
    found = [
        f"{path.relative_to(ROOT)}:{n}: {line.strip()[:100]}"
        for path in texts()
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if odd.search(line)
    ]
    assert found == [], f"write instead: {ODD[pattern]}"


def test_the_files_are_found() -> None:
    assert len(texts()) > 200
    assert ROOT / "docs/architecture.md" in texts()
