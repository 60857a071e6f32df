"""Memory: what was found out is not found out again; damage and a folder that cannot be written cost time alone."""

from pathlib import Path

import pytest

from scoring.core import remembered


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def asked(key: bytes, text: str) -> tuple[str, bool]:
    """Returns what is recalled for `key`, and whether it had to be found out."""
    found: list[str] = []

    def find() -> str:
        found.append(text)
        return text

    return remembered.recall("kind", key, find), bool(found)


def test_a_text_is_found_out_once_for_each_key(home: Path) -> None:
    assert asked(b"a", "one\ntwo ä") == ("one\ntwo ä", True)
    assert asked(b"a", "other") == ("one\ntwo ä", False)
    assert asked(b"b", "other") == ("other", True)


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"0" * 32 + b"\nother"])
def test_a_damaged_memory_is_made_again(home: Path, damage: bytes) -> None:
    asked(b"a", "one")
    (path,) = (home / "gradsift/kind").iterdir()
    path.write_bytes(damage)
    assert asked(b"a", "two") == ("two", True)
    assert asked(b"a", "three") == ("two", False)


def test_without_a_folder_everything_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert asked(b"a", "one") == ("one", True)
    assert asked(b"a", "two") == ("two", True)
