"""Large losses: of whole sources, and by one reason alone, counted here once more row by row."""

from collections.abc import Sequence

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.catalog.losses import Loss, losses

Fate = tuple[str, str, str | None, list[str]]  # sample id, source, dropped by, reasons


def found(fates: Sequence[Fate]) -> list[Loss]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE fates (sample_id VARCHAR, source VARCHAR, dropped_by VARCHAR, reasons VARCHAR[])"
        )
        connection.execute("ALTER TABLE fates ADD COLUMN kept BOOLEAN")
        for fate in fates:
            connection.execute("INSERT INTO fates VALUES (?, ?, ?, ?, ?)", [*fate, fate[2] is None])
        connection.execute(
            "CREATE TABLE reasons AS SELECT 'clean' AS stage, 'short' AS code, 'too few words' AS sentence"
        )
        connection.execute("CREATE TABLE rules AS SELECT 'clean' AS stage, 'short' AS code, 'clean.min_words' AS param")
        return losses(connection)


def rows(source: str, kept: int, *dropped: list[str]) -> list[Fate]:
    return [
        *((f"{source}/k{n}", source, None, []) for n in range(kept)),
        *((f"{source}/d{n}", source, "clean", reasons) for n, reasons in enumerate(dropped)),
    ]


def test_a_source_that_loses_more_than_half_is_named() -> None:
    assert found(rows("a", 5, *[["short", "odd"]] * 5)) == []
    [loss] = found([*rows("a", 5, *[["short", "odd"]] * 6), *rows("b", 9)])
    assert str(loss) == ("source a loses 6 of 11 rows (55 %): most fail odd 6, short 6. Examples: a/d0, a/d1, a/d2")


def test_a_reason_that_alone_drops_more_than_a_fifth_is_named_with_its_threshold() -> None:
    assert found(rows("a", 8, ["short"], ["short"])) == []
    [loss] = found([*rows("a", 8, ["short"], ["short"], ["short"]), *rows("b", 90, ["short"])])
    assert str(loss) == (
        "short alone drops 3 of 11 rows (27 %) of source a: too few words; its threshold is clean.min_words. "
        "Examples: a/d0, a/d1, a/d2"
    )
    [loss] = found(rows("a", 3, ["copy"]))
    assert (loss.why, loss.param, loss.examples) == ("copy", None, ("a/d0",))


@pytest.mark.parametrize("fates", [[], rows("a", 1), rows("b", 1000, ["short"])])
def test_a_run_that_loses_little_has_none(fates: list[Fate]) -> None:
    assert found(fates) == []


_DROPPED = st.lists(
    st.lists(st.sampled_from(["short", "odd", "copy"]), min_size=1, max_size=3, unique=True), max_size=8
)


@given(st.dictionaries(st.sampled_from(["a", "b", "it's"]), st.tuples(st.integers(0, 8), _DROPPED)))
def test_it_is_what_counting_row_by_row_says(sources: dict[str, tuple[int, list[list[str]]]]) -> None:
    fates = [fate for source, (kept, dropped) in sources.items() for fate in rows(source, kept, *dropped)]
    expected = set()
    for source, (kept, dropped) in sources.items():
        total = kept + len(dropped)
        if len(dropped) > total / 2:
            expected.add((source, None, len(dropped), total))
        for reason in ("short", "odd", "copy"):
            alone = dropped.count([reason])
            if 5 * alone > total:
                expected.add((source, reason, alone, total))
    ours = found(fates)
    assert {(x.source, x.reason, x.dropped, x.rows) for x in ours} == expected
    assert len(ours) == len(expected)
