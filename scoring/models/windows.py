"""How a long text becomes windows, and how windows become batches; pure index arithmetic."""

from collections.abc import Sequence

import numpy as np

Span = tuple[int, int]

_MIN_FILL = 0.75  # of the longest window in a batch: bounds the padding to a quarter
_MAX_PADDING = 0.05  # of a batch that is not small
_SMALL = 256  # padded tokens: below, a call costs more than the padding that another would save


def spans(tokens: int, window: int, stride: int, max_windows: int) -> list[Span]:
    """Returns `[start, end)` of the windows over `tokens` tokens, in order.

    A text that fits is one window. Otherwise a window starts every `stride` tokens, and the last one is
    moved back to end with the text, so that no window is a stub. More than `max_windows` (0: no bound)
    are thinned to that many evenly spaced ones, the first and the last included.
    """
    if tokens <= window:
        return [(0, tokens)] if tokens else []
    starts = [*range(0, tokens - window, stride), tokens - window]
    if 0 < max_windows < len(starts):
        picked = np.linspace(0, len(starts) - 1, max_windows).round().astype(int)
        starts = [starts[int(k)] for k in picked]
    return [(s, s + window) for s in starts]


def coverage(found: Sequence[Span], tokens: int) -> float:
    """Returns the share of `tokens` covered by the windows `found` (sorted); 0 without tokens."""
    covered, end = 0, 0
    for start, stop in found:
        covered += stop - max(start, end)
        end = stop
    return covered / tokens if tokens else 0.0


def _fills(filled: int, padded: int, length: int, longest: int) -> bool:
    """Returns whether a batch with `filled` of `padded` tokens may hold a row of `length` beside one of `longest`."""
    return length >= _MIN_FILL * longest and (padded <= _SMALL or filled >= (1 - _MAX_PADDING) * padded)


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Returns batches of indices into `lengths`, longest first, each of similar lengths.

    The padded size (rows × longest) of a batch is at most `budget` tokens, unless it is a single row. At most a
    twentieth of it is padding, of a small batch a quarter.
    """
    found: list[list[int]] = []
    longest = filled = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        length = lengths[index]
        padded = longest * (len(found[-1]) + 1) if found else 0
        if not found or padded > budget or not _fills(filled + length, padded, length, longest):
            found.append([])
            longest, filled = length, 0
        found[-1].append(index)
        filled += length
    return found
