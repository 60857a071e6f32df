"""What-if: the same verdicts as judging every stored row anew, and an honest word on what nobody knows."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import builders
from support.places import SHIPPED
from support.text_corpus import NEWS, rows_of

from pipelines import clean
from pipelines.catalog import query, whatif
from pipelines.catalog import views as catalog
from pipelines.core import params
from pipelines.core.project import Project
from scoring.core.errors import ConfigError, DataError

PLAIN: dict[str, Any] = {"csv": False, "json": False, "parquet": None, "rows": 50}
RATE = (90 + 80 + 12) / (80 + 80 + 80)  # tokens a word of source web, over the rows that have tokens


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return builders.complete_project(tmp_path_factory.mktemp("whatif"))


def ask(project: Project, **wanted: float) -> dict[str, dict[str, Any]]:
    with whatif.answer(project, wanted) as result:
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows()]
    return {row.pop("source"): row for row in rows}


def test_a_lower_threshold_frees_the_rows_that_failed_nothing_else(project: Project) -> None:
    found = ask(project, gopher_short_doc=30)
    size = round(47 * RATE)
    assert found["web"] == {
        "rows": 8, "kept_now": 3, "kept_then": 4, "change": 1, "unjudged": 1, "dropped_by_others": 0,
        "tokens_now": 182, "tokens_then": 182 + size, "token_change": size, "estimated_tokens": size,
    }  # fmt: skip
    assert found["media"]["change"] == found["media"]["token_change"] == 0
    assert found["(all)"]["kept_then"] == 7
    assert list(found) == ["media", "web", "(all)"]


def test_rows_that_other_rules_drop_are_told_apart(project: Project) -> None:
    assert ask(project, gopher_short_doc=1)["web"]["dropped_by_others"] == 1
    both = ask(project, gopher_short_doc=1, gopher_few_stop_words=0)["web"]
    assert (both["kept_then"], both["dropped_by_others"], both["unjudged"]) == (5, 0, 2)


def test_a_stricter_threshold_drops_rows_with_known_tokens(project: Project) -> None:
    found = ask(project, low_quality=0.7)["web"]
    assert (found["kept_then"], found["change"], found["tokens_then"]) == (2, -1, 170)
    assert (found["unjudged"], found["estimated_tokens"]) == (0, 0)
    assert ask(project, gopher_bullets=float("inf"))["web"]["change"] == 0


def test_the_present_threshold_changes_nothing(project: Project) -> None:
    for code, limit in list(catalog.limits(project).items())[::5]:
        row = ask(project, **{code: limit})["(all)"]
        assert (row["change"], row["token_change"], row["kept_now"]) == (0, 0, 6), code


@given(st.dictionaries(st.sampled_from(["gopher_short_doc", "gopher_few_stop_words", "low_quality"]),
                       st.integers(0, 90), min_size=1))  # fmt: skip
@settings(deadline=None, max_examples=15)
def test_verdicts_are_those_of_judging_every_row_anew(project: Project, wanted: dict[str, float]) -> None:
    if "low_quality" in wanted:
        wanted["low_quality"] /= 90
    rules = [whatif.find(code) for code in wanted]
    later, unjudged = 0, 0
    for sample_id, own in builders.CLEAN.items():
        verdicts = [f.get(sample_id, {}) for f in (builders.CLEAN, builders.DEDUP, builders.QUALITY)]
        values = {**own, **builders.QUALITY.get(sample_id, {})}
        others = [c for v in verdicts for c in v.get("reasons", []) if c not in wanted]
        fails = [r for r in rules if values.get(r.value) is not None and values[r.value] < wanted[r.code]]
        passes = not others and not fails
        later += passes
        unjudged += passes and any("kept" not in v for v in verdicts)
    row = ask(project, **wanted)["(all)"]
    assert (row["kept_then"], row["unjudged"]) == (later, unjudged)


def test_the_answer_is_that_of_a_run_with_the_other_threshold(tmp_path: Path) -> None:
    asked = {"gopher_short_doc": 70, "gopher_long_words": 4.8}
    other = params.read(SHIPPED).tree["clean"]["gopher"]
    changed = {**other, "min_words": 70, "max_mean_word_length": 4.8}
    found = []
    for name, sections in (("now", {}), ("then", {"clean": {"gopher": changed}})):
        project = builders.empty_project(tmp_path / name, **sections)
        builders.write_rows(project, "samples", "part-aa-0000.parquet", rows_of(NEWS))
        clean.run(project)
        found.append(ask(project, **asked))
    now, then = found
    for source in ("news", "web"):
        assert now[source]["kept_then"] == then[source]["kept_now"]
    assert now["(all)"]["kept_then"] != now["(all)"]["kept_now"]


def test_half_way_through_a_run_words_stand_for_tokens(tmp_path: Path) -> None:
    project = builders.complete_project(tmp_path, until="clean")
    row = ask(project, gopher_short_doc=30)["web"]
    assert (row["kept_now"], row["kept_then"], row["unjudged"], row["word_change"]) == (5, 6, 0, 47)
    with pytest.raises(DataError, match="gradsift run quality"):
        ask(project, low_quality=0.1)


def test_tokens_that_nobody_can_estimate_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = builders.complete_project(tmp_path, until="tokens/raw")
    monkeypatch.setitem(builders.SIDECARS, "tokens", {})
    builders.write_folder(project, "tokens")
    row = ask(project, gopher_short_doc=30)["web"]
    assert (row["kept_then"], row["tokens_then"], row["token_change"]) == (4, None, None)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"gopher_short_dok": 1}, "did you mean gopher_short_doc"), ({"short_doc": 1}, "did you mean gopher_short_doc"),
        ({"zzz": 1}, "no such rule: zzz"), ({"empty": 1}, "the reason empty has no threshold"),
        ({"gopher_short_doc": 30.5}, r"clean\.gopher\.min_words: .*not 30\.5"),
        ({"gopher_short_doc": 10**9}, "is above max_words"), ({"gopher_short_doc": -1}, "at least 0, not -1"),
        ({"gopher_short_doc": float("nan")}, "min_words"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_says_why(project: Project, wanted: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ask(project, **wanted)


def test_pairs_are_checked() -> None:
    assert whatif.changes(["a", "b"], [1.0, 2.0]) == {"a": 1.0, "b": 2.0}
    for rules, thresholds in (([], []), (["a"], []), (["a"], [1.0, 2.0])):
        with pytest.raises(ConfigError, match="needs one --threshold per --rule"):
            whatif.changes(rules, thresholds)
    with pytest.raises(ConfigError, match="a rule takes one threshold: a"):
        whatif.changes(["a", "a"], [1.0, 2.0])


def test_the_command_prints_a_table_csv_or_json(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    path = builders.save_params(project)
    pair: dict[str, Any] = {"rules": ["gopher_short_doc"], "thresholds": [30.0]}
    query.main(path, "whatif", **PLAIN, **pair)
    out = capsys.readouterr().out
    assert "gopher_short_doc: keeps ≥ 30 instead of ≥ 50 (clean.gopher.min_words)" in out
    assert "dropped_by_others" in out
    query.main(path, "whatif", **{**PLAIN, "json": True}, **pair)
    assert json.loads(capsys.readouterr().out)[-1]["kept_then"] == 7
    query.main(path, "whatif", **{**PLAIN, "csv": True}, **pair)
    assert capsys.readouterr().out.startswith("source,rows,kept_now")
    assert "whatif" in query.listing()
    with pytest.raises(ConfigError, match="apply only to `whatif`"):
        query.main(path, "drops", **PLAIN, **pair)
