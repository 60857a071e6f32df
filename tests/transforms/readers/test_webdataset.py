"""WebDataset archives: members grouped into samples, names that are only names, tars cut and damaged."""

import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reading import extent, faults, read

from transforms.readers.base import Fault, Record
from transforms.readers.html import Page
from transforms.readers.webdataset import holds_media, piece_bounds, read_webdataset


def tar(*members: tuple[str, bytes | str], form: int = tarfile.PAX_FORMAT, **kinds: Any) -> bytes:
    """Returns an archive; `kinds` give a member, by the index after m, another type and a link's target."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for k, (name, data) in enumerate(members):
            raw = data if isinstance(data, bytes) else data.encode()
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            if f"m{k}" in kinds:
                info.type, info.linkname, info.size = kinds[f"m{k}"], "/etc/passwd", 0
            archive.addfile(info, io.BytesIO(raw))
    return out.getvalue()


def samples(path: Path, data: bytes, **keys: Any) -> list[Any]:
    return [v for _, v in read(read_webdataset, path / "a.tar", data, **keys)]


def blob(name: str, data: bytes) -> dict[str, Any]:
    return {"bytes": data, "path": name}


def test_members_become_samples(tmp_path: Path) -> None:
    meta = {"id": "x", "caption": "c", "text": "t", "image": "/etc/passwd", "txt": 1}
    data = tar(
        ("./d/", ""), ("./d/0.jpg", b"\xff\xd8"), ("./d/0.txt", "a cat\n"), ("./d/0.json", json.dumps(meta)),
        ("./d/0.cls", "3\n"), ("./d/._0.jpg", "hidden"), ("./e/0.left.PNG", b"L"), ("./e/0.right.png", b"R"),
        ("./e/0.npy", b"\xff\0"), ("./e/0.url", "http://x"), ("1.mp4", b"V"), ("1.flac", b"A"), ("1.html", "<p>x"),
        ("1.more.json", "[1]"), ("2.txt", "one"), ("2.txt", "again"),
        m0=tarfile.DIRTYPE,
    )  # fmt: skip
    found = samples(tmp_path, data)
    assert found == [
        {"__key__": "d/0", "images": [blob("./d/0.jpg", b"\xff\xd8")], "text": "a cat\n", "label": "3", "id": "x",
         "caption": "c", "json.text": "t", "json.image": "/etc/passwd", "txt": 1},
        {"__key__": "e/0", "images": [blob("./e/0.left.PNG", b"L"), blob("./e/0.right.png", b"R")],
         "npy": b"\xff\0", "url": "http://x"},
        {"__key__": "1", "video": [blob("1.mp4", b"V")], "audio": [blob("1.flac", b"A")], "text": Page(b"<p>x"),
         "more.json": [1]},
        {"__key__": "2", "text": "one"},
        {"__key__": "2", "text": "again"},
    ]  # fmt: skip


def test_positions_are_offsets_of_first_members(tmp_path: Path) -> None:
    data = tar(("0.txt", "a"), ("0.cls", "1"), ("long/" * 60 + "1.txt", "b"), form=tarfile.GNU_FORMAT)
    found = read(read_webdataset, tmp_path / "a.tar", data)
    assert [p for p, _ in found] == [0, 2048]
    assert found[1][1]["__key__"] == "long/" * 60 + "1"


def test_columns_that_params_name(tmp_path: Path) -> None:
    data = tar(
        ("0.left.png", b"L"), ("0.right.png", b"R"), ("0.txt", "t"), ("0.json", '{"caption": "c", "image": "p.png"}')
    )
    columns = {"image": "left.png", "text": "caption", "label": "txt"}
    assert samples(tmp_path, data, columns=columns) == [
        {"__key__": "0", "left.png": blob("0.left.png", b"L"), "images": [blob("0.right.png", b"R")], "txt": "t",
         "caption": "c", "json.image": "p.png"},
    ]  # fmt: skip
    assert samples(tmp_path, data, columns={"image": "image"})[0]["image"] == "p.png"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gzip", "zstd"])
def test_packed_archives(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    data = tar(*((f"{k}.txt", f"text {k}") for k in range(5)))
    plain = read(read_webdataset, tmp_path / "a.tar", data)
    assert read(read_webdataset, tmp_path / "b.tar", pack(data)) == plain
    assert len(plain) == 5
    assert read(read_webdataset, tmp_path / "b.tar", pack(data)[:-9])[-1][1] in ("broken_archive", plain[-1][1])


REFUSED: list[tuple[str, bytes, str]] = [
    ("../../etc/passwd", tarfile.REGTYPE, "unsafe_path"),
    ("../../etc/passwd.txt", tarfile.REGTYPE, "unsafe_path"),
    ("/etc/passwd.txt", tarfile.REGTYPE, "unsafe_path"),
    ("a/../../b.txt", tarfile.REGTYPE, "unsafe_path"),
    ("b.txt", tarfile.SYMTYPE, "unsupported_format"),
    ("b.txt", tarfile.LNKTYPE, "unsupported_format"),
    ("b.txt", tarfile.CHRTYPE, "unsupported_format"),
    ("b.txt", tarfile.FIFOTYPE, "unsupported_format"),
    ("README", tarfile.REGTYPE, "unsupported_format"),
]


@pytest.mark.parametrize(("name", "kind", "reason"), REFUSED)
def test_names_links_and_devices_that_are_refused(tmp_path: Path, name: str, kind: bytes, reason: str) -> None:
    data = tar(("0.txt", "a"), (name, "x"), ("9.txt", "c"), m1=kind)
    before = {p for p in tmp_path.parent.rglob("*") if p.name != "a.tar"}
    assert samples(tmp_path, data) == [{"__key__": "0", "text": "a"}, reason, {"__key__": "9", "text": "c"}]
    assert {p for p in tmp_path.parent.rglob("*") if p.name != "a.tar"} == before


def test_one_bad_member_makes_its_sample_a_fault(tmp_path: Path) -> None:
    data = tar(("0.txt", "a"), ("0.jpg", ""), ("1.txt", b"\xff"), ("2.json", "{"), ("3.txt", "x" * 300),
               ("3.jpg", b"x" * 300), ("4.txt", "d"), m1=tarfile.SYMTYPE)  # fmt: skip
    found = samples(tmp_path, data, limit=500)
    assert found == ["unsupported_format", "bad_encoding", "bad_json", "too_large", {"__key__": "4", "text": "d"}]
    assert faults(read_webdataset, tmp_path / "a.tar")[0].error == "0.jpg: a link"


def test_an_archive_cut_anywhere(tmp_path: Path) -> None:
    data = tar(*((f"{k}.{s}", f"{k} {s}" * 20) for k in range(3) for s in ("txt", "cls")))
    end = 6 * 1024
    whole = read(read_webdataset, tmp_path / "a.tar", data)
    for cut in [*range(1, end, 97), *range(512, end, 512)]:
        found = read(read_webdataset, tmp_path / "a.tar", data[:cut])
        assert found[-1][1] == "broken_archive"
        assert [v for _, v in found].count("broken_archive") == 1
        kept = found[:-1]
        assert [p for p, _ in kept] == [p for p, _ in whole[: len(kept)]]
        assert kept[:-1] == whole[: len(kept)][:-1]
        assert cut % 1024 == 0 or kept == whole[: len(kept)]
        assert len({p for p, _ in found}) == len(found)
    assert read(read_webdataset, tmp_path / "a.tar", data[:end])[:-1] == whole  # only the end mark is lost


def test_what_is_no_archive(tmp_path: Path) -> None:
    good = tar(("0.txt", "a"), ("1.txt", "b"))
    assert samples(tmp_path, random.Random(7).randbytes(5000)) == ["broken_archive"]
    damaged = bytearray(good)
    damaged[1024 + 100] ^= 1  # the second header: `tarfile` alone would end here in silence
    assert samples(tmp_path, bytes(damaged)) == ["broken_archive"]
    huge = bytearray(tar(("x" * 200 + ".txt", "a"), form=tarfile.GNU_FORMAT))
    info = tarfile.TarInfo.frombuf(bytes(huge[:512]), "utf-8", "strict")
    info.size = 1 << 40
    huge[:512] = info.tobuf(tarfile.GNU_FORMAT)[:512]
    assert samples(tmp_path, bytes(huge)) == ["broken_archive"]
    assert samples(tmp_path, bytes(10240)) == []
    assert read(read_webdataset, tmp_path / "gone.tar") == [(0, "unreadable_file")]


def test_pieces_hold_what_the_whole_holds(tmp_path: Path) -> None:
    data = tar(*((f"{k // 3}.{'abc'[k % 3]}.txt", "x" * k * 17) for k in range(60)))
    path = tmp_path / "a.tar"
    whole = read(read_webdataset, path, data)
    assert len(whole) == 20
    for size in (1, 4000, 1 << 30):
        bounds: list[int | None] = [*piece_bounds(path, size), None]
        assert (len(bounds) == 2) == (size == 1 << 30)
        assert [item for a, b in pairwise(bounds) for item in read(read_webdataset, path, start=a or 0, end=b)] == whole
    path.write_bytes(data[:9000])
    assert piece_bounds(path, 1)[:2] == [0, 2560]


def test_whether_there_are_media(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar(("0.txt", "a"), ("1.txt", "a"), ("1.webp", b"x")))
    assert holds_media(extent(path))
    assert not holds_media(extent(path, end=1024))
    path.write_bytes(tar(("0.txt", "a")))
    assert not holds_media(extent(path))
    assert holds_media(extent(path, columns={"image": "file"}))
    path.write_bytes(b"rubbish" * 200)
    assert not holds_media(extent(path))


@given(seed=st.integers(0, 10**6), count=st.integers(1, 20))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_bytes_end_in_rows_and_reasons(tmp_path: Path, seed: int, count: int) -> None:
    dice = random.Random(seed)
    members = [(f"{'n' * 120 * (k % 2)}{k}.{s}", "{}") for k in range(4) for s in ("txt", "json", "jpg")]
    data = bytearray(tar(*members, form=dice.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))))
    for _ in range(count):
        at = dice.randrange(len(data))
        data[at] = dice.randrange(256)
        header = at // 512 * 512
        total = sum(data[header : header + 148]) + sum(data[header + 156 : header + 512]) + 256
        data[header + 148 : header + 156] = b"%06o\0 " % total  # the checksum is right again
    (tmp_path / "a.tar").write_bytes(data)
    found = list(read_webdataset(extent(tmp_path / "a.tar")))
    assert all(isinstance(i, Record | Fault) for i in found)
    assert [i.position for i in found] == sorted({i.position for i in found})
    piece_bounds(tmp_path / "a.tar", 100)
    holds_media(extent(tmp_path / "a.tar"))
