"""Texts to measure on: those of JSONL files, those that Python ships, or made ones."""

import ast
import json
import random
import re
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

CHANGED = 0.02  # share of a copy's words that are replaced


def of(paths: Sequence[Path], otherwise: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Returns the texts of JSONL files, or of `otherwise` where none is named."""
    return from_files(paths) if paths else otherwise()


def from_files(paths: Sequence[Path]) -> Iterator[str]:
    """Yields the texts of JSONL files, taken in turn."""
    with ExitStack() as opened:
        files = [opened.enter_context(path.open(encoding="utf-8")) for path in paths]
        yield from _in_turn([iter(file) for file in files])


def _in_turn(sources: list[Iterator[str]]) -> Iterator[str]:
    while sources:
        for source in list(sources):
            line = next(source, None)
            if line is None:
                sources.remove(source)
            elif line.strip() and isinstance(text := json.loads(line).get("text"), str):
                yield text


def topics() -> Iterator[str]:
    """Yields the topics of Python's own help: 79 long texts, 465 kB."""
    from pydoc_data.topics import topics as found

    yield from (found[name] for name in sorted(found))


def documentation() -> Iterator[str]:
    """Yields the topics, then the docstrings of the standard library: 2.2 MB."""
    yield from topics()
    folder = Path(sysconfig.get_path("stdlib"))
    outside = {"test", "tests", "site-packages", "dist-packages"}
    paths = [p for p in folder.rglob("*.py") if not outside & set(p.relative_to(folder).parts)]
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for path in sorted(paths, key=lambda p: (len(p.parts), p)):
        nodes = ast.walk(ast.parse(path.read_bytes()))
        yield from (doc for node in nodes if isinstance(node, kinds) and (doc := ast.get_docstring(node)))


def made() -> Iterator[str]:
    """Yields seeded documents of a skewed vocabulary, without end."""
    import numpy as np

    rng = np.random.default_rng(7)
    words = ["".join(rng.choice(list("etaoinshrdlu"), size=n)) for n in rng.integers(2, 10, size=20_000)]
    while True:
        picked = [words[k] for k in np.minimum(rng.zipf(1.3, size=rng.integers(60, 900)), 20_000) - 1]
        yield "\n".join(" ".join(picked[k : k + 40]).capitalize() + "." for k in range(0, len(picked), 40))


def up_to(texts: Iterator[str], limit_bytes: float) -> list[str]:
    """Returns the first texts that reach so many bytes of UTF-8, or all."""
    found, size = [], 0
    for text in texts:
        found.append(text)
        size += len(text.encode(errors="replace"))
        if size >= limit_bytes:
            break
    return found


def with_copies(texts: Iterator[str], seed: int = 7) -> Iterator[str]:
    """Yields the texts, then seeded copies of them with some words changed, without end."""
    rng, first = random.Random(seed), []
    for text in texts:
        first.append(text)
        yield text
    words = sorted({w for text in first for w in text.split()})
    while first:
        for text in rng.sample(first, len(first)):
            yield re.sub(r"\S+", lambda m: rng.choice(words) if rng.random() < CHANGED else m[0], text)


def sentences(texts: Iterable[str]) -> list[str]:
    """Returns the distinct ASCII sentences of 40 to 400 characters, sorted."""
    found = re.split(r"(?<=[.!?])\s+", " ".join(" ".join(texts).split()).replace("\x00", ""))
    return sorted({s for s in found if 40 <= len(s) <= 400 and s.isascii()})
