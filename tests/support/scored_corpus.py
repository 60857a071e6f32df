"""Small corpora of any part size for the tests of the static score and the LQS."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from support import builders

from pipelines.core.project import Project
from transforms.decode.audio import wav

SENTENCES = (
    "The river rises in the hills near Hexham and runs for 118 kilometres to the sea.",
    "In spring its water covers the meadows; farmers move their cattle to higher ground.",
    "Who built the first bridge? Nobody knows.",
    "A chronicle of 1311 mentions a toll of two pence, paid by Thomas Grey for a cart of wool.",
    "Later the river carried coal, and the bridge was rebuilt in stone by Archibald Reed.",
    "However, the flood of 1771 destroyed every bridge but one!",
    "Today the river is clean, and salmon have returned to its upper reaches.",
    "Click here to subscribe to our newsletter.",
    "asdf qwer zxcv uiop hjkl <b>#</b>",
)
CHINESE = "黄河发源于青海省，流经九个省区，最后注入渤海。两岸的人民世世代代在这里耕种。"
KEPT = {"kept": True, "reasons": []}
DROPPED = {"kept": False, "reasons": ["x"]}


def picture(seed: int, side: int = 40) -> dict[str, Any]:
    """Returns a stored JPEG: a gradient under `seed` grades of noise."""
    rows, columns = np.mgrid[0:side, 0:side]
    noise = np.random.default_rng(seed).integers(0, 1 + 5 * seed, (side, side, 3))
    pixels = np.clip(np.stack([4 * rows, 4 * columns, rows + columns], axis=2) + noise, 0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=92)
    return {"bytes": buffer.getvalue(), "path": f"{seed}.jpg"}


def sound(seed: int) -> dict[str, Any]:
    """Returns a stored WAV of two seconds."""
    loud = 300 * (1 + seed) * np.random.default_rng(seed).standard_normal(32_000)
    return {"bytes": wav(loud.astype(np.int16).tobytes(), 16_000), "path": f"{seed}.wav"}


def text(number: int) -> str:
    """Returns a text of 2 … 10 sentences that `number` chooses."""
    rng = np.random.default_rng(number)
    return " ".join(SENTENCES[k] for k in rng.integers(0, len(SENTENCES), rng.integers(2, 11)))


def row(number: int) -> dict[str, Any]:
    """Returns sample `number` and what each stage says of it: every modality, every fate in turn."""
    name, kind = f"s{number:03d}", number % 12
    found: dict[str, Any] = {
        "samples": builders.sample(number, sample_id=name, text=text(number)),
        "clean": {"clean_text": text(number), "language": "en", "dup_5_gram_char_ratio": number % 7 / 70, **KEPT},
        "dedup": KEPT, "quality": KEPT, "tokens": {"text_tokens": 20 + number}, "gradients": gradient(number),
    }  # fmt: skip
    if kind == 3:
        return {
            **found,
            "clean": {**found["clean"], **DROPPED},
            "dedup": {},
            "quality": {},
            "tokens": {},
            "gradients": {},
        }
    if kind == 4:
        return {**found, "quality": DROPPED, "gradients": {}}
    if kind == 5:
        found["clean"] |= {"clean_text": CHINESE * (1 + number % 3), "language": "zh"}
    if kind == 6:
        found["gradients"] = {"gradient_note": "infinite gradient"}
    if kind > 8:
        modality = ("image", "video", "audio")[kind - 9]
        media: dict[str, dict[str, Any]] = {
            "image": {"images": [picture(number)], "width": 640, "height": 480},
            "video": {"images": [picture(number + k) for k in range(3)], "duration_s": float(number)},
            "audio": {"audio": sound(number), "duration_s": 2.0 + number},
        }
        found["samples"] |= {"modality": modality, "text": None, **media[modality]}
        return {**found, "clean": KEPT, "gradients": {"gradient_note": "no text"}, "tokens": {"text_tokens": 0}}
    return found


def with_static(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Returns `row` as if the static stage had scored it."""
    return {**row, "static": {"static_score": 0.1 + number * 7 % 48 / 60} if row["quality"].get("kept") else {}}


def gradient(number: int) -> dict[str, Any]:
    """Returns what the gradients stage would say of sample `number` on three checkpoints."""
    rng = np.random.default_rng(1000 + number)
    dot, cosine = rng.normal(size=2), rng.uniform(-1, 1, 2)
    return {
        "gradient_tokens": 60, "gradient_mode": "exact", "order_gain": rng.normal(),
        "loss": rng.uniform(2, 7, 3).tolist(), "grad_norm": rng.lognormal(size=3).tolist(),
        "target_cosine": rng.uniform(-1, 1, 3).tolist(), "costate_dot": [*dot.tolist(), None],
        "costate_cosine": [*cosine.tolist(), None],
    }  # fmt: skip


NO_CANARIES = {"rows": 0, "chars": 1000, "labelled": None, "seed": 7}  # there is no reference to score them with
FOLDERS = ("samples", "clean", "dedup", "quality", "tokens", "gradients", "static")


def write(root: Path, rows: Sequence[Mapping[str, Any]], size: int, **sections: Mapping[str, Any]) -> Project:
    """Returns a project whose folders hold `rows` in parts of `size`, and an empty part at the end.

    What no row names is not written.
    """
    sections = {**sections, "lqs": {"canaries": NO_CANARIES, **sections.get("lqs", {})}}
    project = builders.empty_project(root, **sections)
    groups = [rows[k : k + size] for k in range(0, len(rows), size)]
    for number, group in enumerate([*groups, []]):
        for folder in FOLDERS:
            if rows and folder not in rows[0]:
                continue
            named = [{"sample_id": r["samples"]["sample_id"], **r[folder]} for r in group]
            builders.write_rows(project, folder, f"part-{number:016x}-0000.parquet", named)
    return project
