"""Labels of every format become texts with all their judgements, or an error that names file, row and remedy."""

import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoring.core.errors import ConfigError, DataError, SchemaError
from scoring.core.hashing import hash64
from transforms.core.schemas import LABELS
from transforms.quality import labels
from transforms.quality.config import LabelSource, ReviewConfig
from transforms.quality.label_rows import Vote
from transforms.quality.labels import Judged, read_judged, review_rows, write_labels

GOOD = ["Good", "1"]
ROWS = [{"text": "fine words", "label": "good"}, {"text": "win money", "label": " BAD "}, {"text": "so so", "label": 1}]


def source(*paths: str, **more: Any) -> LabelSource:
    return LabelSource(name="pages", paths=paths or ("a.jsonl",), **more)


def write(root: Path, rows: list[Any], name: str = "a.jsonl") -> str:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (root / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return name


def told(found: list[Judged]) -> dict[str, list[tuple[str, str]]]:
    return {j.text: [tuple(vote) for vote in j.votes] for j in found}


def read(root: Path, rows: list[Any], **more: Any) -> dict[str, list[tuple[str, str]]]:
    return told(read_judged(root, source(write(root, rows), **more), GOOD))


def anonymous(*names: str) -> list[tuple[str, str]]:
    return [("", name) for name in names]


def test_rows_are_sorted_by_the_hash_of_their_text(tmp_path: Path) -> None:
    found = read_judged(tmp_path, source(write(tmp_path, ROWS)), GOOD)
    assert [j.text_id for j in found] == sorted(f"{hash64(row['text']):016x}" for row in ROWS)
    assert told(found) == {"fine words": anonymous("good"), "win money": anonymous("bad"), "so so": anonymous("1")}
    assert {j.text: j.verdict for j in found} == {"fine words": True, "win money": False, "so so": True}
    assert read_judged(tmp_path, source(write(tmp_path, ROWS[::-1], "b.jsonl")), GOOD) == found
    assert read_judged(tmp_path, source(write(tmp_path, ROWS[:1], "c.jsonl"), "b.jsonl"), GOOD) != found


def test_every_format_is_read(tmp_path: Path) -> None:
    rows = [{"t": "fine words", "n": 1.0, "who": "ann"}, {"t": "win money", "n": 0.0, "who": "bob"}]
    write(tmp_path, rows)
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "a.csv").write_text("t,n,who\n" + "".join(f"{r['t']},{r['n']:.0f},{r['who']}\n" for r in rows))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.json", "a.csv", "a.jsonl.gz", "a.parquet"):
        found = read_judged(tmp_path, source(name, columns=("t",), label="n", annotator="who"), GOOD)
        assert told(found) == {"fine words": [("ann", "1")], "win money": [("bob", "0")]}, name


def test_several_rows_of_one_text_are_several_judgements(tmp_path: Path) -> None:
    rows = [{"text": "a text", "label": x, "who": w} for x, w in (("good", "bob"), ("bad", "ann"), ("good", "bob"))]
    (one,) = read_judged(tmp_path, source(write(tmp_path, rows)), GOOD)
    assert [v.label for v in one.votes] == ["bad", "good", "good"]
    assert one.verdict is True
    (one,) = read_judged(tmp_path, source("a.jsonl", annotator="who"), GOOD)
    assert one.votes == (Vote("ann", "bad"), Vote("bob", "good")), "a copied row is no second judgement"
    assert one.good == (False, True)
    assert one.verdict is None


def test_a_column_may_hold_many_judgements(tmp_path: Path) -> None:
    assert read(tmp_path, [{"text": "a", "label": ["good", None, "bad", "good"]}])["a"] == anonymous(
        "bad", "good", "good"
    )
    counts = {"n": 3, "good": 2, "bad": 1, "ugly": 0, "odd": None}
    assert read(tmp_path, [{"text": "a", "label": counts}])["a"] == anonymous("bad", "good", "good")
    assert read(tmp_path, [{"text": "a", "label": {"n": 1, "good": 2}}])["a"] == anonymous("good", "good", "n")
    both = {"text": "a", "label": ["good", "bad"], "who": ["bob", {"id": 7, "email": "ann@x.org"}]}
    assert read(tmp_path, [both], annotator="who")["a"] == [("ann@x.org", "bad"), ("bob", "good")]
    for who in ("a team", ["ann", "bob"], None):
        counted = {"text": "a", "label": {"good": 2}, "who": who}
        assert read(tmp_path, [counted], annotator="who")["a"] == anonymous("good", "good")
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], ["a", '["good", "bad"]'], ["b", '[{"rating": 4}]'], ["c", "[x"]])
    found = told(read_judged(tmp_path, source("a.csv"), GOOD))
    assert found == {"a": anonymous("bad", "good"), "b": anonymous("4"), "c": anonymous("[x")}


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
    [
        (["nonsense"], DataError, r"label file pages: bad_json at 0: .*\n.*where: a.jsonl"),
        (["[1]"], DataError, "not_an_object"),
        ([*ROWS, {"text": " ", "label": "good"}], ConfigError, r"(?s)no text in .*' '.*a.jsonl, row 4"),
        ([*ROWS, {"body": "words", "label": "good"}], ConfigError, r"no text in .*columns: body, label"),
        ([*ROWS, {"text": "x"}], ConfigError, r"(?s)no label in column 'label': None.*a.jsonl, row 4"),
        ([*ROWS, {"text": "x", "label": ""}], ConfigError, "no label in column 'label': ''"),
        ([*ROWS, {"text": "x", "label": []}], ConfigError, "no label"),
        ([*ROWS, '{"text": "x", "label": NaN}'], ConfigError, "no label"),
        ([*ROWS, {"text": "x", "label": {"good": "yes"}}], ConfigError, "counts that are not whole numbers"),
        ([*ROWS, {"text": "x", "label": {"good": -1}}], ConfigError, "counts that are not whole numbers"),
        ([*ROWS, {"text": "x", "label": {"good": 10**12}}], ConfigError, "counts that are not whole numbers"),
        ([*ROWS, {"text": "x", "label": [["good"]]}], ConfigError, r"a value that is not a label .*\[\['good'\]\]"),
        ([{"text": "x"}], ConfigError, r"(?s)no row of a.jsonl has column 'label'; columns: text\n.*set `label`"),
        ([{"label": "good"}], ConfigError, r"(?s)no row of a.jsonl has column 'text'.*set `columns`"),
        ([], ConfigError, "no row of a.jsonl has column 'label', 'text'; there are no columns"),
    ],
)
def test_what_is_no_label_says_where_it_stands(tmp_path: Path, rows: list[Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        read(tmp_path, rows)


def test_files_and_annotators_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)'none.jsonl' matches no files.*quality.labels"):
        read_judged(tmp_path, source("none.jsonl"), GOOD)
    with pytest.raises(ConfigError, match=r"(?s)column 'who'; columns: text, label.*set `annotator`"):
        read(tmp_path, ROWS, annotator="who")
    with pytest.raises(ConfigError, match="3 labels but 2 annotators in column 'label'"):
        read(tmp_path, [{"text": "a", "label": [1, 1, 0], "who": ["ann", "bob"]}], annotator="who")
    with pytest.raises(ConfigError, match="1 labels but 2 annotators"):
        read(tmp_path, [{"text": "a", "label": 1, "who": ["ann", "bob"]}], annotator="who")
    with pytest.raises(ConfigError, match="2 labels but 1 annotators"):
        read(tmp_path, [{"text": "a", "label": [1, 0], "who": "ann"}], annotator="who")
    write(tmp_path, ROWS)
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes())[:40])
    with pytest.raises((ConfigError, DataError), match="gzip"):
        read_judged(tmp_path, source("cut.jsonl.gz"), GOOD)


def test_a_label_that_is_neither_good_nor_bad(tmp_path: Path) -> None:
    rows = [*ROWS, {"text": "maybe", "label": "Unsure"}, {"text": "perhaps", "label": "unsure"}]
    assert read(tmp_path, rows)["maybe"] == anonymous("unsure")
    with pytest.raises(
        ConfigError, match=r"(?s)neither good nor bad: unsure 2\n.*all labels: unsure 2, 1 1, bad 1, good 1"
    ):
        read(tmp_path, rows, bad_labels=("bad",))
    assert len(read(tmp_path, rows, bad_labels=("BAD", "unsure"))) == 5
    with pytest.raises(ConfigError, match="good and bad: good"):
        read(tmp_path, rows, bad_labels=("bad", "unsure", "good"))


def test_sources_that_contradict_themselves() -> None:
    with pytest.raises(ValueError, match="already contains annotators"):
        source(format="label_studio", annotator="who")
    with pytest.raises(ValueError, match="requires level: ordinal"):
        source(scale=("bad", "good"))
    for wrong in ({"clusters": 0}, {"neighbours": 0}, {"seed": -1}):
        with pytest.raises(ValueError, match="must be at least"):
            ReviewConfig(**wrong)


def test_twenty_of_each_class_are_needed(tmp_path: Path) -> None:
    rows = [{"text": f"fine {k}", "label": "good"} for k in range(20)]
    rows += [{"text": f"poor {k}", "label": "bad"} for k in range(19)]
    tie = [{"text": "poor 19", "label": ["bad", "good"]}]
    config = source(write(tmp_path, rows + tie))
    found = read_judged(tmp_path, config, GOOD)
    with pytest.raises(
        ConfigError, match=r"(?s)20 good, 19 other, 1 undecided; need 20 of each.*a.jsonl; labels: good 21, bad 20"
    ):
        labels.require_classes(found, ", ".join(config.paths), "add rows")
    labels.require_classes(
        read_judged(tmp_path, source(write(tmp_path, [*rows, {"text": "p", "label": 0}])), GOOD), "a.jsonl", "add rows"
    )


# Label Studio.


def region(value: Any, kind: str = "choices", name: str = "quality") -> dict[str, Any]:
    field = {"textarea": "text"}.get(kind, kind)
    return {"type": kind, "from_name": name, "to_name": "text", "value": {field: value}}


def annotation(*regions: dict[str, Any], who: Any = 1, cancelled: bool = False) -> dict[str, Any]:
    return {"id": 9, "completed_by": who, "was_cancelled": cancelled, "result": list(regions)}


def task(number: int, text: str, *annotations: Any) -> dict[str, Any]:
    return {"id": number, "data": {"text": text}, "annotations": list(annotations), "predictions": [{"result": []}]}


def export(root: Path, tasks: Any, **more: Any) -> dict[str, list[tuple[str, str]]]:
    (root / "export.json").write_text(tasks if isinstance(tasks, str) else json.dumps(tasks), encoding="utf-8")
    return told(read_judged(root, source("export.json", format="label_studio", **more), GOOD))


def test_a_label_studio_export(tmp_path: Path) -> None:
    tasks = [
        task(1, "one", annotation(region(["Good"])), annotation(region(["bad"]), who={"id": 2, "email": "bob@x.org"})),
        task(2, "two", annotation(region(["good"]), who=None), annotation(region(["bad"]), cancelled=True)),
        task(3, "nobody looked at this one"),
        task(4, "skipped", annotation(who=3)),
    ]
    assert export(tmp_path, tasks) == {"one": [("1", "good"), ("bob@x.org", "bad")], "two": anonymous("good")}


def test_a_label_studio_export_with_several_controls(tmp_path: Path) -> None:
    note = region(["reads like an advert"], "textarea", "note")
    stars = annotation(region(4, "rating", "stars"), note, region([], name="quality"))
    tasks = [
        task(1, "one", stars),
        task(2, "two", annotation(note)),
        task(3, "three", annotation(region(2.0, "rating", "stars"))),
    ]
    assert export(tmp_path, tasks, label="stars") == {"one": [("1", "4")], "three": [("1", "2")]}
    assert export(tmp_path, tasks, label="note")["two"] == [("1", "reads like an advert")]
    with pytest.raises(ConfigError, match=r"(?s)use the controls note, stars, not 'label'.*export.json.*set `label`"):
        export(tmp_path, tasks)
    spans = {"type": "labels", "from_name": "ner", "value": {"start": 0, "end": 3, "labels": ["X"]}}
    assert export(tmp_path, [task(1, "one", annotation(region(["good"]), spans))]) == {"one": [("1", "good")]}


WHOLE = [task(1, "one", annotation(region(["good"])))]


@pytest.mark.parametrize(
    ("tasks", "kind", "words"),
    [
        (json.dumps(WHOLE)[:-30], DataError, "bad_json at 0: the document is truncated"),
        ("", ConfigError, "no labelled texts in export.json"),
        ([], ConfigError, "no labelled texts in export.json"),
        ([task(1, "one")], ConfigError, "no labelled texts in export.json"),
        (
            [{"id": 5, "text": "one", "choice": "good"}],
            ConfigError,
            r"(?s)'annotations' is not a list.*task 5.*JSON-MIN",
        ),
        ([{**WHOLE[0], "data": "one"}], ConfigError, r"(?s)invalid: `data` is 'one'\n.*export.json, task 1"),
        ([{**WHOLE[0], "data": {"body": "one"}}], ConfigError, "no text in .*columns: body"),
        ([task(1, "one", 7)], ConfigError, "an annotation is 7"),
        ([task(1, "one", {"result": "good"})], ConfigError, "'result' is not a list but 'good'"),
        ([task(1, "one", annotation("good"))], ConfigError, "a result is 'good'"),
        ([task(1, "one", annotation({"type": "choices", "value": {}}))], ConfigError, "has no value.choices"),
        (
            [task(1, "one", annotation(region(["good", "bad"])))],
            ConfigError,
            r"quality has 2 labels: \['good', 'bad'\]",
        ),
    ],
)
def test_a_damaged_label_studio_export(tmp_path: Path, tasks: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        export(tmp_path, tasks)


def test_the_flat_exports_of_label_studio_are_plain_rows(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "one", "sentiment": "Good", "annotator": 1, "annotation_id": 3, "lead_time": 2.5}]
    rows += [{**rows[0], "sentiment": "Bad", "annotator": 2}]
    (tmp_path / "min.json").write_text(json.dumps(rows))
    with (tmp_path / "flat.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    for name in ("min.json", "flat.csv"):
        found = read_judged(tmp_path, source(name, label="sentiment", annotator="annotator"), GOOD)
        assert told(found) == {"one": [("1", "good"), ("2", "bad")]}


# What they come to.


def judged(*votes: str, text: str = "a text", annotators: str = "") -> Judged:
    found = tuple(Vote(annotators[k : k + 1], v) for k, v in enumerate(votes))
    return Judged(f"{hash64(text):016x}", text, found, tuple(v in ("good", "1") for v in votes))


def test_agreement_is_summed_up() -> None:
    rows = [judged("good", "good"), judged("bad", "bad"), judged("good", "bad"), judged("good")]
    found = labels.agreement_summary(rows, source())
    counts = {"rows": 4, "judgements": 7, "judged_again": 3, "disputed": 1, "ties": 1, "annotators": 0}
    assert counts.items() <= found.items()
    assert found["labels"] == {"bad": 3, "good": 4}
    assert found["alpha"] == found["alpha_good"] == pytest.approx(1 - 2 / (2 * 3 * 3 / 5), abs=1e-6)
    alone = labels.agreement_summary(rows[-1:], source())
    assert (alone["alpha"], alone["alpha_good"]) == (None, None)
    stars = [judged("1", "2"), judged("3", "3"), judged("5", "4", annotators="ab")]
    ordinal = labels.agreement_summary(stars, source(level="ordinal"))
    assert ordinal["alpha"] > 0.8 > labels.agreement_summary(stars, source())["alpha"]
    assert ordinal["annotators"] == 2
    words = [judged("poor", "Fair".lower()), judged("fair", "fair")]
    assert labels.agreement_summary(words, source(level="ordinal", scale=("Poor", "Fair")))["alpha"] == 0


def test_real_votes_agree_as_their_authors_had_it(shared: Path) -> None:
    """Davidson et al. (2017): three or more people a tweet; counts of their votes in one column."""
    config = LabelSource(name="tweets", paths=("labelled/toxic_tweets.jsonl",), label="votes")
    found = labels.agreement_summary(read_judged(shared, config, ["neither"]), config)
    assert (found["rows"], found["judged_again"], found["ties"]) == (1998, 1998, 5)
    assert set(found["labels"]) == {"hate", "offensive", "neither"}
    assert found["alpha"] == pytest.approx(0.586, abs=1e-3)
    assert found["alpha_good"] == pytest.approx(0.761, abs=1e-3)


def columns(batch: pa.RecordBatch, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(batch[name].to_pylist() for name in names), strict=True))


def test_rows_to_look_at_have_reasons_and_a_priority() -> None:
    rows = [
        judged("good", "good", annotators="ab"), judged("good", "bad", annotators="ab"), judged("good", text="x" * 300),
        judged("bad", "bad", "good", annotators="aab"),
    ]  # fmt: skip
    quality = np.array([0.9, 0.1, 0.25, math.nan])
    found = review_rows(rows, quality, None, ReviewConfig(), sample_ids=["s1", None, None, None])
    assert found.schema == LABELS
    third = -(math.log2(1 / 3) + 2 * math.log2(2 / 3)) / 3
    assert columns(found, "sample_id", "label", "judgements", "annotators", "quality", "reasons") == [
        ("s1", "good", 2, 2, 0.9, []), (None, None, 2, 2, 0.1, [labels.DISPUTED]),
        (None, "good", 1, None, 0.25, [labels.CONTRADICTED]), (None, "bad", 3, 2, None, [labels.DISPUTED]),
    ]  # fmt: skip
    assert found["vote_entropy"].to_pylist() == pytest.approx([0, 1, 0, third])
    assert found["priority"].to_pylist() == pytest.approx([0, 1, 0.5, third])
    assert found["excerpt"].to_pylist()[2] == "x" * 200
    assert found["cluster"].null_count == found["outlier"].null_count == found["neighbours"].null_count == 4


def test_a_row_among_others_of_the_other_label_is_found() -> None:
    rng = np.random.default_rng(0)
    good = np.repeat([True, False], 40)
    points = (rng.normal(size=(80, 6)) + 5 * good[:, None]).astype(np.float32)
    rows = [judged("good" if g else "bad", text=f"text {k}") for k, g in enumerate(good)]
    rows[11] = judged("bad", text="text 11")
    config = ReviewConfig(clusters=2, neighbours=10, seed=1)
    found = review_rows(rows, np.where(good, 0.8, 0.2), points, config)
    assert int(np.argmax(found["priority"].to_numpy())) == 11
    assert found["reasons"][11].as_py() == [labels.CONTRADICTED, labels.OUTLIER]
    assert found["neighbours"][11].as_py() == 0
    assert found["priority"][11].as_py() == pytest.approx(0.6 + 1.0)
    mixed = found["cluster"][11].as_py()
    entropies = dict(columns(found, "cluster", "cluster_entropy"))
    assert entropies == {mixed: pytest.approx(0.168661, abs=1e-6), 1 - mixed: 0.0}
    assert found.equals(review_rows(rows, np.where(good, 0.8, 0.2), points, config))
    assert 0 <= min(found["priority"].to_pylist()) <= max(found["priority"].to_pylist()) <= 3


def test_no_rows_are_a_table_too(tmp_path: Path) -> None:
    found = review_rows([], np.zeros(0), np.zeros((0, 4), np.float32), ReviewConfig())
    write_labels(tmp_path / "labels.parquet", found)
    assert pq.read_table(tmp_path / "labels.parquet").schema.equals(LABELS)


def test_the_table_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "quality" / "labels.parquet"
    found = review_rows([judged("good")], np.array([0.2]), None, ReviewConfig())
    write_labels(path, found)
    first = path.read_bytes()
    write_labels(path, found)
    assert path.read_bytes() == first
    assert pq.read_table(path).to_pylist() == found.to_pylist()
    with pytest.raises(SchemaError, match="priority"):
        write_labels(path, found.drop_columns(["priority"]))
    assert [p.name for p in path.parent.iterdir()] == ["labels.parquet"]
    assert path.read_bytes() == first
