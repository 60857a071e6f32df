"""Projects that ingest: a small corpus of every kind, and how tests look at what came out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
from PIL import Image
from support.builders import empty_project

from pipelines.core.project import Project

Row = Mapping[str, Any]


def lines(path: Path, rows: Sequence[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))


def corpus(root: Path) -> list[dict[str, Any]]:
    """Writes a small corpus of every kind; returns the sources that read it."""
    lines(root / "raw/web.jsonl", [{"id": k, "text": f"text {k}", "extra": [k]} for k in range(40)] + ["rubbish"])
    lines(root / "raw/more.jsonl", [{"text": f"more {k}"} for k in range(7)])
    for k in range(5):
        picture = Image.new("RGB", (16 + k, 8), (40 * k, 0, 0))
        (root / "pics").mkdir(exist_ok=True)
        picture.save(root / f"pics/{k}.png")
    (root / "pics/broken.png").write_bytes(b"\x89PNG\r\n\x1a\nrubbish")
    (root / "pics/empty.png").write_bytes(b"")
    lines(root / "raw/captions.jsonl", [{"id": k, "text": f"red {k}", "image": f"../pics/{k}.png"} for k in range(6)])
    return [
        {"name": "web", "paths": ["raw/web.jsonl", "raw/more.jsonl"]},
        {"name": "captions", "paths": ["raw/captions.jsonl"]},
        {"name": "pics", "paths": ["pics"]},
    ]


def project(root: Path, sources: Sequence[dict[str, Any]], engine: str = "local", **keys: Any) -> Project:
    found = empty_project(root, ingest={"sources": list(sources), **keys})
    return replace(found, runtime=replace(found.runtime, engine=engine))


def contents(root: Path) -> dict[str, bytes]:
    """Returns every part and the metrics."""
    files = [*(root / "data").rglob("part-*.parquet"), *(root / "metrics").glob("*.json")]
    return {str(p.relative_to(root)): p.read_bytes() for p in files}


def ask(root: Path, folder: str, sql: str) -> list[Any]:
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT {sql} FROM '{root}/data/{folder}/part-*.parquet'").fetchall()


def metrics(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "metrics/ingest.json").read_text()))
