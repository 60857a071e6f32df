"""Tables are made once, read after that, and made again where the kept ones are no good."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scoring.core import jit
from scoring.core.table_cache import kept


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jit, "folder", lambda _: str(tmp_path / "cache"))
    return tmp_path / "cache"


def squares() -> tuple[Callable[..., np.ndarray], list[str]]:
    """A table anew, as another process has it, and what it was made for."""
    made: list[str] = []

    @kept
    def table(key: str) -> np.ndarray:
        made.append(key)
        return np.arange(int(key)) ** 2

    return table, made


def test_a_table_is_made_once_for_its_keys(place: Path) -> None:
    first, made = squares()
    np.testing.assert_array_equal(first("4"), [0, 1, 4, 9])
    again, unmade = squares()
    found = again("4")
    np.testing.assert_array_equal(found, [0, 1, 4, 9])
    assert found.flags.writeable  # another type to compiled functions otherwise
    assert again("4") is found
    np.testing.assert_array_equal(again("2"), [0, 1])
    assert (made, unmade) == (["4"], ["2"])
    assert len(list(place.iterdir())) == 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04N.", b"\x93NUMPY\x01"])
def test_a_damaged_file_is_made_again(place: Path, content: bytes) -> None:
    squares()[0]("3")
    (path,) = place.iterdir()
    path.write_bytes(content)
    table, made = squares()
    np.testing.assert_array_equal(table("3"), [0, 1, 4])
    assert made == ["3"]
    assert squares()[0]("3").tolist() == [0, 1, 4]


def test_a_cut_file_is_made_again(place: Path) -> None:
    squares()[0]("500")
    (path,) = place.iterdir()
    path.write_bytes(path.read_bytes()[:-700])
    table, made = squares()
    assert (len(table("500")), made) == (500, ["500"])


def test_several_arrays_come_back_as_they_were(place: Path) -> None:
    def pair() -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((0, 2), np.uint32), np.array([True, False])

    for found in (kept(pair)(), kept(pair)()):
        assert [(a.shape, a.dtype) for a in found] == [((0, 2), np.uint32), ((2,), bool)]


def test_where_nothing_can_be_written_it_is_made_all_the_same(place: Path) -> None:
    place.write_bytes(b"a file in the way")
    table, made = squares()
    assert (table("2").tolist(), made) == ([0, 1], ["2"])
