"""Benchmark files of every kind become items; a benchmark that is not read whole is an error."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoring.core.errors import ConfigError, DataError
from transforms.clean import benchmarks
from transforms.clean.benchmarks import USE, build_index
from transforms.core.text_files import TextSource
from transforms.readers.text_source import read_texts, sources_digest
from transforms.text.decontaminate import index_file
from transforms.text.decontaminate.config import DecontaminateConfig
from transforms.text.decontaminate.index_file import load_index, save_index
from transforms.text.decontaminate.overlap import Index, hits

QUESTION = "why is the sky above the hills so blue today"
ROWS = [
    {"q": QUESTION, "choices": ["dust", "air"], "answer": 1},
    {"q": "", "choices": [], "answer": None},
    {"q": "what do the people of the valley call the hill", "choices": {"text": ["Tor"], "label": ["A"]}, "answer": 0},
]


def same(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    return texts


def bench(*paths: str, columns: tuple[str, ...] = ("q", "choices", "answer"), **more: Any) -> TextSource:
    return TextSource(name=more.pop("name", "sky"), paths=paths or ("b.jsonl",), columns=columns, **more)


def config(*found: TextSource, **more: Any) -> DecontaminateConfig:
    return DecontaminateConfig(
        **{"benchmarks": found, "ngram": 5, "min_words": 4, "max_overlap": 0.5, "max_item_ratio": 0.05, **more}
    )


def write(root: Path, rows: list[Any] = ROWS, name: str = "b.jsonl") -> Path:
    path = root / name
    path.write_text("".join(json.dumps(r) + "\n" if not isinstance(r, str) else r for r in rows), encoding="utf-8")
    return path


def arrays(index: Index) -> list[list[Any]]:
    return [getattr(index, n).tolist() for n in index_file._ARRAYS]


def test_json_lines_are_joined_column_by_column(tmp_path: Path) -> None:
    write(tmp_path)
    first, blank, nested = read_texts(tmp_path, bench(), USE)
    assert first == f"{QUESTION}\ndust\nair\n1"
    assert blank == ""
    assert nested == "what do the people of the valley call the hill\nTor\nA\n0"


def test_every_format_is_read(tmp_path: Path) -> None:
    rows = [{"q": QUESTION, "answer": "air"}, {"q": "seven words stand in this short line", "answer": "yes"}]
    write(tmp_path, rows)
    (tmp_path / "b.json").write_text(json.dumps(rows))
    (tmp_path / "b.csv").write_text("q,answer\n" + "".join(f"{r['q']},{r['answer']}\n" for r in rows))
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes()))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "b.parquet")
    found = {
        name: list(read_texts(tmp_path, bench(name, columns=("q", "answer")), USE))
        for name in ("b.jsonl", "b.json", "b.csv", "b.parquet", "packed.jsonl.gz")
    }
    assert list(found.values()) == [[f"{r['q']}\n{r['answer']}" for r in rows]] * 5
    (tmp_path / "b.txt").write_text(QUESTION)
    assert list(read_texts(tmp_path, bench("b.txt", columns=("text",)), USE)) == [QUESTION]


def test_items_are_named_by_benchmark_and_row(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, [{"text": "a hill with another name that people know"}], "c.jsonl")
    index, counts = build_index(tmp_path, config(bench(), bench("c.jsonl", columns=("text",), name="hill")), same)
    assert index.items.to_pylist() == ["hill:0", "sky:0", "sky:2"], "row 1 of sky has no words"
    assert counts == {
        "hill": {"items": 1, "skipped": 0, "template_ngrams": 0},
        "sky": {"items": 2, "skipped": 1, "template_ngrams": 0},
    }
    found = hits(pa.array([f"Well, {QUESTION.upper()}?"], pa.large_string()), index)
    assert found.item.to_pylist() == ["sky:0"]
    assert found.overlap[0].as_py() == 6 / 9


def test_rows_are_numbered_over_all_files(tmp_path: Path) -> None:
    write(tmp_path, [{"text": f"item number {k} of the first of two files"} for k in range(3)], "1.jsonl")
    write(tmp_path, [{"text": f"item number {k} of the second of two files"} for k in range(2)], "2.jsonl")
    index, _ = build_index(tmp_path, config(bench("*.jsonl", columns=("text",))), same)
    assert index.items.to_pylist() == [f"sky:{k}" for k in range(5)]


def test_items_are_cleaned_like_texts(tmp_path: Path) -> None:
    write(tmp_path, [{"text": "one two three four"}])
    index, _ = build_index(
        tmp_path, config(bench(columns=("text",))), lambda texts: pa.array(["a b c d"] * len(texts), pa.large_string())
    )
    assert hits(pa.array(["a b c d"], pa.large_string()), index).overlap.to_pylist() == [1.0]


def test_batches_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [{"text": f"the {k} items of a list with {k % 3} kinds of words"} for k in range(20)])
    one = build_index(tmp_path, config(bench(columns=("text",))), same)[0]
    monkeypatch.setattr(benchmarks, "_BATCH_ITEMS", 3)
    assert arrays(build_index(tmp_path, config(bench(columns=("text",))), same)[0]) == arrays(one)


def test_an_index_survives_its_file(tmp_path: Path) -> None:
    write(tmp_path)
    index, _ = build_index(tmp_path, config(bench()), same)
    save_index(tmp_path / "i.arrow", index, fingerprint="f")
    loaded = load_index(tmp_path / "i.arrow")
    assert arrays(loaded) == arrays(index)
    texts = pa.array([QUESTION, "nothing of it", None], pa.large_string())
    assert hits(texts, loaded).overlap.to_pylist() == hits(texts, index).overlap.to_pylist() == [6 / 9, 0, None]


def test_the_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = write(tmp_path)
    before = sources_digest(tmp_path, [bench()], USE)
    assert sources_digest(tmp_path, [bench()], USE) == before
    assert sources_digest(tmp_path, [bench(columns=("q",))], USE) != before
    path.write_bytes(path.read_bytes().replace(b"blue", b"grey"))
    assert sources_digest(tmp_path, [bench()], USE) != before


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
    [
        ([*ROWS, "{broken\n"], DataError, "sky: bad_json at "),
        ([*ROWS, "[1]\n"], DataError, "not_an_object"),
        ([{"q": "a b c d e"}], ConfigError, "no row of b.jsonl has column 'choices', 'answer'"),
        ([], ConfigError, "b.jsonl"),
        ([ROWS[1]], ConfigError, "sky has no usable items: none of its 1 rows has 4 words"),
    ],
)
def test_what_cannot_be_read_whole_is_an_error(
    tmp_path: Path, rows: list[Any], kind: type[Exception], words: str
) -> None:
    write(tmp_path, rows)
    with pytest.raises(kind, match=words):
        build_index(tmp_path, config(bench()), same)


def test_missing_files_and_columns_name_themselves(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("q,other\n1,2\n")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"{}" * 1000)[:20])
    for path, words in (
        ("none.jsonl", "benchmark sky: 'none.jsonl' matches no files"),
        ("b.csv", "no column 'choices', 'answer'; columns: q, other"),
        ("b.png", "b.png"),
    ):
        with pytest.raises(ConfigError, match=words):
            list(read_texts(tmp_path, bench(path), USE))
    with pytest.raises((ConfigError, DataError), match=r"cut\.jsonl\.gz|gzip"):
        list(read_texts(tmp_path, bench("cut.jsonl.gz"), USE))
    with pytest.raises(ConfigError, match="matches no files"):
        sources_digest(tmp_path, [bench("none.jsonl")], USE)


TEMPLATE = "below is an instruction that describes a task write a response that completes it"


@pytest.mark.parametrize(("ratio", "contaminated"), [(0.05, False), (1.0, True)])
def test_a_template_that_items_share_is_no_contamination(tmp_path: Path, ratio: float, contaminated: bool) -> None:
    write(tmp_path, [{"text": f"{TEMPLATE} {number} plus {number + 1} is"} for number in range(8)])
    index, counts = build_index(tmp_path, config(bench(columns=("text",)), max_item_ratio=ratio), same)
    assert (counts["sky"]["template_ngrams"] > 0) is not contaminated
    texts = [f"{TEMPLATE} translate this", f"{TEMPLATE} 3 plus 4 is", "it 3 plus 4 is"]
    found = hits(pa.array(texts, pa.large_string()), index)
    assert [overlap > 0.5 for overlap in found.overlap.to_pylist()] == [contaminated, True, False]


def test_a_passage_that_few_of_many_items_share_is_content(tmp_path: Path) -> None:
    passages = [" ".join(f"word{k}n{n}" for n in range(12)) for k in range(30)]
    write(tmp_path, [{"text": f"{p} why{k}q{q}"} for k, p in enumerate(passages) for q in range(4)])
    index, counts = build_index(tmp_path, config(bench(columns=("text",))), same)
    assert counts["sky"]["template_ngrams"] == 0
    assert hits(pa.array([passages[7]], pa.large_string()), index).overlap[0].as_py() > 0.5


def test_items_that_are_all_alike_keep_their_ngrams(tmp_path: Path) -> None:
    write(tmp_path, [{"text": TEMPLATE}] * 5)
    index, _ = build_index(tmp_path, config(bench(columns=("text",))), same)
    assert hits(pa.array([TEMPLATE], pa.large_string()), index).overlap.to_pylist() == [1.0]
