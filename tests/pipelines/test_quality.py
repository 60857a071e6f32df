"""The stage `quality` on real prose and the real MiniLM: the head's life, its independence of parts, its faults."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from support import builders, prose

from pipelines import quality
from pipelines.core.project import Project
from pipelines.quality_models import weak_labels
from scoring.core import files
from scoring.core.errors import ConfigError, DataError
from scoring.quality import degrade

GOOD = 120
PARAMS = {"train_rows": 50, "window_tokens": 64, "stride_tokens": 64, "max_windows": 1}


def project(root: Path, **values: Any) -> Project:
    return builders.empty_project(root, quality={**PARAMS, **values})


def corpus() -> list[str | None]:
    """Prose, then as many degraded paragraphs of other prose as there are kinds, then a row without text."""
    texts = prose.paragraphs()
    bad = degrade.degrade_in_turn(texts[GOOD : GOOD + 10], range(10))
    return [*texts[:GOOD], *(text for _, text in bad), None]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus in parts of 40 rows, scored once; tests copy it."""
    root = tmp_path_factory.mktemp("scored")
    found = project(root)
    prose.write_corpus(found, corpus(), part_rows=40)
    quality.run(found)
    return root


def again(scored: Path, root: Path, **values: Any) -> Project:
    shutil.copytree(scored, root, dirs_exist_ok=True)
    return project(root, **values)


def rows(root: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    return list(duckdb.sql(f"SELECT {columns} FROM '{root}/data/quality/part-*.parquet' ORDER BY sample_id").fetchall())


def metrics(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "metrics/quality.json").read_text()))


def stamps(root: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in (root / "data/quality").rglob("*") if p.is_file()}


def test_the_head_separates_prose_from_degraded_prose(scored: Path) -> None:
    from sklearn.metrics import roc_auc_score

    scores = [q for (q,) in rows(scored, "quality")]
    assert scores[-1] is None
    assert roc_auc_score([1] * GOOD + [0] * 10, scores[:-1]) > 0.75
    assert rows(scored, "kept, reasons, quality_label")[-1] == (True, [], None)


def test_metrics_tell_of_the_verdicts_and_of_the_head(scored: Path) -> None:
    found = metrics(scored)
    dropped = sum(not kept for (kept,) in rows(scored, "kept"))
    assert (found["inputs"], found["dropped"]) == (GOOD + 11, dropped)
    assert found["by_reason"] == {"low_quality": dropped}
    head = found["head"]
    assert head["rows"]["unseen"] == head["rows"]["good"] + head["rows"]["bad"]
    assert head["rows"]["good"] <= 50
    assert head["heldout"]["f1"] >= 0.6
    assert set(head["detected"]) == {"kept", *dict(degrade.KINDS)}
    assert set(head["ways"]) == {"length", "rules", "model", "both"}
    assert head["ways"]["both"]["auc"] == head["heldout"]["auc"]
    assert str(scored) not in json.dumps(found)


def test_a_second_run_writes_nothing_and_a_forced_one_the_same_bytes(scored: Path, tmp_path: Path) -> None:
    found = again(scored, tmp_path)
    before = stamps(tmp_path)
    quality.run(found)
    assert stamps(tmp_path) == before
    quality.run(dataclasses.replace(found, force=True))
    for path in (scored / "data/quality").rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(scored)).read_bytes() == path.read_bytes()


def test_part_size_and_worker_processes_change_no_score(scored: Path, tmp_path: Path) -> None:
    found = project(tmp_path)
    prose.write_corpus(found, corpus(), part_rows=100)
    quality.run(dataclasses.replace(found, runtime=dataclasses.replace(found.runtime, engine="processes")))
    assert (tmp_path / "data/quality/head/head.safetensors").read_bytes() == (
        scored / "data/quality/head/head.safetensors"
    ).read_bytes()
    ours, theirs = ([q for (q,) in rows(root, "quality")][:-1] for root in (tmp_path, scored))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    ours, theirs = ([e for (e,) in rows(root, "embedding")][:-1] for root in (tmp_path, scored))
    np.testing.assert_allclose(ours, theirs, atol=1)


def test_a_few_new_rows_keep_the_head_and_many_refit_it(scored: Path, tmp_path: Path) -> None:
    found = again(scored, tmp_path)
    old = (tmp_path / "data/quality/head/head.safetensors").read_bytes()
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "data/quality").glob("part-*")}
    more = prose.paragraphs()[GOOD + 10 :]
    prose.write_part(found, "part-bb-0000.parquet", [builders.sample(100 + k, text=more[k]) for k in range(3)])
    quality.run(found)
    assert (tmp_path / "data/quality/head/head.safetensors").read_bytes() == old
    assert {p: p.stat().st_mtime_ns for p in before} == before
    prose.write_part(found, "part-cc-0000.parquet", [builders.sample(200 + k, text=more[k]) for k in range(3, 90)])
    quality.run(found)
    assert (tmp_path / "data/quality/head/head.safetensors").read_bytes() != old


def test_a_damaged_head_is_fitted_anew(scored: Path, tmp_path: Path) -> None:
    found = again(scored, tmp_path)
    path = tmp_path / "data/quality/head/head.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-8] + b"12345678")
    quality.run(found)
    assert path.read_bytes() == whole


def test_a_poor_head_fails_the_stage_and_names_its_f1(scored: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"held-out F1 0\.\d+ is below quality.min_heldout_f1"):
        quality.run(again(scored, tmp_path, min_heldout_f1=1.0))


@pytest.mark.parametrize("texts", [[None] * 3, [], ["Rain falls on the hills."] * 3])
def test_too_little_text_to_learn_from_keeps_all_and_says_why(tmp_path: Path, texts: list[str | None]) -> None:
    found = project(tmp_path)
    stale = tmp_path / "data/quality/head/card.json"
    files.write_json(stale, {})
    prose.write_corpus(found, texts, part_rows=2)
    quality.run(found)
    assert rows(tmp_path, "kept, quality") == [(True, None)] * len(texts)
    assert "fewer than 20" in metrics(tmp_path)["head"]["why"]
    assert not stale.exists()


def test_a_corpus_with_every_fate(tmp_path: Path) -> None:
    found = builders.complete_project(tmp_path, until="dedup")
    quality.run(found)
    verdicts = dict(rows(tmp_path, "sample_id, kept"))
    assert {k for k, v in verdicts.items() if v is None} == {"s01", "s02", "s05", "s06"}


def write_labels(path: Path, count: int = 40) -> None:
    good = prose.paragraphs()[200 : 200 + count]
    lines = [{"text": t, "label": 1} for t in good] + [{"text": t[::-1], "label": "junk"} for t in good]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def test_a_users_labels_are_learned_from(scored: Path, tmp_path: Path) -> None:
    write_labels(tmp_path / "labels.jsonl")
    found = project(tmp_path, labels={"name": "mine", "paths": ["labels.jsonl"]})
    seen = prose.paragraphs()[200]
    prose.write_corpus(found, [prose.paragraphs()[0], prose.paragraphs()[0][::-1], seen], part_rows=2)
    quality.run(found)
    assert rows(tmp_path, "quality_label") == [("good",), ("bad",), ("good",)]
    head = metrics(tmp_path)["head"]
    assert (head["kind"], head["labels"], head["detected"].keys()) == ("labels", "mine", {"label"})
    assert head["agreement"]["rows"] == 80
    assert head["agreement"]["alpha"] is None
    table = duckdb.sql(f"SELECT * FROM '{tmp_path}/data/quality/labels.parquet' WHERE sample_id IS NOT NULL").fetchall()
    assert [row[:2] for row in table] == [(table[0][0], "s0002")]
    quality.run(project(tmp_path))
    assert not (tmp_path / "data/quality/labels.parquet").exists()


def test_annotators_that_disagree_fail_the_stage(tmp_path: Path) -> None:
    write_labels(tmp_path / "labels.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    again = [{"text": r["text"], "label": 1 if n % 2 else "junk"} for n, r in enumerate(lines)]
    thirds = [{"text": r["text"], "label": r["label"]} for r in lines]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, [*lines, *again, *thirds])), encoding="utf-8")
    values = {"labels": {"name": "mine", "paths": ["labels.jsonl"]}}
    prose.write_corpus(project(tmp_path, **values), ["Rain."], part_rows=1)
    with pytest.raises(DataError, match=r"alpha is 0\.\d+, below 0.8"):
        quality.run(project(tmp_path, **values))
    quality.run(project(tmp_path, **values, min_alpha=0.1))
    assert metrics(tmp_path)["head"]["agreement"]["disputed"] == 40


def test_a_head_from_a_folder_scores_as_it_did(scored: Path, tmp_path: Path) -> None:
    shutil.copytree(scored / "data/quality/head", tmp_path / "mine")
    found = again(scored, tmp_path, head="mine")
    before = rows(tmp_path, "quality, kept")
    quality.run(found)
    assert rows(tmp_path, "quality, kept") == before
    assert not (tmp_path / "data/quality/head").exists()
    (tmp_path / "mine/head.safetensors").write_bytes(b"\x08" + bytes(7) + b"{}      ")
    with pytest.raises(ConfigError, match="cannot read the quality head"):
        quality.run(found)
    with pytest.raises(ConfigError, match="cannot read the quality head"):
        quality.run(project(tmp_path, head="nowhere"))


def test_labels_of_one_class_are_a_configuration_error(tmp_path: Path) -> None:
    write_labels(tmp_path / "labels.jsonl")
    found = project(tmp_path, labels={"name": "mine", "paths": ["labels.jsonl"]}, good_labels=["splendid"])
    prose.write_corpus(found, ["Rain."], part_rows=1)
    with pytest.raises(ConfigError, match="0 good, 80 other"):
        quality.run(found)


def test_a_classifier_replaces_the_fitted_head(scored: Path, tmp_path: Path) -> None:
    found = again(
        scored, tmp_path, head="model", model="tiny", good_labels=["fine"], window_tokens=60, stride_tokens=60
    )
    prose.classifier(tmp_path / "tiny", ["junk", "fine"])
    quality.run(found)
    assert not (tmp_path / "data/quality/head").exists()
    assert metrics(tmp_path)["head"] == {"kind": "model", "model": "tiny"}
    assert set(rows(tmp_path, "embedding")) == {(None,)}
    assert {label for (label,) in rows(tmp_path, "quality_label")} == {"junk", "fine", None}


def test_captions_are_learned_from_too(tmp_path: Path) -> None:
    found = project(tmp_path)
    prose.write_corpus(found, ["A cat on a mat."] * 30, part_rows=30, modality="image")
    assert len(weak_labels.choose(found, 50, 7)) == 30


def test_which_rows_are_learned_from(scored: Path) -> None:
    found = project(scored)
    chosen = weak_labels.choose(found, 50, 7)
    assert len({s.sample_id for s in chosen}) == len(chosen) <= 100
    assert 40 <= sum(s.kind == weak_labels.GOOD for s in chosen) <= 50
    assert f"s{GOOD + 10:04d}" not in {s.sample_id for s in chosen}
    assert set(weak_labels.choose(found, 20, 7)) < set(chosen)


def test_rows_that_rules_drop_are_learned_from_and_other_languages_are_not(tmp_path: Path) -> None:
    found = project(tmp_path)
    reasons = [["gopher_few_words"], ["language_not_allowed"], ["gopher_few_words", "language_not_allowed"], []] * 10
    samples = [builders.sample(k, text=f"Rain falls on hill {k}.") for k in range(40)]
    prose.write_part(found, "part-aa-0000.parquet", samples)
    rows_ = [{"sample_id": s["sample_id"], "clean_text": s["text"], "chars": 20, "kept": not r, "reasons": r}
             for s, r in zip(samples, reasons, strict=True)]  # fmt: skip
    builders.write_rows(found, "clean", "part-aa-0000.parquet", rows_)
    chosen = weak_labels.choose(found, 50, 7)
    assert sum(s.kind == weak_labels.DROPPED for s in chosen) == 10
    assert len(chosen) == 20
    kinds = {r.origin for r in weak_labels.rows(found, chosen, 7, 1000)}
    assert {"kept", "dropped"} <= kinds
