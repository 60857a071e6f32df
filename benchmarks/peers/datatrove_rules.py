"""datatrove's filters, one rule at a time, so that its decisions can be compared with ours rule by rule.

It reads words and sentences as we do: its word tokenizer is replaced by ours, which leaves its rules alone.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from unittest import mock

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)

from transforms.text.scan import split
from transforms.text.tables import terminals
from transforms.text.words import punctuation

_FILTERS = "datatrove.pipeline.filters"
_MODULES = ("gopher_quality_filter", "gopher_repetition_filter", "fineweb_quality_filter")

_QUALITY: dict[str, dict[str, float]] = {
    "gopher_short_doc": {"min_doc_words": 50},
    "gopher_long_doc": {"max_doc_words": 100_000},
    "gopher_short_words": {"min_avg_word_length": 3},
    "gopher_long_words": {"max_avg_word_length": 10},
    "gopher_too_many_hashes": {"max_symbol_word_ratio": 0.1},
    "gopher_bullets": {"max_bullet_lines_ratio": 0.9},
    "gopher_ellipsis_lines": {"max_ellipsis_lines_ratio": 0.3},
    "gopher_few_alpha": {"max_non_alpha_words_ratio": 0.8},
    "gopher_few_stop_words": {"min_stop_words": 2},
}
_PIECES = {
    "repetition_dup_lines": {"dup_line_frac": 0.3},
    "repetition_dup_paragraphs": {"dup_para_frac": 0.3},
    "repetition_dup_line_chars": {"dup_line_char_frac": 0.2},
    "repetition_dup_paragraph_chars": {"dup_para_char_frac": 0.2},
}
_TOP = {2: 0.2, 3: 0.18, 4: 0.16}
_DUP = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.10}


def quality(**on: float) -> GopherQualityFilter:
    """Returns the filter with the thresholds `on` and all others off."""
    names = {name for setting in _QUALITY.values() for name in setting}
    return GopherQualityFilter(**{**dict.fromkeys(names), **on})


def repetition(**on: Any) -> GopherRepetitionFilter:
    """Returns the filter with the thresholds `on` and all others off."""
    off = {name: None for setting in _PIECES.values() for name in setting}
    return GopherRepetitionFilter(**{**off, "top_n_grams": (), "dup_n_grams": (), **on})


def fineweb(**on: float) -> FineWebQualityFilter:
    """Returns the filter with the thresholds `on` and all others so wide that nothing fails them."""
    wide = {"line_punct_thr": 0, "short_line_thr": 1, "char_duplicates_ratio": 1, "new_line_ratio": 10**9}
    return FineWebQualityFilter(**{**wide, **on})


def c4(**on: Any) -> C4QualityFilter:
    """Returns the filter, line rules and all, with the page rules `on` and all others off."""
    off = {"min_num_sentences": -1, "filter_lorem_ipsum": False, "filter_curly_bracket": False}
    return C4QualityFilter(**{**off, **on})


def filters() -> dict[str, Any]:
    """Returns, by our reason code, the filter that applies this one rule of datatrove's."""
    found: dict[str, Any] = {code: quality(**setting) for code, setting in _QUALITY.items()}
    found |= {code: repetition(**setting) for code, setting in _PIECES.items()}
    found |= {f"repetition_top_{n}_gram": repetition(top_n_grams=((n, limit),)) for n, limit in _TOP.items()}
    found |= {f"repetition_dup_{n}_gram": repetition(dup_n_grams=((n, limit),)) for n, limit in _DUP.items()}
    found |= {
        "fineweb_line_ends": fineweb(line_punct_thr=0.12),
        "fineweb_short_lines": fineweb(short_line_thr=0.67),
        "fineweb_line_repeats": fineweb(char_duplicates_ratio=0.01),
        "fineweb_newlines": fineweb(new_line_ratio=0.3),
        "c4_few_sentences": c4(min_num_sentences=5),
        "c4_lorem_ipsum": c4(filter_lorem_ipsum=True),
        "c4_braces": c4(filter_curly_bracket=True),
    }
    return found


def sentences(line: str, _language: str = "") -> list[list[str]]:
    """Returns the words of each sentence of a line: one begins at each word after a mark that ends sentences."""
    found: list[list[str]] = []
    begins = True
    for token in split(line):
        word = not punctuation().issuperset(token)
        if (begins and word) or not found:
            found.append([])
        begins = token in terminals() or (begins and not word)
        found[-1].append(token)
    return found


@contextmanager
def our_words() -> Iterator[None]:
    """Lets datatrove's filters cut texts as we do."""
    cached: Callable[..., list[str]] = lru_cache(2)(lambda text, _language="": split(text))
    patches = [mock.patch(f"{_FILTERS}.{name}.split_into_words", cached) for name in _MODULES]
    patches.append(mock.patch(f"{_FILTERS}.c4_filters.split_into_sentences", sentences))
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def drops(text: str, by_code: Mapping[str, Any]) -> set[str]:
    """Returns the codes of the rules that `text` fails."""
    return {code for code, each in by_code.items() if each.filter(Document(text=text, id="")) is not True}
