import itertools
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam import coders
from apache_beam.pipeline import PipelineVisitor
from apache_beam.typehints import Any as BeamAny
from hypothesis import given
from hypothesis import strategies as st
from support.builders import batch

from transforms.core import schemas
from transforms.core.parts import Part, Task
from transforms.dedup import exact as dedup
from transforms.dedup import near
from transforms.dedup.config import DedupConfig, NearConfig
from transforms.dedup.transform import Corpus, FindCopies, JudgeParts, MatchBundles

Row = tuple[str, bytes | None, float | None, bool | None]  # sample_id, key, quality, kept by clean


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def read(rows: list[Row]) -> pa.RecordBatch:
    """Returns the columns that the stage reads."""
    names = ("sample_id", "key_hash", "rule_quality", "kept")
    found = batch(schemas.CLEAN, [dict(zip(names, row, strict=True)) for row in rows])
    columns = {f"clean.{c}": found[c] for c in dedup.KEYS["clean"]}
    return pa.record_batch({"sample_id": found["sample_id"], **columns})


def run(cut: list[list[Row]], buckets: int) -> dict[str, dict[str, Any]]:
    """Returns the verdicts by sample id of a corpus cut into parts, by the transform's own steps without Beam."""
    offered: dict[int, list[Part]] = defaultdict(list)
    for number, rows in enumerate(cut):
        for bucket, found in dedup.split(dedup.candidates(read(rows), number), buckets):
            offered[bucket].append(Part(str(number), "", found))
    heard: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    for bucket in offered.values():
        random.Random(0).shuffle(bucket)
        for part in dedup.lost(bucket):
            heard[part.name].append(part.batch)
    judged = [judge(rows, number, heard[str(number)]) for number, rows in enumerate(cut)]
    return {row["sample_id"]: row for found in judged for row in found.to_pylist()}


def judge(rows: list[Row], number: int, heard: list[pa.RecordBatch]) -> pa.RecordBatch:
    settled = dedup.settle(read(rows), number, pa.Table.from_batches(heard, schema=dedup.SURVIVORS))
    return dedup.judge(settled, near.NEAR.empty_table())


def naive(rows: list[Row]) -> dict[str, dict[str, Any]]:
    """Returns the verdicts, looked up row by row in the whole corpus."""
    found = {}
    for sample_id, hashed, _, kept in rows:
        verdict = dict.fromkeys(schemas.DEDUP.names) | {"sample_id": sample_id}
        if kept:
            equal = [r for r in rows if r[3] and r[1] is not None and r[1] == hashed]
            best = min(equal, key=lambda r: (-(r[2] or 0.0), r[0]))[0] if equal else sample_id
            verdict |= {"cluster": best, "survivor": best == sample_id, "kept": best == sample_id, "reasons": []}
            if best != sample_id:
                verdict |= {"matched_id": best, "similarity": 1.0, "reasons": ["duplicate_exact"]}
        found[sample_id] = verdict
    return found


_VALUES = st.tuples(
    st.one_of(st.none(), st.integers(0, 6).map(key)),
    st.sampled_from([None, 0.5, 0.9, 1.0]),
    st.sampled_from([True, True, True, False, None]),
)


@st.composite
def cuts(draw: st.DrawFn) -> tuple[list[Row], list[list[Row]], int]:
    """Draws a corpus, a way to cut it into parts (in another order), and a number of buckets."""
    values = draw(st.lists(_VALUES, max_size=30))
    ids = draw(st.permutations([f"s{k}" for k in range(len(values))]))
    rows = [(i, *v) for i, v in zip(ids, values, strict=True)]
    shuffled = draw(st.permutations(rows))
    places = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    ends = [0, *places, len(rows)]
    return rows, [shuffled[a:b] for a, b in itertools.pairwise(ends)], draw(st.integers(1, 5))


@given(cuts())
def test_verdicts_do_not_depend_on_how_the_corpus_is_cut(case: tuple[list[Row], list[list[Row]], int]) -> None:
    rows, cut, buckets = case
    assert run(cut, buckets) == naive(rows)


@given(cuts())
def test_each_key_has_one_survivor_and_it_is_kept(case: tuple[list[Row], list[list[Row]], int]) -> None:
    rows, cut, buckets = case
    found = run(cut, buckets)
    keys = {r[1] for r in rows if r[3] and r[1]}
    assert len(keys) == len({found[r[0]]["cluster"] for r in rows if r[3] and r[1]})
    assert all(found[v["cluster"]]["kept"] for v in found.values() if v["cluster"])


def test_survivor_is_the_best_then_the_first_by_id() -> None:
    rows: list[Row] = [
        ("c", key(1), 0.9, True),
        ("b", key(1), 1.0, True),
        ("a", key(1), 1.0, True),
        ("0", key(1), 1.0, False),
    ]
    found = run([rows[:2], rows[2:]], 1)
    assert found["a"]["kept"]
    assert [found[s]["matched_id"] for s in "bc"] == ["a", "a"]
    assert found["0"] == dict.fromkeys(schemas.DEDUP.names) | {"sample_id": "0"}


def test_a_hundred_thousand_equal_rows_cross_the_shuffle_once_a_part() -> None:
    rows: list[Row] = [(f"s{k:06d}", key(5), 1.0, True) for k in range(100_000)]
    cut = [rows[k : k + 4000] for k in range(0, len(rows), 4000)]
    assert sum(dedup.candidates(read(part), k).num_rows for k, part in enumerate(cut)) == len(cut)
    found = run(cut, 3)
    assert [s for s, v in found.items() if v["kept"]] == ["s000000"]


def test_no_rows_make_a_batch_of_the_schema() -> None:
    found = judge([], 0, [])
    assert found.schema == schemas.DEDUP
    assert found.num_rows == 0


def test_what_shares_a_key_with_a_near_duplicate_goes_with_it() -> None:
    rows: list[Row] = [
        ("a", key(1), 1.0, True),
        ("b", key(1), 0.9, True),
        ("c", key(2), 1.0, True),
        ("d", None, 1.0, True),
    ]
    settled = dedup.settle(read(rows), 3, dedup.SURVIVORS.empty_table())
    matched = pa.table([[dedup.refs(3, 1)[0]], ["c"], [0.8]], schema=near.NEAR)
    found = {row["sample_id"]: row for row in dedup.judge(settled, matched).to_pylist()}
    for lost in "ab":
        verdict = {"cluster": "c", "survivor": False, "matched_id": "c", "similarity": 0.8, "kept": False}
        assert found[lost] == {"sample_id": lost, **verdict, "reasons": ["duplicate_near"]}
    assert [found[s]["kept"] for s in "cd"] == [True, True]


NEAR = {"enabled": True, "ngram": 5, "bands": 14, "rows": 8, "min_similarity": 0.75, "max_leaders": 32, "seed": 7}


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_the_limit_is_a_share(share: float) -> None:
    with pytest.raises(ValueError, match="max_source_loss must be in"):
        DedupConfig(max_source_loss=share, near=NearConfig(**NEAR))


@pytest.mark.parametrize(
    "change", [{"ngram": 0}, {"bands": 0}, {"rows": 0}, {"max_leaders": 0}, {"seed": -1}, {"min_similarity": 0.0},
               {"min_similarity": 1.1}, {"min_similarity": float("nan")}]
)  # fmt: skip
def test_the_signature_makes_sense(change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(ValueError, match=name):
        NearConfig(**{**NEAR, **change})


class Types(PipelineVisitor):
    """Collects the element types of all that our steps hand on."""

    def __init__(self) -> None:
        self.found: dict[str, object] = {}

    def visit_transform(self, node: Any) -> None:
        self.found |= {f"{node.full_label}/{tag}": out.element_type for tag, out in node.outputs.items()}


def test_no_element_is_pickled() -> None:
    pipeline, config = beam.Pipeline(), NearConfig(**NEAR)
    corpus = Corpus(Path("data"), (Task("p", "f"),))
    names = pipeline | beam.Create(["p"]).with_output_types(str)
    _ = names | "Find" >> FindCopies(corpus, config, 2, 2)
    assert (names | "Match" >> MatchBundles(corpus, config, 1) | "Judge" >> JudgeParts(corpus)).element_type is Part
    types = Types()
    pipeline.visit(types)
    ours = {k: v for k, v in types.found.items() if k.startswith(("Find/", "Match/", "Judge/")) and "/Spread" not in k}
    assert len(ours) >= 12
    for label, kind in ours.items():
        assert kind is not BeamAny, label
        assert not any(name in repr(coders.registry.get_coder(kind)) for name in ("Pickle", "FastPrimitives")), label
