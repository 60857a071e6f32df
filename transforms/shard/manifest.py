"""The manifest of the shards and their dataset card."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.types import JsonObject
from transforms.core import schemas

FORMAT = {"name": "gradsift-shards", "version": 1}
COUNTS = ("text_tokens", "image_tokens", "video_tokens", "audio_tokens")
COLUMNS = ("band", "phase", "pool", "tier", "flops", "bytes", "score")  # of the plan, that `entry` reads

Entry = JsonObject


def entry(path: Path, digest: str, rows: pa.RecordBatch, tokens: Sequence[int]) -> Entry:
    """Returns what the manifest says of one shard: its file, the SHA-256, its `rows` of the plan, its `COUNTS`."""
    score = pc.min_max(rows["score"]).as_py()
    return {
        "file": path.name,
        "sha256": digest,
        "bytes": path.stat().st_size,
        "rows": rows.num_rows,
        "tokens": {name.removesuffix("_tokens"): n for name, n in zip(COUNTS, tokens, strict=True)},
        "flops": math.fsum(rows["flops"].to_pylist()),
        "decoded_bytes": pc.sum(rows["bytes"]).as_py(),
        "bands": _counts(rows["band"]),
        "phase": rows["phase"][0].as_py(),
        "pool": rows["pool"][0].as_py(),
        "tiers": _counts(rows["tier"]),
        "score": score,
    }


def read(path: Path) -> JsonObject:
    """Returns the manifest `path`; an empty one if it is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def listed(found: JsonObject) -> dict[str, str]:
    """Returns the SHA-256 of each file that a manifest lists."""
    return {str(e["file"]): str(e["sha256"]) for e in found.get("shards", ())}


def _counts(values: pa.Array) -> dict[str, int]:
    return dict(sorted((pair["values"], pair["counts"]) for pair in values.value_counts().to_pylist()))


def totals(entries: Sequence[Entry]) -> Entry:
    """Returns the sums over the shards."""
    sums = {key: sum(e[key] for e in entries) for key in ("rows", "bytes", "decoded_bytes")}
    tokens = {name: sum(e["tokens"][name] for e in entries) for name in entries[0]["tokens"]}
    return {"shards": len(entries), **sums, "tokens": tokens, "flops": math.fsum(e["flops"] for e in entries)}


def manifest(entries: Sequence[Entry], *, order: str, fingerprint: str) -> JsonObject:
    """Returns the whole manifest: shards in the order in which they are trained on."""
    return {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "order": order,
        "columns": schemas.SHARDS.names,
        "totals": totals(entries),
        "shards": list(entries),
    }


_CARD = """\
---
configs:
- config_name: default
  data_files:
  - split: train
    path: shard-*.parquet
---

# A gradsift dataset

{rows:,} training rows in {shards:,} shards, {bytes:,} bytes of Parquet, in the order in which they are meant to be
read: shard after shard, row after row.

```python
from datasets import load_dataset

rows = load_dataset("data/shards", split="train")  # this folder; pictures and sound are decoded on access
```

## How it was made

Of {samples:,} samples, {planned:,} were selected; not selected: {not_planned}. The order is `{order}` by `score`,
the weighted mean of the static score and the gradient score `lqs`; costly rows are in smaller shards.

| | |
|---|---|
{facts}

`manifest.json` lists every shard: its SHA-256, rows, tokens by modality, training FLOPs, difficulty bands, pool
and tier. `clean_text` of the pipeline is the column `text` here; `meta` holds every column of the source that
nothing else maps.
"""


def card(found: JsonObject, stats: JsonObject) -> str:
    """Returns the README of the shards: totals of the manifest `found`, and the plan's `stats`."""
    total = found["totals"]
    facts = {
        **{f"tokens: {name}": f"{n:,}" for name, n in total["tokens"].items()},
        "training FLOPs": f"{total['flops']:.3e}",
        "decoded bytes": f"{total['decoded_bytes']:,}",
        **{f"rows in band {name}": f"{n:,}" for name, n in stats["bands"].items()},
        **{f"rows in tier {name}": f"{n:,}" for name, n in stats["tiers"].items()},
        **{f"shards in pool {name}": f"{pool['shards']:,}" for name, pool in stats["pools"].items()},
    }
    lost = ", ".join(f"{n:,} by {name}" for name, n in stats["not_planned"].items() if n)
    return _CARD.format(
        **{k: total[k] for k in ("rows", "shards", "bytes")},
        **{k: stats[k] for k in ("samples", "planned", "order")},
        not_planned=lost or "none",
        facts="\n".join(f"| {name} | {value} |" for name, value in facts.items()),
    )
