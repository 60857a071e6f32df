"""Bytes of files: lines in bounded memory, compressed files whole, in pieces and damaged."""

import gzip
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transforms.readers import base
from transforms.readers.base import BrokenError, chunks, excerpt, lines, stream

PACKERS = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor(write_checksum=True).compress}
TEXT = b"".join(b'{"n": %d, "t": "%s"}\n' % (k, b"lorem ipsum " * (k % 7)) for k in range(400))


def oracle(data: bytes, limit: int) -> list[tuple[int, bytes, bool]]:
    """Lines one after another, without regard for memory."""
    found, offset = [], 0
    for line in data.split(b"\n"):
        whole = len(line) <= limit
        found.append((offset, line if whole else line[: base.EXCERPT_BYTES], whole))
        offset += len(line) + 1
    return found


@given(
    pieces=st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"ab\r\n", b"x" * 40]), max_size=20),
    chunk=st.integers(1, 64),
    limit=st.integers(1, 30),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_do_not_depend_on_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: list[bytes], chunk: int, limit: int
) -> None:
    data = b"".join(pieces)
    if base.compression(data):
        return
    monkeypatch.setattr(base, "CHUNK_BYTES", chunk)
    (tmp_path / "f").write_bytes(data)
    found = [(line.offset, line.data, not line.reason) for line in lines(tmp_path / "f", limit)]
    assert found == oracle(data, limit)


def test_a_line_beyond_the_limit_tells_its_size(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\n" + b"b" * 5000 + b"\nc")
    found = list(lines(tmp_path / "f", 100))
    assert [(x.offset, x.reason) for x in found] == [(0, ""), (2, "too_large"), (5003, "")]
    assert len(found[1].data) == base.EXCERPT_BYTES
    assert found[1].error == "5000 bytes, more than max_row_bytes = 100"


@pytest.mark.parametrize("packing", PACKERS)
def test_packed_members_follow_one_another(tmp_path: Path, packing: str) -> None:
    pack = PACKERS[packing]
    (tmp_path / "f").write_bytes(pack(TEXT) + pack(b"") + pack(b"end"))
    assert b"".join(chunks(tmp_path / "f")) == TEXT + b"end"


@pytest.mark.parametrize("packing", PACKERS)
def test_a_packed_file_cut_anywhere_gives_what_is_whole_then_an_error(tmp_path: Path, packing: str) -> None:
    packed = PACKERS[packing](TEXT)
    for size in range(4, len(packed), 97):
        (tmp_path / "f").write_bytes(packed[:size])
        got = []
        with pytest.raises(BrokenError):
            got.extend(chunks(tmp_path / "f"))
        found = list(lines(tmp_path / "f", 1000))
        assert [x.reason for x in found[:-1]] == [""] * (len(found) - 1)
        assert found[-1].reason == "broken_archive"
        whole = b"".join(x.data + b"\n" for x in found[:-1])
        assert TEXT.startswith(whole)
        assert found[-1].offset == len(whole)
    assert len(whole) > len(TEXT) / 2 or packing == "zstd"  # one zstd block holds it all


@pytest.mark.parametrize("packing", PACKERS)
def test_a_flipped_byte_is_noticed(tmp_path: Path, packing: str) -> None:
    packed = bytearray(PACKERS[packing](TEXT))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "f").write_bytes(packed)
    assert list(lines(tmp_path / "f", 1000))[-1].reason == "broken_archive"


def test_gzip_padding_is_no_damage_and_rubbish_is(tmp_path: Path) -> None:
    (tmp_path / "padded").write_bytes(gzip.compress(b"a\n") + b"\0" * 512)
    assert [x.reason for x in lines(tmp_path / "padded", 10)] == ["", ""]
    (tmp_path / "rubbish").write_bytes(gzip.compress(b"a\n") + b"rubbish")
    assert [(x.data, x.reason) for x in lines(tmp_path / "rubbish", 10)] == [(b"a", ""), (b"", "broken_archive")]


def test_a_zstd_file_may_begin_with_a_skippable_frame(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    (tmp_path / "f").write_bytes(skippable + PACKERS["zstd"](TEXT))
    assert b"".join(chunks(tmp_path / "f")) == TEXT


def test_excerpt_is_short_text() -> None:
    assert excerpt(b"a\0\xff" + b"z" * 5000) == "a\ufffd" + "z" * (base.EXCERPT_BYTES - 3)


@pytest.mark.parametrize("name", ["plain", *PACKERS])
def test_a_file_is_read_as_a_stream(tmp_path: Path, name: str) -> None:
    (tmp_path / "f").write_bytes(PACKERS[name](TEXT) if name in PACKERS else TEXT)
    with stream(tmp_path / "f") as file:
        first = file.readline()
        assert file.tell() == len(first)
        assert first + file.read(1000) == TEXT[: len(first) + 1000]
        assert file.tell() == len(first) + 1000
        assert file.read() == TEXT[len(first) + 1000 :]
        assert file.read(1) == b""
    if name in PACKERS:
        (tmp_path / "f").write_bytes(PACKERS[name](TEXT)[:-5])
        with stream(tmp_path / "f") as file, pytest.raises(BrokenError):
            file.read()
    else:
        with stream(tmp_path / "f", 7) as file:
            assert file.read(5) == TEXT[7:12]
