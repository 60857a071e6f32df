"""Charts: well-formed, described in words, and true to their values."""

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.reporting import charts
from pipelines.reporting.charts import Axis, Frame

EVIL = "<script>&\"'"
FRAME = Frame("key", EVIL, "What it says: " + EVIL)
SVG = "{http://www.w3.org/2000/svg}"
X, Y = Axis("x " + EVIL, 0, 10), Axis("y", 0, 1)

DRAWN = {
    "bars": charts.bars(FRAME, [(EVIL, 3), ("b", 0)]),
    "no bars": charts.bars(FRAME, []),
    "stacked": charts.stacked(FRAME, [("a", [1, 2]), ("b", [0, 0])], ["one", EVIL]),
    "histogram": charts.histogram(FRAME, [1, 5, 0], X, mark=(4, EVIL)),
    "empty histogram": charts.histogram(FRAME, [0, 0], X),
    "columns": charts.columns(FRAME, [1.0, 0.5], X, Y, level=(0.75, EVIL)),
    "heat": charts.heat(FRAME, [(0, 0, 1), (1, 1, 9)], (2, 2), X, Y),
    "line": charts.line(FRAME, [(0, 0.1), (10, 0.9)], X, Y),
    "one point": charts.line(FRAME, [(5, 5)], Axis("x", 5, 5), Axis("y", 5, 5)),
    "spans": charts.spans(FRAME, [(EVIL, (0, 0.25, 0.5, 0.75, 1))]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_chart_is_well_formed_and_told_in_words(name: str) -> None:
    root = ElementTree.fromstring(DRAWN[name])
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"] == "key-t key-d"
    assert [root.find(f"{SVG}{tag}").text for tag in ("title", "desc")] == [FRAME.title, FRAME.description]  # type: ignore[union-attr]
    assert "<script" not in DRAWN[name]
    assert "nan" not in DRAWN[name]
    assert "http" not in DRAWN[name].replace('xmlns="http://www.w3.org/2000/svg"', "")


def widths(svg: str, colour: str) -> list[float]:
    return [
        float(r.attrib["width"]) for r in ElementTree.fromstring(svg).iter(f"{SVG}rect") if r.attrib["fill"] == colour
    ]


def test_bars_are_as_long_as_their_values() -> None:
    long, half, none = widths(charts.bars(FRAME, [("a", 10), ("b", 5), ("c", 0)]), charts.BLUE)
    assert (half, none) == (pytest.approx(long / 2, abs=0.1), 0)


def test_marks_outside_the_axis_are_not_drawn() -> None:
    assert charts.ORANGE not in charts.histogram(FRAME, [1], X, mark=(11, "off"))
    assert charts.ORANGE in charts.histogram(FRAME, [1], X, mark=(10, "on"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.5, "0.5"), (999, "999"), (1000, "1k"), (123_456, "123k"), (2.5e6, "2.5M"), (5.4e11, "540G"),
     (1.2e15, "1.2P"), (3e24, "3Y"), (-2500, "-2.5k")],
)  # fmt: skip
def test_short_numbers(value: float, text: str) -> None:
    assert charts.short(value) == text


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.booleans())
def test_ticks_are_few_even_and_on_the_axis(low: float, span: float, whole: bool) -> None:
    axis = Axis("x", low, low + span, whole)
    ticks = axis.ticks()
    slack = 1e-6 * max(1.0, abs(low), span)
    assert len(ticks) <= 6
    assert all(axis.low - slack <= t <= axis.high + slack for t in ticks)
    if whole:
        assert all(math.isclose(t, round(t), abs_tol=1e-6) for t in ticks)
    gaps: Sequence[float] = [b - a for a, b in pairwise(ticks)]
    assert all(math.isclose(g, gaps[0], rel_tol=1e-6, abs_tol=slack) for g in gaps)
