"""The rules on text, by their source: code, value, threshold and sentence of each.

Apart from the kernels that measure them, so that the catalog lists them without compiling anything.
"""

from typing import Literal

from transforms.core.rules import Rule

TOP = (2, 3, 4)  # words of an n-gram of which the commonest counts
DUP = (5, 6, 7, 8, 9, 10)  # of n-grams of which every repeat counts


def _gopher(code: str, value: str, bound: Literal["min", "max"], threshold: str, sentence: str) -> Rule:
    origin = "Rae et al. 2021, table A1"
    return Rule(f"gopher_{code}", "clean", value, bound, f"gopher.{threshold}", sentence, origin)


GOPHER = (
    _gopher("short_doc", "nonsymbol_words", "min", "min_words", "the text has too few words"),
    _gopher("long_doc", "nonsymbol_words", "max", "max_words", "the text has too many words"),
    _gopher("short_words", "mean_word_length", "min", "min_mean_word_length", "the words are too short on average"),
    _gopher("long_words", "mean_word_length", "max", "max_mean_word_length", "the words are too long on average"),
    _gopher("too_many_hashes", "hash_ratio", "max", "max_hash_ratio", "too many # characters per word"),
    _gopher("too_many_ellipses", "ellipsis_ratio", "max", "max_ellipsis_ratio", "too many ellipses per word"),
    _gopher("bullets", "bullet_line_ratio", "max", "max_bullet_line_ratio", "too many lines start with a bullet"),
    _gopher(
        "ellipsis_lines", "ellipsis_line_ratio", "max", "max_ellipsis_line_ratio", "too many lines end with an ellipsis"
    ),
    _gopher("few_alpha", "alpha_word_ratio", "min", "min_alpha_word_ratio", "too few words contain a letter"),
    _gopher("few_stop_words", "stop_words", "min", "min_stop_words", "too few stop words of the language"),
)


def _repetition(code: str, value: str, sentence: str) -> Rule:
    origin = "Rae et al. 2021, table A1"
    return Rule(f"repetition_{code}", "clean", value, "max", f"repetition.max_{value}", sentence, origin)


REPETITION = (
    _repetition("dup_lines", "dup_line_ratio", "too many lines repeat an earlier one"),
    _repetition("dup_paragraphs", "dup_paragraph_ratio", "too many paragraphs repeat an earlier one"),
    _repetition("dup_line_chars", "dup_line_char_ratio", "too much of the text is in repeated lines"),
    _repetition("dup_paragraph_chars", "dup_paragraph_char_ratio", "too much of the text is in repeated paragraphs"),
    *(
        _repetition(f"top_{n}_gram", f"top_{n}_gram_char_ratio", f"one {n}-word phrase makes up too much of the text")
        for n in TOP
    ),
    *(
        _repetition(
            f"dup_{n}_gram", f"dup_{n}_gram_char_ratio", f"too much of the text is in repeated {n}-word phrases"
        )
        for n in DUP
    ),
)


def _c4(code: str, value: str, bound: Literal["min", "max"], threshold: str, sentence: str) -> Rule:
    return Rule(f"c4_{code}", "clean", value, bound, f"c4.{threshold}", sentence, "Raffel et al. 2020")


C4 = (
    _c4("few_sentences", "c4_sentences", "min", "min_sentences", "too few sentences are left"),
    _c4(
        "lorem_ipsum",
        "c4_lorem_ipsum_lines",
        "max",
        "max_lorem_ipsum_lines",
        "the text contains placeholder text (lorem ipsum)",
    ),
    _c4("braces", "c4_brace_lines", "max", "max_brace_lines", "the text contains curly braces and may be code"),
)


def _fineweb(code: str, value: str, bound: Literal["min", "max"], sentence: str) -> Rule:
    return Rule(f"fineweb_{code}", "clean", value, bound, f"fineweb.{bound}_{value}", sentence, "Penedo et al. 2024")


FINEWEB = (
    _fineweb("line_ends", "line_end_ratio", "min", "too few lines end with sentence punctuation"),
    _fineweb("short_lines", "short_line_ratio", "max", "too many short lines"),
    _fineweb("line_repeats", "line_repeat_char_ratio", "max", "too much of the text is in repeated lines"),
    _fineweb("newlines", "newline_word_ratio", "max", "too many newlines per word"),
)
