from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from scoring.core.errors import DataError
from transforms.core import arrow_files

BATCH = pa.record_batch({"a": [1, 2, None], "b": [["x"], [], ["y", "z"]]})


@pytest.mark.parametrize("write", [arrow_files.write, arrow_files.write_scratch])
def test_what_is_written_is_read_with_its_record(tmp_path: Path, write: Callable[..., None]) -> None:
    path = tmp_path / "new folder" / "file.arrow"
    write(path, BATCH, fingerprint="f", full=3)
    write(path, BATCH.slice(1), fingerprint="g", full=4)
    assert arrow_files.read(path).to_pydict() == BATCH.slice(1).to_pydict()
    assert arrow_files.recorded(path) == {"fingerprint": "g", "full": 4}
    assert [p.name for p in path.parent.iterdir()] == ["file.arrow"]


def test_no_rows_and_no_record(tmp_path: Path) -> None:
    arrow_files.write_scratch(tmp_path / "empty.arrow", BATCH.slice(0, 0))
    assert arrow_files.read(tmp_path / "empty.arrow").num_rows == 0
    assert arrow_files.recorded(tmp_path / "empty.arrow") == {}


@pytest.mark.parametrize("size", [0, 5, 40, -9])
def test_a_file_that_is_not_whole_has_no_record(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file.arrow"
    arrow_files.write(path, BATCH, fingerprint="f")
    path.write_bytes(path.read_bytes()[:size])
    assert arrow_files.recorded(path) == {}
    assert arrow_files.recorded(tmp_path / "none.arrow") == {}


@pytest.mark.parametrize("write", [arrow_files.write, arrow_files.write_scratch])
def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, write: Callable[..., None]) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot write"):
        write(tmp_path / "file" / "x.arrow", BATCH)
