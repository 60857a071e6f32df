"""The normal form of a text: the clean text that every later stage reads."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.text import words
from transforms.text.normal import normalize_kernel
from transforms.text.normal.config import Form, NormalizeConfig
from transforms.text.utf8 import buffers

# Patterns begin with a plain character class: then `re` skips to the first match several times faster.
_NEWLINES = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]+")
_UNCLEAN = re.compile(f"{_NEWLINES.pattern}|{_CONTROLS.pattern}")
_LINES = re.compile("[^\n]*\n|[^\n]+")
_STARTER = "\u034f"  # combining grapheme joiner: invisible, ends a run of marks
_MAX_ROUNDS = 8  # of repair; nothing seen needs more than three
_MAX_SEGMENT = 65536  # characters of a line that are repaired together; bounds what ftfy's loops may cost


@dataclass(frozen=True)
class Normalized:
    """Clean texts; by row, whether mojibake was repaired (0 or 1), and how many control characters went."""

    texts: pa.LargeStringArray
    mojibake_fixes: pa.Int32Array
    controls_removed: pa.Int32Array


def normalize_batch(texts: pa.LargeStringArray, config: NormalizeConfig) -> Normalized:
    """Returns the `Normalized` of `texts`; null rows stay null in all of it.

    Python sees only the rows that `triage` cannot call clean. Where mojibake is repaired, the C1 controls are
    read as Windows-1252, as browsers do (U+0085 is an ellipsis then, not a line end), before `normalize`.
    Normalising twice changes nothing.
    """
    mask = _flags(texts, config) != 0
    rows = [_settled(text, config) for text in texts.filter(pa.array(mask)).to_pylist()]
    counts = np.zeros((2, len(texts)), np.int32)
    counts[:, mask] = np.array([row[1:] for row in rows], np.int32).reshape(-1, 2).T
    if rows:
        texts = pc.replace_with_mask(texts, pa.array(mask), pa.array([row[0] for row in rows], pa.large_string()))
    null = texts.is_null().to_numpy(zero_copy_only=False)
    return Normalized(texts, *(pa.array(values, pa.int32(), mask=null) for values in counts))


def _flags(texts: pa.LargeStringArray, config: NormalizeConfig) -> normalize_kernel.Bytes:
    """Returns (rows,) uint8 flags of `triage`; 0 is clean."""
    found = normalize_kernel.tables(config.unicode_form, _UNCLEAN, mojibake=config.fix_mojibake)
    data, offsets, valid = buffers(texts)
    return normalize_kernel.triage(data, offsets, valid, *found)


def _settled(text: str, config: NormalizeConfig) -> tuple[str, int, int]:
    """Returns the fixed point of repair and normal form, whether anything was repaired, controls removed."""
    repaired = repair(text, config)
    fixed, removed = repaired != text, 0
    for _ in range(_MAX_ROUNDS):
        broken = _NEWLINES.sub("\n", repaired)
        bare = _CONTROLS.sub("", broken)
        removed += len(broken) - len(bare)
        text = _composed(bare, config.unicode_form)
        repaired = repair(text, config)
        if repaired == text:
            break
        fixed = True
    return text, int(fixed), removed


def repair(text: str, config: NormalizeConfig) -> str:
    """Returns `text` with its mojibake undone, line by line, by `ftfy.fix_encoding` (nothing else of ftfy)."""
    if not config.fix_mojibake or text.isascii():
        return text
    lines = _LINES.findall(text)
    suspect = _flags(pa.array(lines, pa.large_string()), config) & normalize_kernel.SUSPECT
    for row in np.flatnonzero(suspect):
        lines[row] = _repaired(lines[row])
    return "".join(lines)


def _repaired(line: str) -> str:
    import ftfy
    from ftfy.badness import is_bad

    pieces = (line[k : k + _MAX_SEGMENT] for k in range(0, len(line), _MAX_SEGMENT))
    return "".join(ftfy.fix_encoding(piece) if is_bad(piece) else piece for piece in pieces)


def normalize(text: str, form: Form) -> str:
    """Returns `text` in Unicode form `form`, with `\\n` as the only line end and no invisible controls.

    Control characters but `\\n` and `\\t`, bidi controls and U+FEFF are removed; U+FFFD stays, as a trace of
    damage. Runs of more than 30 combining marks are broken by U+034F (Stream-Safe Text Format, UAX #15 §13):
    ordering an unbroken run takes quadratic time. Normalising twice changes nothing.
    """
    return _composed(_CONTROLS.sub("", _NEWLINES.sub("\n", text)), form)


def _composed(text: str, form: Form) -> str:
    if text.isascii():
        return text
    once = unicodedata.normalize(form, _stream_safe(text))
    return unicodedata.normalize(form, _stream_safe(once))


@cache
def _mark_runs(limit: int) -> re.Pattern[str]:
    nonstarters = (c for c in range(limit) if unicodedata.combining(chr(c)))
    mark = f"[{words.char_class(nonstarters)}]"
    return re.compile(f"{mark}{mark}{{{normalize_kernel.MAX_MARKS - 1}}}(?={mark})")


def _stream_safe(text: str) -> str:
    return _mark_runs(words.limit(text)).sub(rf"\g<0>{_STARTER}", text)
