"""Scored corpora in small, for the tests of plan and shard: rows are dicts, folders are cut from them."""

import io
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines import plan, shard
from pipelines.core.options import RuntimeConfig
from pipelines.core.params import Params
from pipelines.core.project import Project
from transforms.core import parts, schemas

PLAN: dict[str, Any] = {
    "order": "mixed", "top_ratio": 1.0, "folding_layers": 3, "zigzag_layers": 5, "jitter_window": 0,
    "segment": {"low_ratio": 0.3, "high_ratio": 0.3},
    "stair": {"sections": 2, "transition_ratio": 0.225, "layers": 3},
    "saw": {"sections": 3, "transition_ratio": 0.075, "layers": 2},
    "mixed": {"base": 0.4, "reinforcement": 0.4, "challenge": 0.2, "draw": [1, 2, 1], "rest": "spread"},
    "shard_rows": 8, "complexity_threshold": 4.0, "hot_ratio": 0.2, "seed": 7,
}  # fmt: skip
ROW_GROUP_BYTES = 1500

Row = dict[str, Any]
_written: dict[tuple[str, str, str], bytes] = {}  # (folder, part, rows) → bytes: many tests write the same


def picture(number: int) -> bytes:
    """Returns a small PNG, another for each number."""
    from PIL import Image

    sink = io.BytesIO()
    Image.new("RGB", (4, 3), (number % 256, number // 256 % 256, 9)).save(sink, "PNG")
    return sink.getvalue()


def rows(count: int, *, seed: int = 0) -> list[Row]:
    """Returns `count` samples, every seventh with a picture, every eleventh dropped, every thirteenth unscored."""
    rng = random.Random(seed)
    return [
        {
            "sample_id": f"{rng.randrange(2**64):016x}",
            "text": f"{k} " + "words " * rng.randrange(1, 60),
            "picture": picture(k) if k % 7 == 0 else None,
            "dropped": ("clean", "dedup", "quality")[k % 3] if k % 11 == 0 else None,
            "score": None if k % 13 == 0 else round(rng.gauss(0, 1), 1),
            "complexity": 20.0 if rng.random() < 0.1 else 1.0,
        }
        for k in range(count)
    ]


def write(root: Path, found: Sequence[Row], *, part_rows: int = 10, params: Mapping[str, Any] | None = None) -> Project:
    """Writes `found` as parts of `part_rows` samples, and an empty part; returns the project."""
    project = make_project(root, **(params or {}))
    for number, start in enumerate(range(0, len(found), part_rows)):
        write_part(project, f"part-{number:016x}-0000.parquet", found[start : start + part_rows])
    write_part(project, "part-00000000000000ff-0000.parquet", [])
    return project


def make_project(root: Path, *, engine: str = "local", row_group_bytes: int = ROW_GROUP_BYTES, **keys: Any) -> Project:
    """Returns a project at `root` whose section `plan` has `keys` instead of the defaults."""
    tree = {"plan": {**PLAN, **keys}, "shard": {"row_group_bytes": row_group_bytes}}
    runtime = RuntimeConfig(engine=engine, workers=2, threads=1, beam_args=())
    return Project(root, Params(root / "params.yaml", tree), runtime)


def write_part(project: Project, name: str, found: Sequence[Row]) -> None:
    """Writes one part of every folder that plan and shard read."""
    for folder in _FOLDERS:
        key, path = (folder, name, repr(found)), project.folder(folder) / name
        if key not in _written:
            _write(folder, path, found)
            _written[key] = path.read_bytes()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_written[key])


def _write(folder: str, path: Path, found: Sequence[Row]) -> None:
    schema = schemas.PARTS[folder]
    made = [{"sample_id": r["sample_id"], **_FOLDERS[folder](r)} for r in found]
    unknown = {key for m in made for key in m} - set(schema.names)
    assert not unknown, unknown
    batch = pa.RecordBatch.from_pylist(made, schema=schema)
    parts.write_part(path.parent, parts.Part(path.name, "hand-made", batch), schema)


def _sample(row: Row) -> Row:
    images = [{"bytes": row["picture"], "path": None}] if row["picture"] else []
    return {
        "source": "web", "uri": "web.jsonl", "modality": "image" if images else "text", "text": f"raw {row['text']}",
        "images": images, "meta": "{}", "position": int(row["text"].split()[0]),
    }  # fmt: skip


def _verdict(stage: str, row: Row) -> Row:
    order = ("clean", "dedup", "quality", None)
    kept = order.index(stage) < order.index(row["dropped"])
    seen = order.index(stage) <= order.index(row["dropped"])
    return {"kept": kept if seen else None, "reasons": ([] if kept else ["bad"]) if seen else None}


def _tokens(row: Row) -> Row:
    if row["dropped"]:
        return {}
    text, image = len(row["text"].split()), 256 if row["picture"] else 0
    total = text + image
    size = len(row["text"]) + len(row["picture"] or b"")
    return {"text_tokens": text, "image_tokens": image, "video_tokens": 0, "audio_tokens": 0, "tokens": total,
            "flops": 0.1 * total, "bytes": size, "complexity": row["complexity"]}  # fmt: skip


def _band(score: float | None) -> str | None:
    return None if score is None else "base" if score < 0 else "reinforcement" if score < 1 else "challenge"


_FOLDERS = {
    "samples": _sample,
    "clean": lambda r: {**_verdict("clean", r), "clean_text": r.get("clean_text", r["text"]), "language": "en"},
    "dedup": lambda r: _verdict("dedup", r),
    "quality": lambda r: {**_verdict("quality", r), "quality": 0.75},
    "tokens": _tokens,
    "static": lambda r: {"static_score": 0.5},
    "lqs": lambda r: {"lqs": r["score"], "score": r["score"], "band": _band(r["score"])},
}


def kept(found: Sequence[Row]) -> list[Row]:
    """Returns the rows that no filter dropped."""
    return [r for r in found if not r["dropped"]]


def files(project: Project, *folders: str) -> dict[str, bytes]:
    """Returns the bytes of all files of `folders` and of the metrics, by name."""
    places = [*(project.folder(f) for f in folders or ("plan", "shards")), project.root / "metrics"]
    return {f"{p.name}/{f.name}": f.read_bytes() for p in places if p.exists() for f in sorted(p.iterdir())}


def run(project: Project) -> None:
    """Runs plan and shard."""
    plan.run(project)
    shard.run(project)
