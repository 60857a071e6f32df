"""Every rule's value for every text of an Arrow array: one walk over its buffers, no Python object a row."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text import segment
from transforms.text.rules import c4, fineweb, gopher, repetition
from transforms.text.rules.config import C4Config, FinewebConfig, GopherConfig, RepetitionConfig, Words
from transforms.text.scan import ALONE, OUTSIDE, Sheet, intern, lines, sheet, token_hashes, tokens
from transforms.text.tables import byte_classes, classes, lower
from transforms.text.utf8 import buffers

COUNTS = ("chars", "words", "lines")
VALUES = (*COUNTS, *gopher.VALUES, *repetition.VALUES, *c4.VALUES, *fineweb.VALUES)
WHOLE = {*COUNTS, *gopher.WHOLE, *c4.VALUES}  # counts; the others are ratios and means
_GOPHER = len(COUNTS)
_REPETITION = _GOPHER + len(gopher.VALUES)
_C4 = _REPETITION + len(repetition.VALUES)
_FINEWEB = _C4 + len(c4.VALUES)

_SIZE = 1 << 16  # tokens and lines of the first sheet; it grows with the texts


class RulesConfig(Protocol):
    """What is read of params."""

    @property
    def words(self) -> Words: ...
    @property
    def gopher(self) -> GopherConfig: ...
    @property
    def repetition(self) -> RepetitionConfig: ...
    @property
    def c4(self) -> C4Config: ...
    @property
    def fineweb(self) -> FinewebConfig: ...


class Readings(NamedTuple):
    """What the variants in params mean to the kernels."""

    table: Array
    narrow: Array
    gopher: gopher.Reading
    repetition: int
    lower: Array
    c4_datatrove: bool
    c4_line_words: int
    short_line: int


class Measured(NamedTuple):
    """The values of `n` texts, and the texts as C4 leaves them: null where that is the text itself."""

    values: dict[str, pa.Array]
    c4_text: pa.LargeStringArray


def measure(
    texts: pa.LargeStringArray, languages: Sequence[str | None], judged: Array, config: RulesConfig
) -> Measured:
    """Returns the values of `VALUES` of each text; of texts without words, and of null ones, only the counts.

    Args:
      texts: (n,) normalised: `\\n` is the only line end, no control characters.
      languages: (n,) ISO codes; the stop-word rule needs them.
      judged: (n,) bool: where it is false only the counts are made.
      config: with `words` and the sections gopher, repetition, c4, fineweb.
    """
    data, offsets, alive = buffers(texts)
    out = np.full((len(texts), len(VALUES)), np.nan)
    target, ends = np.empty(len(data) + 1, np.uint8), np.zeros(len(texts) + 1, np.int64)
    stop_words, stop_from = _stop_words(languages)
    valid = alive & judged
    work, row, read, cuts = sheet(_SIZE), 0, _readings(config), segment.cuts(texts, config.words)
    while True:
        row = _measure(data, offsets, row, valid, stop_words, stop_from, read, cuts, work, out, target, ends)
        if row == len(texts):
            break
        work = sheet(2 * len(work.hashes))
    return Measured(_columns(out, texts), _edited(texts, offsets, target, ends, out))


def _readings(config: RulesConfig) -> Readings:
    return Readings(
        table=classes(),
        narrow=byte_classes(),
        gopher=gopher.reading(config.gopher.variant),
        repetition=repetition.VARIANTS.index(config.repetition.variant),
        lower=lower() if config.repetition.variant == "rpv2" else np.zeros(0, np.int32),
        c4_datatrove=config.c4.variant == "datatrove",
        c4_line_words=config.c4.min_line_words,
        short_line=config.fineweb.short_line_chars,
    )


def _stop_words(languages: Sequence[str | None]) -> tuple[Array, Array]:
    """Returns the stop words' hashes, and for each text where those of its language begin and end: (n, 2)."""
    known = {code: token_hashes(" ".join(words)) for code, words in gopher.STOP_WORDS.items()}
    ends = np.cumsum([0, *map(len, known.values())])
    spans = {code: (ends[k], ends[k + 1]) for k, code in enumerate(known)}
    where = np.array([spans.get(code or "", (0, 0)) for code in languages], np.int64).reshape(-1, 2)
    return np.concatenate(list(known.values())), where


@kernel
def _measure(
    data: Array, offsets: Array, row: int, judged: Array, stop_words: Array, stop_from: Array, read: Readings,
    cuts: Array, sheet: Sheet, out: Array, target: Array, ends: Array,
) -> int:  # fmt: skip
    """Fills the rows of `out` from `row` on; returns the first that the sheet is too small for, or their number."""
    while row < len(judged):
        start, stop = offsets[row], offsets[row + 1]
        words, full = tokens(data, start, stop, read.table, read.narrow, cuts, sheet), lines(data, start, stop, sheet)
        if words < 0 or full < 0:
            return row
        newlines = _count(data, start, stop, words, full, sheet, out[row])
        ends[row + 1] = ends[row]
        if words and judged[row]:
            mine = stop_words[stop_from[row, 0] : stop_from[row, 1]]
            ends[row + 1] = _judge(
                data, start, stop, words, full, newlines, mine, read, sheet, out[row], target, ends[row]
            )
        row += 1
    return row


@kernel
def _count(data: Array, start: int, stop: int, words: int, full: int, sheet: Sheet, out: Array) -> int:
    """Fills characters, tokens and lines; returns how many newlines there are: all bytes outside of lines."""
    starts, stops, lengths = sheet.starts, sheet.stops, sheet.chars
    newlines, chars = stop - start, 0
    for k in range(full):
        newlines -= stops[k] - starts[k]
        chars += lengths[k]
    out[0], out[1], out[2] = chars + newlines, words, newlines + (stop > start and data[stop - 1] != 10)
    return newlines


@kernel
def _is_unspaced(words: int, sheet: Sheet) -> bool:
    """Returns whether more than half of W′ is of scripts without spaces, where a word is one character."""
    alone = outside = 0
    for flags in sheet.flags[:words]:
        alone += (flags & ALONE) != 0
        outside += flags & OUTSIDE
    return 2 * alone > outside


@kernel
def _judge(
    data: Array, start: int, stop: int, words: int, full: int, newlines: int, stop_words: Array, read: Readings,
    sheet: Sheet, out: Array, target: Array, to: int,
) -> int:  # fmt: skip
    """Fills the values of one text; returns where C4's edition of it ends in `target`.

    Repetition comes last: it may drop tokens from the sheet.
    """
    table, unspaced = read.table, _is_unspaced(words, sheet)
    distinct = intern(sheet.hashes, words, sheet)
    size = gopher.Counted(words, distinct, full, out[2], unspaced)
    gopher.fill(data, start, stop, table, size, read.gopher, stop_words, sheet, out[_GOPHER:_REPETITION])
    fineweb.fill(data, table, words, full, newlines, -1 if unspaced else read.short_line, sheet, out[_FINEWEB:])
    if not unspaced:
        to = c4.fill(
            data, table, words, full, read.c4_datatrove, read.c4_line_words, target, to, sheet, out[_C4:_FINEWEB]
        )
    repetition.fill(data, table, read.lower, words, full, out[0], read.repetition, sheet, out[_REPETITION:_C4])
    return to


def _columns(out: Array, texts: pa.LargeStringArray) -> dict[str, pa.Array]:
    """Returns the columns of `out` as Arrow arrays, counts as int64, NaN as null."""
    absent = ~np.asarray(texts.is_valid())
    found = {}
    for k, name in enumerate(VALUES):
        missing = np.isnan(out[:, k]) | absent
        kind = pa.int64() if name in WHOLE else pa.float64()
        values = np.where(missing, 0, out[:, k])
        found[name] = pa.array(values.astype(np.int64) if name in WHOLE else values, kind, mask=missing)
    return found


def _edited(texts: pa.LargeStringArray, offsets: Array, target: Array, ends: Array, out: Array) -> pa.LargeStringArray:
    """Returns what C4 left of each text; null where it changed nothing, or did not look."""
    looked = ~np.isnan(out[:, _C4])
    changed = looked & (np.diff(ends) != np.diff(offsets))
    validity = pa.array(changed).buffers()[1] if len(texts) else None
    return pa.LargeStringArray.from_buffers(
        len(texts), pa.py_buffer(ends), pa.py_buffer(target[: ends[-1]]), validity, int((~changed).sum())
    )
