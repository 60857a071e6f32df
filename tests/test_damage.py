"""Damaged files of a real small run: none is read as other data, each is named, and its stage restores its bytes."""

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from support import command, small, whole

from pipelines.core import tables, trust
from pipelines.core.project import Project, open_project
from scoring.core.errors import DataError
from transforms.core import parts, sealed

FLIPS = 300


@pytest.fixture(scope="module")
def root(whole_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole.copy(whole_run, tmp_path_factory.mktemp("damaged"))


@pytest.fixture(scope="module")
def project(root: Path) -> Project:
    return open_project(root / "params.yaml")


def largest(folder: Path, pattern: str = "*.parquet") -> Path:
    return max(folder.glob(pattern), key=lambda p: (p.stat().st_size, p.name))


def flip(path: Path, seed: int = 7) -> None:
    data, rng = bytearray(path.read_bytes()), random.Random(seed)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def test_no_flipped_bit_of_clean_is_read_as_other_data(project: Project) -> None:
    path = largest(project.folder("clean"))
    whole_bytes, columns = path.read_bytes(), parts.Footer(path).columns
    expected, task = parts.read_part(path, columns), parts.Task(path.name, parts.Footer(path).fingerprint)
    harmless = 0
    for seed in range(FLIPS):
        path.write_bytes(whole_bytes)
        flip(path, seed)
        assert trust.undone(path.parent, [task]) == [task]  # so the stage rewrites it, whatever the bit means
        with pytest.raises(DataError, match=r"(?s)damaged file.*" + path.name + r".*gradsift run clean"):
            tables.scan(path.parent)  # before DuckDB reads it
        with contextlib.suppress(DataError):
            assert parts.read_part(path, columns).equals(expected)  # a bit of the first four bytes, which hold no data
            harmless += 1
    assert harmless <= 3
    path.write_bytes(whole_bytes)
    assert trust.undone(path.parent, [task]) == []


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flip": flip,
    "truncate": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "no end": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "other part": lambda path: path.write_bytes(sorted(set(path.parent.glob("*.parquet")) - {path})[0].read_bytes()),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("folder", "stage"), [("samples", "ingest"), ("rejects", "ingest"), ("clean", "clean"),
                                               ("dedup", "dedup"), ("shards", "shard")])  # fmt: skip
def test_its_stage_restores_a_damaged_part(root: Path, project: Project, folder: str, stage: str, damage: str) -> None:
    path = largest(project.folder(folder))
    before = path.read_bytes()
    DAMAGES[damage](path)
    assert path.read_bytes() != before
    assert stage == sealed.stage_of(path)
    assert command.within(root, "run", stage).returncode == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
@pytest.mark.parametrize(("folder", "reader", "stage"), [
    ("samples", "clean", "ingest"), ("clean", "dedup", "clean"), ("quality", "plan", "quality"), ("lqs", "plan", "lqs"),
])  # fmt: skip
def test_a_stage_names_the_damaged_part_that_it_reads_and_who_rewrites_it(
    root: Path, project: Project, folder: str, reader: str, stage: str, damage: str
) -> None:
    path = largest(project.folder(folder))
    before = path.read_bytes()
    DAMAGES[damage](path)
    out = command.within(root, "run", reader, "--force")
    path.write_bytes(before)
    assert out.returncode == 1
    assert str(path) in out.stderr
    assert f"gradsift run {stage}" in out.stderr
    assert "Traceback" not in out.stderr
    assert command.within(root, "run", reader).returncode == 0


FILES = ("samples", "rejects", "clean", "clean/lines", "dedup", "dedup/lines", "dedup/lines/keys", "quality",
         "tokens/raw", "tokens", "gradients", "gradients/sketches", "static/raw", "static/counts", "static", "lqs",
         "plan", "shards")  # fmt: skip
OTHERS = ("dedup/signatures/*.arrow", "gradients/directions/*.safetensors", "quality/head/head.safetensors",
          "dedup/lines/shared.npy", "reference/checkpoint-*/model.safetensors")  # fmt: skip


def test_verify_finds_all_and_a_run_restores_the_same_bytes(root: Path, project: Project) -> None:
    assert command.within(root, "run").returncode == 0
    out = command.within(root, "verify")
    assert out.returncode == 0, out.stdout + out.stderr
    assert "0 damaged, 0 without checksums" in out.stdout
    before = small.outputs(root)
    hit = [largest(project.folder(f)) for f in FILES if list(project.folder(f).glob("*.parquet"))]
    hit += [largest(project.data, pattern) for pattern in OTHERS if list(project.data.glob(pattern))]
    assert len(hit) > 20
    for path in hit:
        flip(path)
    out = command.within(root, "verify")
    assert out.returncode == 1
    missed = [path for path in hit if str(path.relative_to(root)) not in out.stdout and "reference" not in path.parts]
    assert not missed
    assert "data/reference/checkpoint" in out.stdout
    assert "gradsift run ingest" in out.stdout
    assert command.within(root, "run").returncode == 0
    after = small.outputs(root)
    assert {n for n in before if after.get(n) != before[n]} == set()
    assert command.within(root, "verify").returncode == 0


def test_a_query_refuses_damaged_parts(root: Path, project: Project) -> None:
    path = largest(project.folder("tokens"))
    before = path.read_bytes()
    flip(path)
    out = command.within(root, "query", "SELECT count(*) FROM samples_all")
    path.write_bytes(before)
    assert out.returncode == 1
    assert path.name in out.stderr
    assert "gradsift run tokens" in out.stderr
