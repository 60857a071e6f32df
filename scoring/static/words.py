"""Words, sentences and windows: the units that the text dimensions of the static score count.

The definitions, as expressions; `kernels` finds the same units in compiled loops, and a test compares them. The rules
and the quality values define a word otherwise, on purpose: docs/decisions/013-three-words.md.
"""

import re
from collections.abc import Sequence
from itertools import islice, pairwise

CHARS_PER_TOKEN = 32  # an excerpt of k tokens never holds more than 32·k characters
WINDOW_WORDS = 32  # a window ends with the first sentence that brings it here
MAX_WINDOW_WORDS = 64

# Scripts without spaces (Thai, Lao, Burmese, Khmer, kana, Han): each character is a word.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0ecd\u0ed0-\u0edf\u1000-\u1049\u1050-\u109f"
    "\u1780-\u17d3\u17dc-\u17e9\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# Marks of the letter before them. Python's \w leaves them out, which would cut Indic and Arabic words.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0df3\u0f71-\u0f84\u0f86-\u0fbc"
)
JOINERS = "'’-"  # can't, state-of-the-art
UNSPACED = f"[{_UNSPACED}]"
LETTERS = rf"[^\W_{_UNSPACED}]|[{_MARKS}]"  # but for the unspaced
TERMINAL_MARKS, CLOSERS = ".!?…।؟", "\"')]”’"
FULL_MARKS, FULL_CLOSERS = "。！？｡", "」』”’"


def _word(letters: str) -> str:
    return f"{letters}(?:[{JOINERS}]{letters})*"


_UNSPACED_CHAR = re.compile(f"[{_UNSPACED}]")
_ASCII_WORD = re.compile(_word("[A-Za-z0-9]+"))
_SPACED_WORD = re.compile(_word(rf"[\w{_MARKS}]+"))
_MIXED_WORD = re.compile(f"[{_UNSPACED}]|" + _word(rf"(?:[^\W{_UNSPACED}]|[{_MARKS}])+"))

_SENTENCE_END = re.compile(
    r"""[.!?…।؟]["')\]”’]?(?=\s)"""  # a terminal mark, perhaps in a quotation, then space
    r"""|[。！？｡][」』”’]?(?![。！？｡」』”’])"""  # full-width marks need no space
    r"""|\n[^\S\n]{0,80}(?=[^\sa-z]|\n)"""  # a new paragraph, heading or list item; hard-wrapped lines go on
)


def _pattern(text: str) -> "re.Pattern[str]":
    if text.isascii():
        return _ASCII_WORD
    return _MIXED_WORD if _UNSPACED_CHAR.search(text) else _SPACED_WORD


def find_words(text: str) -> list[str]:
    """Returns the word tokens of `text`: runs of letters, marks and digits; single characters of unspaced scripts."""
    text = text.replace("_", " ")
    return _pattern(text).findall(text)


def excerpt(text: str, max_tokens: int) -> str:
    """Returns the beginning of `text` that holds its first `max_tokens` words, at most 32 characters a word."""
    text = text[: CHARS_PER_TOKEN * max_tokens]
    if len(text) <= max_tokens:  # a word has at least one character
        return text
    plain = text.replace("_", " ")
    beyond = next(islice(_pattern(plain).finditer(plain), max_tokens, None), None)
    return text if beyond is None else text[: beyond.start()]


def find_sentences(text: str) -> list[tuple[str, list[str]]]:
    """Returns the sentences of `text` that hold a word, each with its words.

    A sentence ends at a terminal mark before white space (none is needed after a full-width one) or
    at a blank line.
    """
    cuts = [0, *(m.end() for m in _SENTENCE_END.finditer(text)), len(text)]
    found = ((text[a:b], find_words(text[a:b])) for a, b in pairwise(cuts))
    return [(sentence, words) for sentence, words in found if words]


def window_sizes(sentence_sizes: Sequence[int]) -> list[int]:
    """Returns the words of each window; their sum is the sum of `sentence_sizes`.

    A window is a run of whole sentences of at least 32 words; one of more than 64 is cut there, and a
    rest of less than 16 words joins the window before it.
    """
    windows: list[int] = []
    size = 0
    for words in sentence_sizes:
        size += words
        while size > MAX_WINDOW_WORDS:
            windows.append(MAX_WINDOW_WORDS)
            size -= MAX_WINDOW_WORDS
        if size >= WINDOW_WORDS:
            windows.append(size)
            size = 0
    if windows and size < WINDOW_WORDS // 2:
        windows[-1] += size
    elif size:
        windows.append(size)
    return windows
