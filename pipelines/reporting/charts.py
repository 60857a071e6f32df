"""Charts as inline SVG: pure functions from values to a string. Readable at phone width, and by a screen reader.

Every chart is 420 units wide, so that its text stays legible on a phone, and has a title and a description.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 420
INK, MUTED, GRID, BLUE, ORANGE, GREEN, PINK, GREY = (
    "#1f2933", "#56616f", "#e1e6ec", "#0072b2", "#d98200", "#009e73", "#c26397", "#8a939e",
)  # fmt: skip
SERIES = (BLUE, ORANGE, GREEN, PINK, GREY)  # after Okabe and Ito: told apart by people who are colour-blind

_HALO = ' paint-order="stroke" stroke="#fff" stroke-width="4"'  # keeps words on top of columns readable
_ROW = 22
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 24, 34  # of charts with two axes
_HEIGHT = 230


@dataclass(frozen=True)
class Frame:
    """What every chart has: an id that is unique on the page, a title, and a description of the image in words."""

    key: str
    title: str
    description: str


@dataclass(frozen=True)
class Axis:
    """One axis: its label, and its smallest and largest value."""

    label: str
    low: float
    high: float
    whole: bool = False  # whether only whole numbers mean something on it

    def at(self, value: float, start: float, end: float) -> float:
        """Returns the place of `value` between `start` and `end`."""
        span = self.high - self.low
        return start + (end - start) * ((value - self.low) / span if span else 0.5)

    def value(self, share: float) -> float:
        """Returns the value at `share` of the way from the smallest to the largest."""
        return self.low + (self.high - self.low) * share

    def ticks(self) -> list[float]:
        """Returns round values on the axis, three to five as a rule."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        unit = 10.0 ** math.floor(math.log10(span / 4))
        step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= span / 4 * (1 - 1e-9))
        step = max(1.0, math.ceil(step)) if self.whole else step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def short(value: float) -> str:
    """Returns `value` with three digits and a suffix: 12.3k, 4.56M, 7.89T."""
    for limit, suffix in ((1e24, "Y"), (1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"),
                          (1e3, "k")):  # fmt: skip
        if abs(value) >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


def _svg(frame: Frame, height: float, body: Iterator[str]) -> str:
    key = escape(frame.key, quote=True)
    return (
        f'<svg role="img" aria-labelledby="{key}-t {key}-d" viewBox="0 0 {WIDTH} {height:g}" '
        f'xmlns="http://www.w3.org/2000/svg"><title id="{key}-t">{escape(frame.title)}</title>'
        f'<desc id="{key}-d">{escape(frame.description)}</desc>{"".join(body)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", fill: str = INK, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{more}>{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, fill: str, opacity: float = 1.0) -> str:
    seen = f' fill-opacity="{opacity:.3f}"' if opacity < 1 else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"{seen}/>'


def _line(x1: float, y1: float, x2: float, y2: float, stroke: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"{more}/>'


def _clip(label: str, chars: int) -> str:
    return label if len(label) <= chars else label[: chars - 1] + "…"


def bars(frame: Frame, rows: Sequence[tuple[str, float]], colour: str = BLUE) -> str:
    """Returns one horizontal bar per row, its label before it and its value behind it."""
    return stacked(frame, [(label, [value]) for label, value in rows], [""], [colour])


def stacked(
    frame: Frame, rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], colours: Sequence[str] = SERIES
) -> str:
    """Returns one horizontal bar per row, cut into the series `names`, with the row's sum behind it."""
    left, right = 158, 50
    most = max((sum(values) for _, values in rows), default=0) or 1
    legend = [n for n in names if n]
    top = 26 if legend else 6

    def body() -> Iterator[str]:
        yield from _legend(legend, colours)
        for k, (label, values) in enumerate(rows):
            y, x = top + k * _ROW, float(left)
            yield _text(left - 6, y + 14, _clip(label, 25), "end")
            for value, colour in zip(values, colours, strict=False):
                width = (WIDTH - left - right) * value / most
                yield _rect(x, y + 3, width, _ROW - 7, colour)
                x += width
            yield _text(x + 5, y + 14, short(sum(values)), fill=MUTED)

    return _svg(frame, top + _ROW * len(rows) + 4, body())


def _legend(names: Sequence[str], colours: Sequence[str]) -> Iterator[str]:
    x = 4.0
    for name, colour in zip(names, colours, strict=False):
        yield _rect(x, 6, 10, 10, colour)
        yield _text(x + 14, 15, name, fill=MUTED)
        x += 26 + 6.4 * len(name)


def _axes(x: Axis, y: Axis, height: float) -> Iterator[str]:
    """Yields grid lines, tick labels and the labels of both axes."""
    bottom, right = height - _BOTTOM, WIDTH - _RIGHT
    for value in y.ticks():
        level = y.at(value, bottom, _TOP)
        yield _line(_LEFT, level, right, level, GRID)
        yield _text(_LEFT - 5, level + 4, short(value), "end", MUTED)
    for value in x.ticks():
        place = x.at(value, _LEFT, right)
        yield _line(place, bottom, place, bottom + 4, MUTED)
        yield _text(place, bottom + 16, short(value), "end" if place > right - 8 else "middle", MUTED)
    yield _text((_LEFT + right) / 2, height - 4, x.label, "middle", MUTED)
    yield _text(4, 11, y.label, fill=MUTED)


def histogram(frame: Frame, counts: Sequence[int], x: Axis, *, mark: tuple[float, str] | None = None) -> str:
    """Returns `counts` of equal bins over `x` as columns, with a dashed line at `mark` (value, label)."""
    y = Axis("rows", 0, max(counts, default=0) or 1, whole=True)
    return columns(frame, counts, x, y, mark=mark, gap=0.6)


def columns(
    frame: Frame,
    values: Sequence[float],
    x: Axis,
    y: Axis,
    *,
    mark: tuple[float, str] | None = None,
    level: tuple[float, str] | None = None,
    gap: float = 1.0,
) -> str:
    """Returns one column a value; `mark` is a vertical line at a value of `x`, `level` a horizontal one of `y`."""
    bottom, right = _HEIGHT - _BOTTOM, WIDTH - _RIGHT
    step = (right - _LEFT) / max(1, len(values))

    def body() -> Iterator[str]:
        yield from _axes(x, y, _HEIGHT)
        for k, value in enumerate(values):
            top = y.at(value, bottom, _TOP)
            yield _rect(_LEFT + k * step, top, max(0.5, step - min(gap, step / 3)), bottom - top, BLUE)
        dashed = ' stroke-width="1.5" stroke-dasharray="4 3"'
        if mark and x.low <= mark[0] <= x.high:
            place = x.at(mark[0], _LEFT, right)
            yield _line(place, _TOP, place, bottom, ORANGE, dashed)
            anchor, shift = ("end", -4) if place > WIDTH / 2 else ("start", 4)
            yield _text(place + shift, _TOP - 3, mark[1], anchor, INK, _HALO)
        if level:
            height = y.at(level[0], bottom, _TOP)
            yield _line(_LEFT, height, right, height, ORANGE, dashed)
            yield _text(right, height - 4, level[1], "end", INK, _HALO)

    return _svg(frame, _HEIGHT, body())


def heat(frame: Frame, cells: Sequence[tuple[int, int, int]], grid: tuple[int, int], x: Axis, y: Axis) -> str:
    """Returns a map of `grid` (columns, rows); `cells` are (column, row, count), the darker the more."""
    height = 300
    bottom, right = height - _BOTTOM, WIDTH - _RIGHT
    wide, high = (right - _LEFT) / grid[0], (bottom - _TOP) / grid[1]
    most = max((count for _, _, count in cells), default=1)

    def body() -> Iterator[str]:
        yield from _axes(x, y, height)
        for column, row, count in cells:
            shade = 0.15 + 0.85 * (count / most) ** 0.5
            yield _rect(_LEFT + column * wide, bottom - (row + 1) * high, wide, high, BLUE, shade)

    return _svg(frame, height, body())


def line(frame: Frame, points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> str:
    """Returns `points` joined by a line."""
    bottom, right = _HEIGHT - _BOTTOM, WIDTH - _RIGHT
    path = " ".join(f"{x.at(a, _LEFT, right):.1f},{y.at(b, bottom, _TOP):.1f}" for a, b in points)

    def body() -> Iterator[str]:
        yield from _axes(x, y, _HEIGHT)
        yield f'<polyline points="{path}" fill="none" stroke="{BLUE}" stroke-width="2"/>'

    return _svg(frame, _HEIGHT, body())


def spans(frame: Frame, rows: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Returns one box per row on [0, 1]: its five values are the 5, 25, 50, 75 and 95 % quantiles."""
    left, right, scale = 132, 14, Axis("", 0, 1)
    height = 8 + _ROW * len(rows) + 22

    def body() -> Iterator[str]:
        for k in range(5):
            x = scale.at(k / 4, left, WIDTH - right)
            yield _line(x, 4, x, height - 20, GRID)
            yield _text(x, height - 5, short(k / 4), "middle", MUTED)
        for k, (label, values) in enumerate(rows):
            y = 8 + k * _ROW
            p5, p25, p50, p75, p95 = (scale.at(v, left, WIDTH - right) for v in values)
            yield _text(left - 8, y + 13, _clip(label, 20), "end")
            yield _line(p5, y + 9, p95, y + 9, GREY, ' stroke-width="1.5"')
            yield _rect(p25, y + 3, max(1.0, p75 - p25), 12, BLUE, 0.45)
            yield _line(p50, y + 2, p50, y + 16, INK, ' stroke-width="2"')

    return _svg(frame, height, body())
