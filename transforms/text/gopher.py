"""Gopher's quality rules (Rae et al. 2021, table A1), variant `datatrove`.

W are all tokens, W′ those with a character outside the punctuation set (see `transforms.text.words`).
The word-length rules hold for spaced scripts only, the stop-word rule only for languages with a list;
elsewhere their values are null and no row fails them.
"""

from typing import Literal

from scoring.config import config
from transforms.rules import Rule
from transforms.text.words import Words

STOP_WORDS = {"en": frozenset({"the", "be", "to", "of", "and", "that", "have", "with"})}


@config
class GopherConfig:
    """Thresholds of the quality rules; ratios are per token of W, or per line."""

    min_words: int
    max_words: int
    min_mean_word_length: float  # characters
    max_mean_word_length: float
    max_hash_ratio: float
    max_ellipsis_ratio: float
    max_bullet_line_ratio: float
    max_ellipsis_line_ratio: float
    min_alpha_word_ratio: float
    min_stop_words: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise ValueError(f"{name} must be at least 0, not {value}")
        if self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is above max_words {self.max_words}")
        if self.min_mean_word_length > self.max_mean_word_length:
            raise ValueError(
                f"min_mean_word_length {self.min_mean_word_length} is above "
                f"max_mean_word_length {self.max_mean_word_length}"
            )


def _rule(code: str, value: str, bound: Literal["min", "max"], threshold: str, sentence: str) -> Rule:
    return Rule(f"gopher_{code}", "clean", value, bound, f"gopher.{threshold}", sentence)


RULES = (
    _rule("short_doc", "nonsymbol_words", "min", "min_words", "the text has too few words"),
    _rule("long_doc", "nonsymbol_words", "max", "max_words", "the text has too many words"),
    _rule("short_words", "mean_word_length", "min", "min_mean_word_length", "the words are too short on average"),
    _rule("long_words", "mean_word_length", "max", "max_mean_word_length", "the words are too long on average"),
    _rule("too_many_hashes", "hash_ratio", "max", "max_hash_ratio", "too many # for the number of words"),
    _rule("too_many_ellipses", "ellipsis_ratio", "max", "max_ellipsis_ratio", "too many … for the number of words"),
    _rule("bullets", "bullet_line_ratio", "max", "max_bullet_line_ratio", "too many lines start with • or -"),
    _rule("ellipsis_lines", "ellipsis_line_ratio", "max", "max_ellipsis_line_ratio", "too many lines end in …"),
    _rule("few_alpha", "alpha_word_ratio", "min", "min_alpha_word_ratio", "too few words have a letter"),
    _rule("few_stop_words", "stop_words", "min", "min_stop_words", "too few distinct stop words of the language"),
)


def measure(text: str, words: Words, language: str | None) -> dict[str, float | None]:
    """Returns the value of every quality rule for a `text` with at least one word."""
    lines = text.splitlines()
    total, outside = len(words), int(words.counts[words.nonsymbol].sum())
    stop_words = STOP_WORDS.get(language or "")
    return {
        "nonsymbol_words": outside,
        "mean_word_length": None if words.unspaced else _mean_length(words, outside),
        "hash_ratio": text.count("#") / total,
        "ellipsis_ratio": (text.count("...") + text.count("…")) / total,
        "bullet_line_ratio": sum(line.lstrip().startswith(("•", "-")) for line in lines) / len(lines),
        "ellipsis_line_ratio": sum(line.rstrip().endswith(("...", "…")) for line in lines) / len(lines),
        "alpha_word_ratio": _alphabetic(words) / total,
        "stop_words": None if stop_words is None else len(stop_words.intersection(words.vocabulary)),
    }


def _mean_length(words: Words, outside: int) -> float:
    """Returns the mean characters of W′; 0 if there is none."""
    inside = words.nonsymbol
    return float((words.counts[inside] * words.lengths[inside]).sum() / outside) if outside else 0.0


def _alphabetic(words: Words) -> int:
    """Returns how many tokens of W have an alphabetic character."""
    counts = words.counts.tolist()
    return sum(n for token, n in zip(words.vocabulary, counts, strict=True) if any(map(str.isalpha, token)))
