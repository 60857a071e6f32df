"""The class of every character, for the compiled loops: what the expressions of `static_words` say of it."""

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from scoring.core.table_cache import kept
from scoring.static import kernels
from scoring.static import words as static_words

CODE_POINTS = 0x110000
MARKS = (
    (",", "，", "、", "،"),
    (":", ";", "：", "；"),
    ("(", "（", "[", "–", "—"),
    ('"', "“", "”", "「", "«"),
)
TERMINALS = {".": ".", "。": ".", "।": ".", "?": "?", "？": "?", "؟": "?", "!": "!", "！": "!"}
TRAILING = "\"'”’」』)] \n"

Points = npt.NDArray[np.uint32]


def code_points(text: str) -> Points:
    """Returns the (n,) code points of `text`."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def text_of(points: Points) -> str:
    """Returns the text of (n,) code points."""
    return points.tobytes().decode("utf-32-le", "surrogatepass")


@kept
def classes() -> npt.NDArray[np.uint16]:
    """Returns the bits of `static_kernels` that each code point has, (1114112,)."""
    found = np.zeros(CODE_POINTS, np.uint16)
    every = "".join(map(chr, range(CODE_POINTS)))
    for bit, pattern in (
        (kernels.LETTER, static_words.LETTERS),
        (kernels.UNSPACED, static_words.UNSPACED),
        (kernels.SPACE, r"\s"),
    ):
        for run in re.finditer(f"(?:{pattern})+", every):
            found[run.start() : run.end()] |= bit
    for bit, chars in _SETS:
        found[[ord(c) for c in chars]] |= bit
    letters = np.flatnonzero(found & (kernels.LETTER | kernels.UNSPACED)).tolist()
    found[[p for p in letters if chr(p).isdigit()]] |= kernels.DIGIT
    found[[p for p in letters if chr(p).isupper()]] |= kernels.UPPER
    return found


_SETS: tuple[tuple[int, Iterable[str]], ...] = (
    (kernels.JOINER, static_words.JOINERS),
    (kernels.TERMINAL, static_words.TERMINAL_MARKS),
    (kernels.CLOSER, static_words.CLOSERS),
    (kernels.FULL, static_words.FULL_MARKS),
    (kernels.FULL_CLOSER, static_words.FULL_CLOSERS),
    (kernels.TRAILING, TRAILING),
    (kernels.BREAK, "\n"),
    *((1 << kernels.MARKS + k, chars) for k, chars in enumerate(MARKS)),
)
