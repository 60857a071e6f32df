"""Clean documents: prose paragraphs of installed texts, joined up to a length, each paragraph used once."""

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.sample_corpus.sources import Origin, origins

MIN_WORDS, MAX_WORDS = 80, 600
_TARGET_WORDS = (80, 380)  # a document ends with the paragraph that reaches its own target
_STOP_WORDS = frozenset(("the", "be", "to", "of", "and", "that", "have", "with", "is", "a", "in", "for"))
_BULLET = re.compile(r"^\s*([-*+•]|\(?(\d{1,2}|[a-z])[.)])\s")
_MARKUP = re.compile(r"!\[|<\w+[ >]|\]\(|::=|>>>|^\s*[|+]|={4}|-{4}|\*{4}|~{4}|https?://\S{60}|\.\. ")
# Marks around a name: ``x``, `x <y>`_, **x**, *x*, "x()".
_MARKED = re.compile(r"``([^`]+)``|(?::\w+:)?`~?([^`<]+)(?: <[^>]+>)?`_{0,2}|\*\*?(\w[^*]*)\*\*?|\"([\w.]+(?:\(\))?)\"")
_SENTENCE_END = re.compile(r"[.!?:;][\"')\]]*$")
_TOKEN = re.compile(r"[^\W_]+(?:['’.,_-][^\W_]+)*|[^\w\s]+|_+")
_LETTER = re.compile(r"[^\W\d_]")
_MIN_LETTER_RATIO = 0.83  # of tokens, punctuation included; Gopher asks for 0.8
_MAX_REPEATED_RATIO = 0.05  # of 5-grams of words


@dataclass(frozen=True)
class Document:
    """One clean text. Its id depends on where it comes from and on nothing else."""

    id: str
    text: str
    domain: str
    origin: str


def documents(count: int, seed: int) -> list[Document]:
    """Returns `count` documents, fewer where there are not so many, chosen by `seed`, sorted by id.

    The choice ranks every document by a hash of its own, so that a text that comes or goes changes
    one row and not all.
    """
    found = list(_cut(origins(), seed))
    chosen = sorted(found, key=lambda d: draw(seed, "choose", d.id))[:count]
    return sorted(chosen, key=lambda d: d.id)


def draw(*key: object) -> int:
    """Returns 64 bits that depend on `key` alone."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest())


def _cut(texts: Iterable[Origin], seed: int) -> Iterator[Document]:
    """Yields documents of whole paragraphs; a paragraph that was used before, in any text, is left out."""
    seen: set[str] = set()
    hidden = _local_paths()
    for origin in texts:
        fresh = [p for p in paragraphs(origin.text) if not any(path in p for path in hidden)]
        fresh = list({_key(p): p for p in fresh if _key(p) not in seen}.values())
        seen.update(map(_key, fresh))
        for number, text in enumerate(_join(fresh, origin.name, seed)):
            if _repeats(text):
                continue
            name = f"{draw(origin.name, number):016x}"[:10]
            yield Document(f"{origin.domain}-{name}", text, origin.domain, origin.name)


def _join(texts: list[str], name: str, seed: int) -> Iterator[str]:
    """Yields runs of paragraphs of MIN_WORDS to MAX_WORDS words; a rest that is too short is left out."""
    low, high = _TARGET_WORDS
    held: list[str] = []
    words = documents_made = 0
    for text in texts:
        length = len(text.split())
        if words + length > MAX_WORDS:
            held, words = [], 0
            continue
        held.append(text)
        words += length
        if words >= low + draw(seed, "length", name, documents_made) % (high - low):
            yield "\n\n".join(held)
            held, words, documents_made = [], 0, documents_made + 1
    if words >= MIN_WORDS:
        yield "\n\n".join(held)


def paragraphs(text: str) -> Iterator[str]:
    """Yields the paragraphs of `text` that are prose, unwrapped to one line each; list items keep theirs."""
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n").expandtabs()):
        plain = _unwrap(block)
        if _is_prose(plain):
            yield plain


def _name(marked: re.Match[str]) -> str:
    return next(group for group in marked.groups() if group)


def _unwrap(block: str) -> str:
    lines: list[str] = []
    for line in block.splitlines():
        if lines and line.strip() and not _BULLET.match(line):
            lines[-1] += " " + line.strip()
        elif line.strip():
            lines.append(line.strip())
    return "\n".join(" ".join(_MARKED.sub(_name, line).split()) for line in lines).replace("::", ":")


def _is_prose(text: str) -> bool:
    """Returns whether `text` reads as sentences: no code, table, heading, badge or list of names."""
    words = text.split()
    if len(words) < 12 or not _SENTENCE_END.search(text) or _MARKUP.search(text) or "\ufffd" in text:
        return False
    return (
        _letter_ratio(text) >= _MIN_LETTER_RATIO
        and 3.0 <= sum(map(len, words)) / len(words) <= 8.0
        and len(_STOP_WORDS.intersection(w.lower() for w in words)) >= 2
        and text.count("\n") <= len(words) / 8
    )


def _letter_ratio(text: str) -> float:
    tokens = _TOKEN.findall(text)
    return sum(1 for t in tokens if _LETTER.search(t)) / len(tokens)


def _repeats(text: str) -> bool:
    """Returns whether more than a few of the 5-grams occur again: a legal formula, or a table in words."""
    words = _key(text).split()
    grams = [tuple(words[k : k + 5]) for k in range(len(words) - 4)]
    return len(grams) - len(set(grams)) > _MAX_REPEATED_RATIO * len(grams)


def _key(text: str) -> str:
    return re.sub(r"[\W\d_]+", " ", text).lower()


def _local_paths() -> tuple[str, ...]:
    """Returns the places of this machine that no text may name; not those that many have, such as /usr."""
    found = {Path(sys.prefix), Path(sys.base_prefix), Path.home()}
    return tuple(sorted(str(p) for p in found if len(p.parts) > 2 and p != Path("/usr/local")))
