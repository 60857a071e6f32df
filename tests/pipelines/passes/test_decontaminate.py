"""The index on disk: built once, and anew when anything that it hangs on changes."""

import json
from pathlib import Path

import pyarrow as pa
from support.builders import empty_project

from pipelines.core.project import Project
from pipelines.passes import decontaminate
from transforms.core.arrow_files import recorded
from transforms.core.text_files import TextSource
from transforms.text.decontaminate.config import DecontaminateConfig
from transforms.text.decontaminate.index_file import load_index


def same(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    return texts


def config(ngram: int = 5, *, benchmarks: int = 1) -> DecontaminateConfig:
    found = (TextSource(name="sky", paths=("b.jsonl",)),) * benchmarks
    return DecontaminateConfig(benchmarks=found, ngram=ngram, min_words=2, max_overlap=0.5, max_item_ratio=0.05)


def write(project: Project, *texts: str) -> None:
    (project.root / "b.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))


def test_it_is_built_anew_only_when_something_changes(tmp_path: Path) -> None:
    project = empty_project(tmp_path)
    write(project, "why is the sky so blue", "no")
    first = decontaminate.prepare(project, config(), same, "NFC")
    assert first.path is not None
    assert first.counts == {"sky": {"items": 1, "skipped": 1, "template_ngrams": 0}}
    assert load_index(first.path).items.to_pylist() == ["sky:0"]
    written = first.path.stat().st_mtime_ns
    assert decontaminate.prepare(project, config(), same, "NFC") == first
    assert first.path.stat().st_mtime_ns == written
    digests, built = [first.digest], [recorded(first.path)["fingerprint"]]
    for ngram, how, text in ((6, "NFC", "blue"), (6, "NFKC", "blue"), (6, "NFKC", "grey")):
        write(project, f"why is the sky so {text}", "no")
        digests.append(decontaminate.prepare(project, config(ngram), same, how).digest)
        built.append(recorded(first.path)["fingerprint"])
    assert len(set(built)) == 4
    assert len(set(digests)) == 3  # that of the values: the other normal form makes the same index
    assert digests[1] == digests[2]
    first.path.write_bytes(b"half of it")
    assert decontaminate.prepare(project, config(6), same, "NFKC").counts["sky"]["items"] == 1


def test_without_benchmarks_there_is_none(tmp_path: Path) -> None:
    project = empty_project(tmp_path)
    write(project, "why is the sky so blue")
    built = decontaminate.prepare(project, config(), same, "NFC")
    assert built.path is not None
    assert decontaminate.prepare(project, config(benchmarks=0), same, "NFC") == (None, "", {})
    assert not built.path.exists()
