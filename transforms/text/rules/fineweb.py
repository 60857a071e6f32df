"""FineWeb's rules on lines (Penedo et al. 2024); a line is what newlines part, blank ones do not count.

How short a line is and how many words it holds say nothing in scripts without spaces: there these two values
are null and no row fails them.
"""

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import point, trimmed
from transforms.text.scan import Sheet, repeats
from transforms.text.tables import TERMINAL

VALUES = ("line_end_ratio", "short_line_ratio", "line_repeat_char_ratio", "newline_word_ratio")


@kernel
def _is_ended(data: Array, stop: int, table: Array) -> bool:
    """Returns whether the character before `stop` ends a sentence."""
    last = stop - 1
    while (data[last] & 0xC0) == 0x80:
        last -= 1
    char, _ = point(data, last)
    return bool((table[char] & TERMINAL) != 0)


@kernel
def fill(
    data: Array, table: Array, words: int, lines: int, newlines: int, short: int, sheet: Sheet, out: Array
) -> None:
    """Fills the values of one text from its `lines` in the sheet; `short` is below 0 in scripts without spaces."""
    starts, stops, keys, lengths = sheet.starts, sheet.stops, sheet.keys, sheet.chars
    piece_keys, piece_chars = sheet.piece_keys, sheet.piece_chars
    full = ended = brief = chars = np.int64(0)
    for k in range(lines):
        chars += lengths[k]
        first, last = trimmed(data, starts[k], stops[k], table)
        if first == last:
            continue
        piece_keys[full], piece_chars[full] = keys[k], lengths[k]
        ended += _is_ended(data, stops[k], table)
        brief += lengths[k] <= short
        full += 1
    out[0] = ended / full
    out[1] = np.nan if short < 0 else brief / full
    out[2] = repeats(full, sheet, np.int64(0))[1] / chars
    out[3] = np.nan if short < 0 else newlines / words
