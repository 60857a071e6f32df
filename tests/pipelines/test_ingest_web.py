"""The stage over pages, web archives and WebDataset tars: rows, rejects and meta as a user finds them."""

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from support.clips import lavfi, make
from support.ingesting import ask, contents, lines, metrics, project

from pipelines import ingest
from transforms.ingest import units

TEXT = "Rivers carry sand and silt from the hills to the sea, and the people there live by them. "
PAGE = f"<html><head><title>On rivers</title></head><body><article><p>{TEXT * 3}</p></article></body></html>"
HANGS = "<html><body>" + "<div>" * 200_000 + TEXT


def answer(number: int, body: str) -> bytes:
    block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}".encode()
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\nWARC-Target-URI: http://x/{number}\r\n"
    )
    return f"{head}Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n"


def tar(**members: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name.replace("_", "."))
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_pages_wherever_they_are(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.html").write_text(PAGE)
    (tmp_path / "raw/b.htm.gz").write_bytes(gzip.compress(PAGE.replace("Rivers", "Streams").encode()))
    (tmp_path / "raw/c.html").write_text("<html><body></body></html>")
    (tmp_path / "raw/d.warc.gz").write_bytes(b"".join(gzip.compress(answer(k, PAGE)) for k in range(2))[:-20])
    lines(tmp_path / "rows.jsonl", [{"raw": PAGE, "id": 1}, {"raw": HANGS, "id": 2}, {"raw": "", "id": 3}])
    pq.write_table(pa.table({"raw": [PAGE.encode(), None]}), tmp_path / "rows.parquet")
    column = {"markup": "html", "columns": {"text": "raw"}, "html": {"extractor": "resiliparse", "timeout_s": 0.5}}
    sources = [{"name": "web", "paths": ["raw"]}, {"name": "rows", "paths": ["rows.jsonl", "rows.parquet"], **column}]
    ingest.run(project(tmp_path, sources))
    third = len(json.dumps({"raw": PAGE, "id": 1}) + json.dumps({"raw": HANGS, "id": 2})) + 2
    found = ask(tmp_path, "samples", "uri, position, text, meta::JSON ->> 'title', meta::JSON ->> 'url'")
    assert sorted(found, key=str) == sorted([
        ("raw/a.html", 0, (TEXT * 3).strip(), "On rivers", None),
        ("raw/b.htm.gz", 0, (TEXT * 3).strip().replace("Rivers", "Streams"), "On rivers", None),
        ("raw/d.warc.gz", 0, (TEXT * 3).strip(), "On rivers", "http://x/0"),
        ("rows.jsonl", 0, (TEXT * 3).strip(), "On rivers", None),
        ("rows.jsonl", third, "", None, None),
        ("rows.parquet", 0, (TEXT * 3).strip(), "On rivers", None),
        ("rows.parquet", 1, None, None, None),
    ], key=str)  # fmt: skip
    assert sorted(ask(tmp_path, "rejects", "uri, reason")) == [
        ("raw/c.html", "no_text"), ("raw/d.warc.gz", "broken_archive"), ("rows.jsonl", "html_timeout"),
    ]  # fmt: skip


def picture() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (20, 10), (200, 30, 60)).save(out, "png")
    return out.getvalue()


def test_media_of_a_tar_are_decoded(tmp_path: Path) -> None:
    sound = make(tmp_path / "a.flac", *lavfi("sine=duration=1:sample_rate=16000")).read_bytes()
    video = make(tmp_path / "a.mp4", *lavfi("testsrc=duration=1:size=64x48:rate=5"), "-c:v", "mpeg4").read_bytes()
    members = {"0_png": picture(), "0_txt": b"red", "0_json": b'{"id": "x", "key": 5}', "0_cls": b"7",
               "1_flac": sound, "2_mp4": video, "2_txt": b"test", "3_txt": b"words", "4_png": b"rubbish"}  # fmt: skip
    (tmp_path / "shard.tar").write_bytes(tar(**members))
    (tmp_path / "shard.tar.gz").write_bytes(gzip.compress(tar(**{"9_txt": b"packed"})))
    ingest.run(project(tmp_path, [{"name": "wds", "paths": ["shard.tar*"]}]))
    wanted = "sample_id, modality, text, label, width, len(images), audio IS NOT NULL, meta::JSON ->> '__key__'"
    found = sorted(ask(tmp_path, "samples", wanted), key=lambda row: row[-1])
    assert found[0] == ("wds/x", "image", "red", "7", 20, 1, False, "0")
    assert [row[1:] for row in found[1:]] == [
        ("audio", None, None, None, None, True, "1"), ("video", "test", None, 64, 1, False, "2"),
        ("text", "words", None, None, None, False, "3"), ("text", "packed", None, None, None, False, "9"),
    ]  # fmt: skip
    [(reason, position)] = ask(tmp_path, "rejects", "reason, position")
    assert (reason, position % 512) == ("unsupported_format", 0)


def test_pieces_resume_and_hold_what_the_whole_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(root: Path) -> Any:
        (root / "raw").mkdir(parents=True)
        (root / "raw/a.warc").write_bytes(b"".join(answer(k, PAGE.replace("hills", f"hills {k}")) for k in range(20)))
        (root / "raw/b.tar").write_bytes(tar(**{f"{k}_txt": b"words %d" % k for k in range(20)}))
        return project(root, [{"name": "web", "paths": ["raw"], "html": {"extractor": "resiliparse"}}])

    ingest.run(write(tmp_path / "whole"))
    monkeypatch.setattr(units, "PIECE_BYTES", 6000)
    pieces = write(tmp_path / "pieces")
    ingest.run(pieces)
    wanted = "sample_id, position, text, meta"
    assert metrics(tmp_path / "whole")["rows"] == 40
    assert len(list((tmp_path / "pieces/data/rejects").glob("part-*"))) > 3
    assert sorted(ask(tmp_path / "pieces", "samples", wanted)) == sorted(ask(tmp_path / "whole", "samples", wanted))
    before = contents(tmp_path / "pieces")
    lost = sorted((tmp_path / "pieces/data/samples").glob("part-*"))[1]
    lost.unlink()
    ingest.run(pieces)
    assert contents(tmp_path / "pieces") == before
