"""Thresholds of the rules on text: parts of section `clean` of params."""

from typing import Literal

from scoring.core.config import config

Words = Literal["characters", "dictionary"]


GopherVariant = Literal["gradsift", "datatrove", "dolma", "dclm"]


@config
class GopherConfig:
    """Thresholds of the quality rules; ratios are per token of W (that of letters: see the variant), or per line."""

    variant: GopherVariant
    drop: bool
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
            if name.startswith(("min_", "max_")) and not value >= 0:
                raise ValueError(f"{name} must be at least 0, not {value}")
        if self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is above max_words {self.max_words}")
        if self.min_mean_word_length > self.max_mean_word_length:
            raise ValueError(
                f"min_mean_word_length {self.min_mean_word_length} is above "
                f"max_mean_word_length {self.max_mean_word_length}"
            )


RepetitionVariant = Literal["datatrove", "dclm", "rpv2"]


@config
class RepetitionConfig:
    """Largest ratios that a row may reach. Top n-grams overlap, so theirs can pass 1."""

    variant: RepetitionVariant
    drop: bool
    max_dup_line_ratio: float
    max_dup_paragraph_ratio: float
    max_dup_line_char_ratio: float
    max_dup_paragraph_char_ratio: float
    max_top_2_gram_char_ratio: float
    max_top_3_gram_char_ratio: float
    max_top_4_gram_char_ratio: float
    max_dup_5_gram_char_ratio: float
    max_dup_6_gram_char_ratio: float
    max_dup_7_gram_char_ratio: float
    max_dup_8_gram_char_ratio: float
    max_dup_9_gram_char_ratio: float
    max_dup_10_gram_char_ratio: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name.startswith("max_") and not value >= 0:
                raise ValueError(f"{name} must be at least 0, not {value}")


C4Variant = Literal["tfds", "datatrove"]


@config
class C4Config:
    """Thresholds of a line and of a page."""

    variant: C4Variant
    drop: bool
    min_line_words: int
    min_sentences: int
    max_lorem_ipsum_lines: int
    max_brace_lines: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name.startswith(("min_", "max_")) and not value >= 0:
                raise ValueError(f"{name} must be at least 0, not {value}")


@config
class FinewebConfig:
    """Thresholds of the line rules."""

    drop: bool
    min_line_end_ratio: float  # of lines
    short_line_chars: int  # a line of so many characters or fewer is short
    max_short_line_ratio: float  # of lines
    max_line_repeat_char_ratio: float  # of characters without newlines
    max_newline_word_ratio: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise ValueError(f"{name} must be at least 0, not {value}")
