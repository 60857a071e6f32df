"""Parts: coder, fingerprints, zipping, and writes that never leave half a file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.places import ROOT

from scoring.core.errors import DataError, SchemaError
from transforms.core import part_io, parts, schemas, sealed
from transforms.core.schemas import DEDUP, conform

SCHEMA = pa.schema([("sample_id", pa.string()), ("x", pa.int64())])


def make(name: str = "part-a-0000.parquet", rows: int = 3, fingerprint: str = "f") -> parts.Part:
    batch = pa.record_batch({"sample_id": [f"{name}-{i}" for i in range(rows)], "x": list(range(rows))}, schema=SCHEMA)
    return parts.Part(name, fingerprint, batch)


@given(st.lists(st.text(), max_size=20), st.text(min_size=1), st.text())
def test_coder_gives_back_what_it_took(texts: list[str], name: str, fingerprint: str) -> None:
    part = parts.Part(name, fingerprint, pa.record_batch({"t": pa.array(texts, pa.large_string())}))
    back = part_io.PartCoder().decode(part_io.PartCoder().encode(part))
    assert (back.name, back.fingerprint) == (name, fingerprint)
    assert back.batch.equals(part.batch)


def test_coder_cuts_a_slice_out_of_its_parent() -> None:
    whole = pa.record_batch({"t": ["x" * 1000] * 10_000})
    small = part_io.PartCoder().encode(parts.Part("n", "f", whole.slice(0, 1)))
    assert len(small) < 3000


def test_beam_knows_the_coder() -> None:
    import apache_beam as beam

    assert isinstance(beam.coders.registry.get_coder(parts.Part), part_io.PartCoder)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_written_part_reads_back(tmp_path: Path, rows: int) -> None:
    receipt = parts.write_part(tmp_path, make(rows=rows), SCHEMA)
    assert receipt.rows == rows
    batch = parts.read_part(tmp_path / receipt.name, ["x"])
    assert batch["x"].to_pylist() == list(range(rows))
    assert parts.Footer(tmp_path / receipt.name).fingerprint == "f"


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        parts.write_part(tmp_path / folder, make(), SCHEMA)
    assert (tmp_path / "a/part-a-0000.parquet").read_bytes() == (tmp_path / "b/part-a-0000.parquet").read_bytes()


def test_footer_digest_follows_content_and_fingerprint(tmp_path: Path) -> None:
    digests = set()
    for k, part in enumerate([make(), make(fingerprint="g"), make(rows=4)]):
        parts.write_part(tmp_path / str(k), part, SCHEMA)
        digests.add(parts.Footer(tmp_path / str(k) / part.name).digest)
    assert len(digests) == 3


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1" * 20, None])
def test_a_damaged_part_is_not_done(tmp_path: Path, damage: bytes | None) -> None:
    part = make()
    parts.write_part(tmp_path, part, SCHEMA)
    path = tmp_path / part.name
    path.write_bytes(path.read_bytes()[:-9] if damage is None else damage)
    assert not parts.is_done(tmp_path, parts.Task(part.name, "f"))


def test_strays_and_temporary_files_go(tmp_path: Path) -> None:
    parts.write_part(tmp_path, make(), SCHEMA)
    parts.write_part(tmp_path, make("part-b-0000.parquet"), SCHEMA)
    (tmp_path / ".tmp-half.parquet").write_bytes(b"half")
    (tmp_path / "mine.txt").write_text("not a part")
    assert parts.remove_strays(tmp_path, ["part-a-0000.parquet"]) == [".tmp-half.parquet", "part-b-0000.parquet"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt", "part-a-0000.parquet"]


def test_columns_are_zipped_by_position(tmp_path: Path) -> None:
    for folder in ("samples", "clean"):
        parts.write_part(tmp_path / folder, make(), SCHEMA)
    batch = parts.read_columns(tmp_path, "part-a-0000.parquet", {"samples": ["x"], "clean": ["x"]})
    assert batch.schema.names == ["sample_id", "samples.x", "clean.x"]


def test_zipping_other_samples_is_an_error(tmp_path: Path) -> None:
    parts.write_part(tmp_path / "samples", make(), SCHEMA)
    other = parts.Part("part-a-0000.parquet", "f", pa.record_batch({"sample_id": ["q"], "x": [1]}, schema=SCHEMA))
    parts.write_part(tmp_path / "clean", other, SCHEMA)
    with pytest.raises(DataError, match="not hold the same samples"):
        parts.read_columns(tmp_path, "part-a-0000.parquet", {"samples": ["x"], "clean": ["x"]})


def test_a_missing_column_names_the_remedy(tmp_path: Path) -> None:
    parts.write_part(tmp_path, make(), SCHEMA)
    with pytest.raises(SchemaError, match="missing columns \\['y'\\]"):
        parts.read_part(tmp_path / "part-a-0000.parquet", ["y"])


def test_conform_refuses_unknown_missing_and_lossy_columns() -> None:
    with pytest.raises(SchemaError, match=r"missing .*unknown"):
        conform(pa.record_batch({"sample_id": ["a"], "zzz": [1]}), DEDUP)
    with pytest.raises(SchemaError, match="cannot be cast"):
        conform(pa.record_batch({"sample_id": ["a"], "x": [1.5]}), SCHEMA)


def test_all_kept_counts_null_as_dropped() -> None:
    batch = pa.record_batch({"a.kept": [True, None, False], "b.kept": [True, True, True]})
    assert parts.all_kept(batch).to_pylist() == [True, False, False]


FULL_DISK = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import pyarrow as pa
from scoring.core.errors import DataError
from transforms.core import parts
batch = pa.record_batch({"sample_id": ["a"], "x": pa.array([__import__("os").urandom(400_000).hex()])})
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    parts.write_part(Path(sys.argv[1]), parts.Part("part-a-0000.parquet", "f", batch), batch.schema)
except DataError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_a_write_that_fails_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    root = ROOT
    out = subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path, root], capture_output=True, text=True, check=False)
    assert out.returncode == 1, out.stderr
    assert "cannot write" in out.stdout
    assert "free disk space" in out.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_real_full_disk_is_told_as_such(tmp_path: Path) -> None:
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("needs the right to mount a small file system")
    try:
        batch = pa.record_batch({"sample_id": ["a"], "x": pa.array([os.urandom(200_000).hex()])})
        with pytest.raises(DataError, match="No space left"):
            parts.write_part(tmp_path, parts.Part("part-a-0000.parquet", "f", batch), batch.schema)
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from scoring.core import files
def half(path):
    Path(path).write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
files.write_atomic(Path(sys.argv[1]) / "part-a-0000.parquet", half)
"""


def test_a_killed_writer_leaves_no_half_part(tmp_path: Path) -> None:
    root = ROOT
    out = subprocess.run([sys.executable, "-c", KILLED, tmp_path, root], check=False)
    assert out.returncode == -signal.SIGKILL
    assert parts.names(tmp_path) == []
    assert len(parts.remove_strays(tmp_path, [])) == 1


@pytest.mark.parametrize("folder", ["rejects", "clean"])
def test_a_part_without_rows_is_whole(tmp_path: Path, folder: str) -> None:
    schema = schemas.PARTS[folder]
    empty = pa.RecordBatch.from_pylist([], schema=schema)
    parts.write_part(tmp_path, parts.Part("part-aa-0000.parquet", "f", empty), schema)
    assert sealed.check(tmp_path / "part-aa-0000.parquet")
