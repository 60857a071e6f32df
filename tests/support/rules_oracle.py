"""The rule families once more, variant by variant: slow, obvious, independent of the kernels."""

import math
import re
import unicodedata
from statistics import median
from typing import Any

from support.text_oracle import (
    UNSPACED_NAMES,
    grams,
    greedy,
    is_punctuation,
    ratio,
    repeats,
    split_paragraphs,
    tokens,
    top,
)

STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}
POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]")
Values = dict[str, float | None]


def words_of(text: str) -> list[str]:
    """Returns W′."""
    return [w for w in tokens(text) if not all(map(is_punctuation, w))]


def is_unspaced(text: str) -> bool:
    """Returns whether most of W′ is of scripts without spaces."""
    outside = words_of(text)
    alone = [w for w in outside if w[0].isalnum() and unicodedata.name(w[0], "").startswith(UNSPACED_NAMES)]
    return 2 * len(alone) > len(outside)


def lines_of(text: str) -> list[str]:
    """Returns the lines of a normalised text."""
    return text.removesuffix("\n").split("\n")


def gopher(text: str, variant: str, language: str | None) -> Values:
    """Returns the values of RULES §1.1."""
    every, outside = tokens(text), words_of(text)
    bullets = {"dolma": "*-", "dclm": "●•*-"}.get(variant, "•-")
    ellipses = {"dolma": ["…"], "dclm": ["...", ". . .", "…"]}.get(variant, ["...", "…"])
    letters_of = {"gradsift": outside, "datatrove": every}.get(variant, text.split())
    lengths = [len(w) for w in outside]
    length = float(median(lengths) if variant == "dolma" else sum(lengths) / len(lengths)) if lengths else 0.0
    stop_words = [w for w in (every if variant == "dclm" else set(every)) if w in STOP_WORDS]
    lines = [line.strip() for line in lines_of(text)]
    return {
        "nonsymbol_words": len(outside),
        "mean_word_length": None if is_unspaced(text) else length,
        "hash_ratio": text.count("#") / len(every),
        "ellipsis_ratio": sum(map(text.count, ellipses)) / len(every),
        "bullet_line_ratio": sum(line[:1] != "" and line[0] in bullets for line in lines) / len(lines),
        "ellipsis_line_ratio": sum(line.endswith(tuple(ellipses)) for line in lines) / len(lines),
        "alpha_word_ratio": ratio(sum(any(map(str.isalpha, w)) for w in letters_of), len(letters_of)),
        "stop_words": len(stop_words) if language == "en" else None,
    }


def copies(items: list[str]) -> tuple[float, float]:
    """Returns the share of items that are one of several copies, and the share of characters."""
    again = [item for item in items if items.count(item) > 1]
    return ratio(len(again), len(items)), ratio(sum(map(len, again)), sum(map(len, items)))


def pieces(text: str, variant: str) -> Values:
    """Returns the shares of duplicate lines and paragraphs."""
    bare = text.strip()
    if variant == "rpv2":
        line = paragraph = (None, None)
    elif variant == "dclm":
        line = copies([x.strip() for x in bare.split("\n") if x.strip()])
        paragraph = copies([x.strip() for x in re.split("\n\n", bare) if x.strip()])
    else:
        share, chars = repeats([x for x in bare.split("\n") if x])
        line = (share, chars / len(text))
        share, chars = repeats(split_paragraphs(bare))
        paragraph = (share, chars / len(text))
    return {
        "dup_line_ratio": line[0], "dup_line_char_ratio": line[1],
        "dup_paragraph_ratio": paragraph[0], "dup_paragraph_char_ratio": paragraph[1],
    }  # fmt: skip


def lower(word: str) -> str:
    """Returns `word` by Unicode's simple lower-case mapping, character by character."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in word)


def top_words(every: list[str], n: int, longest: bool) -> int:
    """Returns characters × count of the most frequent n-gram, 0 if none repeats."""
    found = grams(every, n)
    most = max((found.count(gram) for gram in found), default=0)
    if most < 2:
        return 0
    lengths = [len("".join(gram)) for gram in found if found.count(gram) == most]
    return most * (max(lengths) if longest else lengths[0])


def in_repeats(every: list[str], n: int) -> int:
    """Returns the characters of all words that lie in an n-gram that occurs twice."""
    found = grams(every, n)
    inside = {k + j for k, gram in enumerate(found) if found.count(gram) > 1 for j in range(n)}
    return sum(len(every[k]) for k in inside)


def repetition(text: str, variant: str) -> Values:
    """Returns the values of RULES §1.2."""
    found = pieces(text, variant)
    if variant == "datatrove":
        every = tokens(text)
        most = {n: top(every, n) / len(text) for n in (2, 3, 4)}
        again = {n: greedy(every, n) / len(text) for n in range(5, 11)}
    else:
        every = words_of(text) if variant == "dclm" else [lower(w) for w in words_of(text)]
        chars = sum(map(len, every))
        most = {n: ratio(top_words(every, n, variant == "dclm"), chars) for n in (2, 3, 4)}
        again = {n: ratio(in_repeats(every, n), chars) for n in range(5, 11)}
    found |= {f"top_{n}_gram_char_ratio": value for n, value in most.items()}
    return found | {f"dup_{n}_gram_char_ratio": value for n, value in again.items()}


def sentences(line: str, terminals: frozenset[str]) -> int:
    """Returns how many sentences a line makes, its citations aside."""
    found, begins = 0, True
    for span in CITATION.split(line):
        for token in tokens(span):
            if not all(map(is_punctuation, token)):
                found += begins
                begins = False
            begins = begins or token in terminals
            if token not in terminals and not all(map(is_punctuation, token)):
                begins = False
    return found


def c4(text: str, variant: str, least: int, terminals: frozenset[str]) -> tuple[Values, str | None]:
    """Returns the values of RULES §1.3, and the text that is left."""
    names = ("sentences", "lorem_ipsum_lines", "brace_lines", "long_word_lines", "open_lines", "short_lines",
             "script_lines", "policy_lines", "citations")  # fmt: skip
    count: dict[str, Any] = {f"c4_{name}": None if is_unspaced(text) else 0 for name in names}
    if is_unspaced(text):
        return count, None
    kept = []
    for raw in filter(None, map(str.strip, text.split("\n"))):
        line = CITATION.sub("", raw)
        small = line.lower()
        if any(len(word) > 1000 for word in raw.split()):
            count["c4_long_word_lines"] += 1
        elif not line.endswith((".", "?", "!", '"', *("'" if variant == "datatrove" else ""))) or line.endswith("..."):
            count["c4_open_lines"] += 1
        elif len((raw if variant == "datatrove" else line).split()) < least:
            count["c4_short_lines"] += 1
        else:
            count["c4_lorem_ipsum_lines"] += "lorem ipsum" in small
            if "javascript" in small:
                count["c4_script_lines"] += 1
                continue
            count["c4_brace_lines"] += "{" in line
            if any(phrase in small for phrase in POLICIES):
                count["c4_policy_lines"] += 1
                continue
            count["c4_citations"] += len(CITATION.findall(raw))
            count["c4_sentences"] += sentences(raw, terminals)
            kept.append(line)
    return count, "\n".join(kept).strip()


def fineweb(text: str, short: int, terminals: frozenset[str]) -> Values:
    """Returns the values of RULES §1.4."""
    lines = [line for line in text.split("\n") if line.strip()]
    unspaced = is_unspaced(text)
    return {
        "line_end_ratio": sum(line[-1] in terminals for line in lines) / len(lines),
        "short_line_ratio": None if unspaced else sum(len(line) <= short for line in lines) / len(lines),
        "line_repeat_char_ratio": repeats(lines)[1] / len(text.replace("\n", "")),
        "newline_word_ratio": None if unspaced else text.count("\n") / len(tokens(text)),
    }


def same(ours: Any, theirs: Any) -> bool:
    """Returns whether two values are both null, or equal but for rounding."""
    return ours is theirs is None or (None not in (ours, theirs) and math.isclose(ours, theirs, abs_tol=1e-12))
