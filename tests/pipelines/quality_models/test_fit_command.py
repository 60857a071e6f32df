"""`gradsift quality fit` on real prose and the real MiniLM: the head, its card, its use by the stage, its refusals."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support import builders, command, prose

from pipelines import quality
from pipelines.core.project import Project
from pipelines.quality_models import unfreeze as quality_unfreeze
from scoring.models import encoders

EACH = 20  # rows of a class
PARAMS = {"window_tokens": 24, "stride_tokens": 24, "max_windows": 1, "folds": 3}


def shuffled(text: str) -> str:
    """The words of a text in the order of their endings, as nobody writes."""
    return " ".join(sorted(text.split(), key=lambda word: word[::-1]))


def write_labels(path: Path, start: int, each: int = EACH, good: str = "fine") -> str:
    """Writes texts and as many shuffled others, labelled; returns the name of the file."""
    texts = prose.paragraphs()[start : start + 2 * each]
    lines = [{"text": t, "label": good} for t in texts[:each]]
    lines += [{"text": shuffled(t), "label": "junk"} for t in texts[each:]]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path.name


def make(root: Path, **values: Any) -> Project:
    """A project of short windows, with labels to learn from and to test on."""
    found = builders.empty_project(root, quality={**PARAMS, **values})
    builders.save_params(found)
    write_labels(root / "labels.jsonl", 0)
    write_labels(root / "test.jsonl", 100)
    return found


def fit(root: Path, *arguments: str, out: str = "heads/mine") -> command.Outcome:
    return command.within(root, "quality", "fit", *arguments, "--out", out)


def card_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "card.json").read_text()))


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files, the date blotted out."""
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: re.sub(rb"\d{4}-\d\d-\d\d", b"DATE", content) for name, content in found.items()}


def refused(out: command.Outcome, words: str, *, code: int = 2) -> None:
    assert out.returncode == code, out.stderr
    assert re.search(words, out.stderr), out.stderr
    assert "remedy:" in out.stderr


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a head fitted on labels and tested on others; tests copy it."""
    root = tmp_path_factory.mktemp("fitted")
    make(root)
    out = fit(root, "labels.jsonl", "--good", "fine", "--test", "test.jsonl")
    assert out.returncode == 0, out.stderr
    return root


def test_help_shows_an_example() -> None:
    for arguments in (["--help"], ["fit", "--help"]):
        out = command.within(Path(), "quality", *arguments)
        assert "example: gradsift quality fit labels.jsonl --out heads/mine" in out.stdout


def test_the_head_is_written_with_its_card(fitted: Path) -> None:
    folder = fitted / "heads/mine"
    assert {p.name for p in folder.iterdir()} == {"head.safetensors", "card.json", "README.md"}
    card = card_of(folder)
    assert (card["kind"], card["labels"], card["good_labels"]) == ("labels", "labels.jsonl", ["fine"])
    assert (card["learned"], card["test"]["rows"]) == ({"good": EACH, "bad": EACH}, {"good": EACH, "bad": EACH})
    assert set(card["ways"]) == set(card["test"]["ways"]) == {"length", "rules", "model", "both"}
    assert card["test"]["heldout"]["auc"] > 0.6
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", card["date"])
    assert str(fitted) not in (folder / "card.json").read_text()


def test_the_model_card_tells_data_figures_and_use(fitted: Path) -> None:
    text = (fitted / "heads/mine/README.md").read_text()
    for words in (
        "quality: {head: heads/mine}", "`labels.jsonl`, digest", "Cross-validation, 3 folds", "Test: test.jsonl",
        "length only", "both: this head", "calibration error", "mean P(good)", "AUC by language", "| en |",
    ):  # fmt: skip
        assert words in text, text


def test_a_second_run_writes_the_same_bytes(fitted: Path, tmp_path: Path) -> None:
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    assert fit(tmp_path, "labels.jsonl", "--good", "fine", "--test", "test.jsonl").returncode == 0
    assert contents(tmp_path / "heads/mine") == contents(fitted / "heads/mine")


def test_the_stage_scores_with_the_head(fitted: Path, tmp_path: Path) -> None:
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    found = make(tmp_path, head="heads/mine")
    texts = [t for k in range(200, 212) for t in (prose.paragraphs()[k], shuffled(prose.paragraphs()[k]))]
    prose.write_corpus(found, texts, part_rows=40)
    quality.run(found)
    rows = duckdb.sql(f"SELECT quality FROM '{tmp_path}/data/quality/part-*.parquet' ORDER BY sample_id").fetchall()
    assert sum(q for (q,) in rows[::2]) > sum(q for (q,) in rows[1::2]) + 1
    told = json.loads((tmp_path / "metrics/quality.json").read_text())["head"]
    assert (told["kind"], told["labels"]) == ("labels", "labels.jsonl")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["labels.jsonl", "--good", "splendid"], "all labels belong to one class: 0 good, 40 other"),
        (["few.jsonl", "--good", "fine"], "too few labelled rows: 5 good, 5 other"),
        (["labels.jsonl", "--label", "verdict"], "LABELS labels.jsonl(.|\n)*--label"),
        (["labels.jsonl", "--text", "body"], "'body'(.|\n)*--text"),
        (["labels.jsonl", "--annotator", "judge"], "'judge'(.|\n)*--annotator"),
        (["labels.jsonl", "--format", "xml"], "xml"),
        (["missing.jsonl"], "matches no files"),
        (
            ["labels.jsonl", "--good", "fine", "--test", "both.jsonl"],
            "20 test texts are also in the training data, such as '",
        ),
        (["labels.jsonl", "--unfreeze", "1"], "--unfreeze needs --test"),
        ([], "either LABELS or --teacher is required"),
        (["labels.jsonl", "--teacher", "tiny"], "LABELS and --teacher are mutually exclusive"),
        (["labels.jsonl", "--threshold", "0.5"], "--threshold without --teacher"),
        (["--teacher", "tiny", "--rows", "0"], "--rows is 0"),
        (["--teacher", "tiny", "--min-spearman", "2"], "--min-spearman is 2"),
    ],
)
def test_what_cannot_be_used_is_refused(fitted: Path, tmp_path: Path, arguments: Sequence[str], words: str) -> None:
    make(tmp_path)
    write_labels(tmp_path / "few.jsonl", 0, each=5)
    texts = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    mixed = [{**r, "text": r["text"].upper() + " "} for r in texts[:EACH]]
    mixed += [json.loads(line) for line in (tmp_path / "test.jsonl").read_text().splitlines()]
    (tmp_path / "both.jsonl").write_text("\n".join(map(json.dumps, mixed)), encoding="utf-8")
    refused(fit(tmp_path, *arguments), words)
    assert not (tmp_path / "heads").exists()


@pytest.mark.parametrize("name", ["notes.txt", "README.md", "encoder/weights.bin", "head.safetensors"])
def test_foreign_files_are_never_overwritten(tmp_path: Path, name: str) -> None:
    make(tmp_path)
    path = tmp_path / "heads/mine" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    refused(fit(tmp_path, "labels.jsonl", "--good", "fine"), f"1 files that do not belong to an earlier head: {name}")
    assert path.read_text() == "mine"


def test_a_foreign_file_beside_a_head_is_one_too(fitted: Path, tmp_path: Path) -> None:
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    (tmp_path / "heads/mine/notes.txt").write_text("mine")
    refused(fit(tmp_path, "labels.jsonl", "--good", "fine"), "do not belong to an earlier head: notes.txt")
    refused(fit(tmp_path, "labels.jsonl", "--good", "fine", out="labels.jsonl"), "--out is not a folder")


def test_a_poor_head_and_judges_at_odds_are_refused(tmp_path: Path) -> None:
    make(tmp_path, min_heldout_f1=1.0)
    texts = prose.paragraphs()[:44]
    lines = [{"text": t, "label": "fine" if k % 2 else "junk"} for k, t in enumerate(texts)]
    (tmp_path / "random.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    refused(
        fit(tmp_path, "random.jsonl", "--good", "fine"),
        r"held-out F1 0\.\d+ is below quality.min_heldout_f1 1\n.*44 unseen rows",
        code=1,
    )
    make(tmp_path, min_heldout_f1=0.0)
    again = [{**r, "label": "junk" if k % 3 else "fine"} for k, r in enumerate(lines)]
    (tmp_path / "odds.jsonl").write_text("\n".join(map(json.dumps, [*lines, *lines, *again])), encoding="utf-8")
    refused(fit(tmp_path, "odds.jsonl", "--good", "fine"), "Krippendorff's alpha is", code=1)
    assert not (tmp_path / "heads").exists()


@pytest.mark.parametrize("layers", ["0", "7"])
def test_layers_that_the_model_lacks_are_refused(tmp_path: Path, layers: str) -> None:
    make(tmp_path)
    arguments = ["labels.jsonl", "--good", "fine", "--test", "test.jsonl", "--unfreeze", layers]
    refused(fit(tmp_path, *arguments), f"--unfreeze is {layers}, but the model has 6 transformer layers")
    assert not (tmp_path / "heads").exists()


def test_the_last_layers_are_trained_and_saved_in_float32_whatever_scores(tmp_path: Path) -> None:
    make(tmp_path, dtype="bfloat16")
    arguments = ["labels.jsonl", "--good", "fine", "--test", "test.jsonl", "--unfreeze", "1"]
    out = fit(tmp_path, *arguments)
    assert out.returncode == 0, out.stderr
    assert "epoch 3 of 3, loss" in out.stderr
    folder = tmp_path / "heads/mine"
    first, card = contents(folder), card_of(folder)
    assert {"encoder/model.safetensors", "encoder/config.json", "encoder/tokenizer.json"} <= set(first)
    assert sorted(first) == card["files"]
    assert not [n for n in first if n.endswith((".bin", ".pt", ".pkl"))]
    assert (card["model"], card["encoder"]["base"]) == ("heads/mine/encoder", prose.MINILM)
    assert card["heldout"] == card["test"]["heldout"] != card["seen"]["heldout"]
    assert b"{model: heads/mine/encoder, head: heads/mine}" in first["README.md"]
    assert b"the last 1 of 6 layers" in first["README.md"]
    assert not [n for n, content in first.items() if str(tmp_path).encode() in content]
    changed_layers(folder / "encoder")
    assert fit(tmp_path, *arguments).returncode == 0
    assert contents(folder) == first
    refused(fit(tmp_path, "labels.jsonl", "--model", "heads/mine/encoder"), "the model is inside the --out folder")
    found = make(tmp_path, model="heads/mine/encoder", head="heads/mine", dtype="bfloat16")
    prose.write_corpus(found, [prose.paragraphs()[200]], part_rows=1)
    quality.run(found)
    quality_unfreeze.publish(None, folder)  # as a head without trained layers does
    assert not (folder / "encoder").exists()


def changed_layers(encoder: Path) -> None:
    """Asserts that the last layer differs from MiniLM's, and nothing else does."""

    ours, theirs = (encoders.load_encoder(name).state_dict() for name in (str(encoder), prose.MINILM))
    assert (encoder / "model.safetensors").stat().st_size > 4 * sum(w.numel() for w in ours.values()) * 0.9
    changed = {n for n, w in theirs.items() if "pooler" not in n and not w.equal(ours[n])}
    assert changed
    assert all(n.startswith("encoder.layer.5.") for n in changed)


def corpus(root: Path, **values: Any) -> Project:
    """A project with clean and dedup of prose and shuffled prose, and a tiny classifier to teach."""
    found = make(root, **values)
    texts = prose.paragraphs()[:120]
    prose.write_corpus(found, [t if k % 2 else shuffled(t) for k, t in enumerate(texts)], part_rows=50)
    prose.classifier(root / "tiny", ["junk", "fine"])
    return found


def test_a_teacher_labels_the_corpus(tmp_path: Path) -> None:
    corpus(tmp_path)
    arguments = ["--teacher", "tiny", "--teacher-good", "fine", "--threshold", "3e-4", "--rows", "110"]
    arguments += ["--min-spearman", "-1"]
    out = fit(tmp_path, *arguments)
    assert out.returncode == 0, out.stderr
    first, card = contents(tmp_path / "heads/mine"), card_of(tmp_path / "heads/mine")
    teacher = card["teacher"]
    assert (card["kind"], card["labels"], teacher["model"], teacher["threshold"]) == ("teacher", None, "tiny", 3e-4)
    assert teacher["rows"]["learned"] + teacher["rows"]["held_out"] == 110
    assert teacher["unseen"] == teacher["rows"]["held_out"]
    assert -1 <= teacher["spearman"] <= 1
    assert f"Spearman {teacher['spearman']:.3f}".encode() in first["README.md"]


def test_a_regressor_needs_a_threshold_and_a_head_that_agrees(tmp_path: Path) -> None:
    corpus(tmp_path)
    prose.classifier(tmp_path / "scores", ["score"])
    arguments = ["--teacher", "scores", "--rows", "110", "--min-spearman", "-1"]
    refused(fit(tmp_path, *arguments), "a regression model(.|\n)*--threshold")
    out = fit(tmp_path, *arguments, "--threshold", "1e9")
    refused(out, "calls 0 of 110 rows good; 25 good and 25 other")
    median = re.search(r"quartiles of its scores: [^,]+, [^,]+, ([^,]+),", out.stderr)
    assert median
    out = fit(tmp_path, *arguments[:-1], "1", "--threshold", median[1])
    refused(out, r"Spearman -?0\.\d+ on \d+ unseen rows(.|\n)*nothing was written", code=1)
    assert not (tmp_path / "heads").exists()


def test_a_teacher_without_a_corpus_or_a_good_label_is_refused(tmp_path: Path) -> None:
    make(tmp_path)
    refused(fit(tmp_path, "--teacher", "tiny"), "no parts to read", code=1)
    corpus(tmp_path)
    refused(fit(tmp_path, "--teacher", "tiny", "--teacher-good", "grand"), "none of(.|\n)*grand(.|\n)*fine")


def test_the_sample_does_not_depend_on_parts(tmp_path: Path) -> None:
    from pipelines.quality_models import teacher as quality_teacher

    texts = prose.paragraphs()[:30]
    drawn = []
    for rows in (7, 30):
        found = builders.empty_project(tmp_path / str(rows))
        prose.write_corpus(found, texts, part_rows=rows)
        drawn.append([sample_id for sample_id, _, _ in quality_teacher.choose(found, 10, 3)])
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 10
