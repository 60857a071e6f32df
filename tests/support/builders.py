"""Small projects on disk, built by hand: every folder complete, every fate of a row in it once or more."""

import copy
import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.places import SHIPPED

from pipelines.core import params
from pipelines.core.options import RuntimeConfig
from pipelines.core.project import Project
from scoring.static.dimensions import DIMENSIONS
from transforms.core import parts, schemas
from transforms.quality.labels import write_labels

RUNTIME = RuntimeConfig(engine="local", workers=2, threads=1, beam_args=())

Row = Mapping[str, Any]


def empty_project(root: Path, **sections: Mapping[str, Any]) -> Project:
    """Returns a project in `root` with the repository's params; keyword sections replace single keys of theirs."""
    tree = dict(copy.deepcopy(_shipped()))
    for name, values in sections.items():
        tree[name] = {**tree[name], **values}
    root.mkdir(parents=True, exist_ok=True)
    return Project(root, params.Params(root / "params.yaml", tree), RUNTIME)


@cache
def _shipped() -> Mapping[str, Any]:
    return params.read(SHIPPED).tree


def batch(schema: pa.Schema, rows: Sequence[Row]) -> pa.RecordBatch:
    """Returns `rows` as a batch of `schema`; what a row does not name is null.

    Raises:
      KeyError: a row names a column that the schema lacks.
    """
    unknown = {name for row in rows for name in row} - set(schema.names)
    if unknown:
        raise KeyError(f"columns not in the schema: {sorted(unknown)}")
    return pa.record_batch([pa.array([r.get(f.name) for r in rows], f.type) for f in schema], schema=schema)


def write_rows(project: Project, folder: str, part: str, rows: Sequence[Row]) -> None:
    """Writes `rows` as part `part` of `folder`."""
    schema = schemas.PARTS[folder]
    parts.write_part(project.folder(folder), parts.Part(part, "hand-made", batch(schema, rows)), schema)


def sample(number: int, **values: Any) -> dict[str, Any]:
    """Returns the row of a text sample `s<number>` of source `web`; `values` replace and add columns."""
    row = {
        "sample_id": f"s{number:02d}", "source": "web", "uri": "web.jsonl", "source_digest": "d1", "position": number,
        "segment": 0, "modality": "text", "text": f"Sample {number} tells of rivers, hills and the people there.",
        "repaired_chars": 0, "meta": "{}",
    }  # fmt: skip
    return {**row, **values}


PICTURE = {"bytes": b"\xff\xd8picture", "path": "a.jpg"}
KEPT = {"kept": True, "reasons": []}
PARTS = ("part-aa-0000.parquet", "part-aa-0001.parquet", "part-bb-0000.parquet", "part-cc-0000.parquet")

# One row a sample: its place, and its sidecars; a sidecar it does not name is null there, as for a dropped row.
SAMPLES: dict[str, list[dict[str, Any]]] = {
    PARTS[0]: [
        sample(0, text="Rivers <script>alert('x')</script> & hills.\x1b[31m"),
        sample(1, text="Too short."),  # dropped by clean, by two rules
        sample(2, text="Rivers and hills, as told in s00."),  # a duplicate of s00
        sample(3, text="asdf qwer zxcv " * 12),  # dropped by quality
    ],
    PARTS[1]: [sample(4), sample(5, text="A hair too short, " * 9), sample(6, text=None), sample(7, text="短い文")],
    PARTS[2]: [
        sample(8, source="media", uri="pics/a.jpg", position=0, modality="image", text=None, images=[PICTURE],
               width=640, height=480, codec="jpeg"),
        sample(9, source="media", uri="clips/b.mp4", position=0, modality="video", text=None, images=[PICTURE] * 2,
               image_times_s=[0.0, 1.0], duration_s=2.0, frames=50, has_audio=True),
        sample(10, source="media", uri="sounds/c.wav", position=0, modality="audio", text=None, duration_s=3.0),
    ],
    PARTS[3]: [],  # a file all of whose rows were rejected
}  # fmt: skip

REJECTS: dict[str, list[dict[str, Any]]] = {
    PARTS[0]: [
        {"source": "web", "uri": "web.jsonl", "source_digest": "d1", "position": 99, "stage": "ingest",
         "reason": "bad_json", "error": "unexpected end of data: line 1", "tail": "", "excerpt": '{"text": "<b>half',
         "partial": False},
    ],
    PARTS[2]: [
        {"source": "media", "uri": "clips/broken.mp4", "source_digest": "d9", "position": 0, "stage": "ingest",
         "reason": "broken_video", "error": "ffmpeg ended with 183", "tail": "moov atom not found", "excerpt": "",
         "partial": False},
        {"source": "media", "uri": "clips/b.mp4", "source_digest": "d8", "position": 0, "stage": "ingest",
         "reason": "broken_audio", "error": "sound stream 1 is damaged", "tail": "invalid frame", "excerpt": "",
         "partial": True},
    ],
    PARTS[3]: [
        {"source": "broken", "uri": "all_bad.jsonl", "source_digest": "d7", "position": k, "stage": "ingest",
         "reason": "not_an_object", "error": "got a list", "tail": "", "excerpt": "[1]", "partial": False}
        for k in range(2)
    ],
}  # fmt: skip

_CLEAN = {
    "chars": 400, "words": 80, "lines": 3, "nonsymbol_words": 80, "mean_word_length": 4.5, "hash_ratio": 0.0,
    "ellipsis_ratio": 0.0, "bullet_line_ratio": 0.0, "ellipsis_line_ratio": 0.0, "alpha_word_ratio": 0.98,
    "stop_words": 5, "dup_line_ratio": 0.0, "dup_paragraph_ratio": 0.0, "dup_line_char_ratio": 0.0,
    "dup_paragraph_char_ratio": 0.0, **{f"top_{n}_gram_char_ratio": 0.05 for n in (2, 3, 4)},
    **{f"dup_{n}_gram_char_ratio": 0.0 for n in range(5, 11)}, "rule_quality": 1.0, "language": "en",
    "language_score": 0.97,
}  # fmt: skip
SHORT, FEW_STOP_WORDS = "gopher_short_doc", "gopher_few_stop_words"

CLEAN: dict[str, dict[str, Any]] = {
    "s00": {**_CLEAN, **KEPT},
    "s01": {**_CLEAN, "words": 2, "nonsymbol_words": 2, "stop_words": 0, "kept": False,
            "reasons": [SHORT, FEW_STOP_WORDS], "rule_quality": 0.9},
    "s02": {**_CLEAN, **KEPT}, "s03": {**_CLEAN, **KEPT}, "s04": {**_CLEAN, **KEPT},
    "s05": {**_CLEAN, "words": 47, "nonsymbol_words": 47, "kept": False, "reasons": [SHORT], "rule_quality": 0.95},
    "s06": {"chars": 0, "words": 0, "lines": 0, "kept": False, "reasons": ["empty"]},
    "s07": {**_CLEAN, **KEPT, "stop_words": None, "language": "zh"},
    "s08": KEPT, "s09": KEPT, "s10": KEPT,
}  # fmt: skip

DEDUP: dict[str, dict[str, Any]] = {
    **{s: {"cluster": s, "survivor": True, **KEPT} for s in ("s00", "s03", "s04", "s07", "s08", "s09", "s10")},
    "s02": {"cluster": "s00", "survivor": False, "matched_id": "s00", "similarity": 1.0, "kept": False,
            "reasons": ["duplicate_exact"]},
}  # fmt: skip

QUALITY: dict[str, dict[str, Any]] = {
    s: {"quality": q, "quality_min": q - 0.02, "quality_max": q + 0.02, "windows": 1, "coverage": 1.0,
        "quality_label": "good", **KEPT}
    for s, q in (("s00", 0.91), ("s04", 0.75), ("s07", 0.66))
} | {
    "s03": {"quality": 0.12, "quality_min": 0.1, "quality_max": 0.2, "windows": 2, "coverage": 0.8,
            "quality_label": "bad", "kept": False, "reasons": ["low_quality"]},
    "s08": KEPT, "s09": KEPT, "s10": KEPT,
}  # fmt: skip

_LABEL = {"judgements": 2, "annotators": 2, "vote_entropy": 0.0, "cluster": 0, "cluster_entropy": 0.9, "outlier": 1.0,
          "neighbours": 0.8, "reasons": [], "priority": 0.2}  # fmt: skip
LABELS: list[dict[str, Any]] = [
    {**_LABEL, "text_id": "t0", "sample_id": "s00", "excerpt": "Rivers and hills.", "label": "good", "quality": 0.9},
    {**_LABEL, "text_id": "t1", "excerpt": "Win money now.", "label": None, "vote_entropy": 1.0, "priority": 1.2,
     "reasons": ["annotators disagree"]},
    {**_LABEL, "text_id": "t2", "excerpt": "Click here.", "label": "good", "quality": 0.1, "neighbours": 0.1,
     "priority": 1.7, "reasons": ["model and label disagree", "cluster outlier"]},
]  # fmt: skip

SURVIVORS = ("s00", "s04", "s07", "s08", "s09", "s10")
_COUNTS = {"s00": (90, 0, 0, 0), "s04": (80, 0, 0, 0), "s07": (12, 0, 0, 0), "s08": (0, 256, 0, 0),
           "s09": (0, 0, 256, 50), "s10": (0, 0, 0, 75)}  # fmt: skip

TOKENS: dict[str, dict[str, Any]] = {
    s: {"text_tokens": t, "image_tokens": i, "video_tokens": v, "audio_tokens": a, "tokens": t + i + v + a,
        "flops": 6e9 * (t + i + v + a), "bytes": 400, "complexity": (t + i + v + a) / 85}
    for s, (t, i, v, a) in _COUNTS.items()
}  # fmt: skip
STATIC_RAW: dict[str, dict[str, Any]] = {
    s: {d: 10.0 + k + n for k, d in enumerate(DIMENSIONS)} for n, s in enumerate(("s00", "s04", "s07"))
} | {s: {"length": 3.0} for s in ("s08", "s09", "s10")}
STATIC: dict[str, dict[str, Any]] = {
    s: {**{d: 0.1 + 0.05 * k for k, d in enumerate(DIMENSIONS)}, "static_score": 0.4 + 0.1 * n}
    for n, s in enumerate(("s00", "s04", "s07"))
} | {s: {"length": 0.5, "static_score": 0.5} for s in ("s08", "s09", "s10")}
GRADIENTS: dict[str, dict[str, Any]] = {
    s: {"gradient_tokens": 60, "loss": [5.0 + n, 4.0, 3.5], "grad_norm": [2.0, 1.5, 1.2],
        "target_cosine": [0.2, 0.3, 0.4], "costate_dot": [0.5, 0.6, None], "costate_cosine": [0.3, 0.35, None]}
    for n, s in enumerate(("s00", "s04", "s07"))
} | {s: {"gradient_note": "no text"} for s in ("s08", "s09", "s10")}  # fmt: skip
LQS: dict[str, dict[str, Any]] = {
    s: {"learnability": 1.2 + 0.3 * n, "gradient_quality": 0.6 - 0.1 * n, "lqs": 2.0 - n, "lqs_z": 1.0 - n,
        "score": 0.9 - 0.4 * n, "band": band, "high_value": n == 2}
    for n, (s, band) in enumerate((("s00", "challenge"), ("s04", "reinforcement"), ("s07", "base")))
} | {
    s: {"score": 0.05 * n, "band": "base", "score_note": "no gradient: static score alone"}
    for n, s in enumerate(("s08", "s09", "s10"))
}  # fmt: skip

# s10 is kept, but not selected.
PLANNED = (("s00", 0, 0), ("s04", 0, 1), ("s08", 0, 2), ("s07", 1, 0), ("s09", 1, 1))

SIDECARS: dict[str, dict[str, dict[str, Any]]] = {
    "clean": CLEAN, "dedup": DEDUP, "dedup/lines": {}, "quality": QUALITY, "tokens/raw": {}, "tokens": TOKENS,
    "gradients": GRADIENTS, "gradients/sketches": {}, "static/raw": STATIC_RAW, "static": STATIC, "lqs": LQS,
}  # fmt: skip


Layout = Mapping[str, Sequence[Row]]  # part → its rows


def layout(rows_per_part: int) -> Layout:
    """Returns the rows of `SAMPLES` in other parts: `rows_per_part` each, in reversed order of sources."""
    rows = [r for part in reversed(PARTS) for r in SAMPLES[part]]
    starts = range(0, len(rows), rows_per_part)
    return {f"part-dd-{k:04d}.parquet": rows[start : start + rows_per_part] for k, start in enumerate(starts)}


def complete_project(
    root: Path, *, until: str = "shards", parts_as: Layout = SAMPLES, **sections: Mapping[str, Any]
) -> Project:
    """Returns a project whose folders are written up to and with `until`: a folder of PARTS, `plan` or `shards`."""
    project = empty_project(root, **sections)
    order = [*schemas.PARTS, "plan", "shards"]
    for folder in order[: order.index(until) + 1]:
        if parts_as is SAMPLES:
            copy_folder(project, folder)
        else:
            write_folder(project, folder, parts_as)
    return project


def copy_folder(project: Project, folder: str) -> None:
    """Writes one folder of the complete project from what it held before: encoding it takes ten times as long."""
    project.folder(folder).mkdir(parents=True, exist_ok=True)
    for name, content in _contents(folder).items():
        (project.folder(folder) / name).write_bytes(content)


@cache
def _contents(folder: str) -> Mapping[str, bytes]:
    with tempfile.TemporaryDirectory() as root:
        project = empty_project(Path(root))
        write_folder(project, folder)
        return {p.name: p.read_bytes() for p in project.folder(folder).iterdir()}


def write_folder(project: Project, folder: str, parts_as: Layout = SAMPLES) -> None:
    """Writes one folder of the complete project."""
    if folder == "plan":
        write_plan(project, parts_as)
    elif folder == "shards":
        write_shards(project)
    elif folder == "rejects":
        for part, rows in REJECTS.items():
            write_rows(project, folder, part, rows)
    else:
        for part, rows in parts_as.items():
            write_rows(project, folder, part, [_own(folder, row) for row in rows])
        if folder == "quality":
            write_labels(project.data / schemas.LABELS_FILE, batch(schemas.LABELS, LABELS))


def _own(folder: str, row: Row) -> Row:
    if folder == "samples":
        return row
    return {"sample_id": row["sample_id"], **SIDECARS[folder].get(row["sample_id"], {})}


def _planned(parts_as: Layout = SAMPLES) -> list[dict[str, Any]]:
    places = {r["sample_id"]: (part, k) for part, rows in parts_as.items() for k, r in enumerate(rows)}
    rows = []
    for rank, (sample_id, shard, position) in enumerate(PLANNED):
        part, row = places[sample_id]
        place = {"rank": rank, "sample_id": sample_id, "part": part, "row": row, "shard": shard, "position": position,
                 "phase": 0, "pool": "shared", "tier": "hot" if rank == 0 else "cold"}  # fmt: skip
        cost = {k: TOKENS[sample_id][k] for k in ("tokens", "flops", "bytes")}
        rows.append({**place, **cost, "band": LQS[sample_id]["band"], "score": LQS[sample_id]["score"]})
    return rows


def write_plan(project: Project, parts_as: Layout = SAMPLES) -> None:
    """Writes `data/plan/plan.parquet` for the rows of `PLANNED`."""
    project.folder("plan").mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_batches([batch(schemas.PLAN, _planned(parts_as))])
    pq.write_table(table, project.folder("plan") / "plan.parquet")


def write_shards(project: Project) -> None:
    """Writes the shards of `PLANNED`, and a manifest that only stands for their being whole."""
    project.folder("shards").mkdir(parents=True, exist_ok=True)
    for shard in sorted({s for _, s, _ in PLANNED}):
        rows = [_shard_row(r["sample_id"]) for r in _planned() if r["shard"] == shard]
        table = pa.Table.from_batches([batch(schemas.SHARDS, rows)])
        pq.write_table(table, project.folder("shards") / f"shard-{shard:05d}.parquet")
    (project.folder("shards") / "manifest.json").write_text("{}", encoding="utf-8")


def _shard_row(sample_id: str) -> Row:
    merged = next(r for rows in SAMPLES.values() for r in rows if r["sample_id"] == sample_id)
    for sidecar in (CLEAN, QUALITY, TOKENS, STATIC, LQS):
        merged = merged | sidecar.get(sample_id, {})
    return {k: v for k, v in merged.items() if k in schemas.SHARDS.names}


def save_params(project: Project) -> Path:
    """Writes the params of `project` to its params file, for what opens a project by path; returns the path."""
    import yaml

    path = project.root / "params.yaml"
    path.write_text(yaml.safe_dump(dict(project.params.tree)), encoding="utf-8")
    return path


def write_reference_metrics(project: Project) -> None:
    """Writes the loss curve of a reference model."""
    path = project.metrics("reference")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"rows": 3, "loss": [[50, 6.1], [100, 5.2], [150, 4.9]]}), encoding="utf-8")
