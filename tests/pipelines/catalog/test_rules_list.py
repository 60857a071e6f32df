"""`gradsift rules`: every rule once, with what params say now and what the last run dropped."""

import json
from math import isnan
from pathlib import Path
from typing import Any

import pytest
from support import builders

from pipelines.catalog import rules_list
from pipelines.catalog import views as catalog
from pipelines.core.project import Project


def listed(project: Project) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in rules_list.rows(project).to_pylist()}


def test_every_rule_is_listed_with_its_constant_before_any_run(tmp_path: Path) -> None:
    project = builders.empty_project(tmp_path)
    found = listed(project)
    assert list(found) == [rule.code for rule in catalog.rules()]
    for rule in catalog.rules():
        row = found[rule.code]
        limit = catalog.limits(project)[rule.code]
        assert (row["source"], row["threshold"]) == (rule.origin, None if isnan(limit) else limit)
        assert row["on"] is (
            rule.code.startswith(("gopher", "repetition")) or rule.code in ("contaminated", "low_quality")
        )
        assert row["dropped"] is row["judged"] is row["drop_ratio"] is row["only_this_rule"] is None
    assert found["gopher_short_doc"]["param"] == "clean.gopher.min_words"
    assert [found[c]["family"] for c in ("gopher_bullets", "repetition_dup_lines", "low_quality")] == [
        "gopher", "repetition", "quality",
    ]  # fmt: skip
    assert not (tmp_path / "data").exists()


def test_counts_are_those_of_the_last_run(tmp_path: Path) -> None:
    found = listed(builders.complete_project(tmp_path))
    wanted = {"gopher_short_doc": (7, 2, 1), "gopher_few_stop_words": (6, 1, 0), "low_quality": (4, 1, 1)}
    for code, counts in wanted.items():
        row = found[code]
        assert (row["judged"], row["dropped"], row["only_this_rule"]) == counts
        assert row["drop_ratio"] == counts[1] / counts[0]
    assert found["gopher_bullets"]["dropped"] == 0


def test_half_way_through_a_run_later_rules_have_no_counts(tmp_path: Path) -> None:
    assert all(
        row["dropped"] is None for row in listed(builders.complete_project(tmp_path / "a", until="samples")).values()
    )
    found = listed(builders.complete_project(tmp_path / "b", until="clean"))
    assert (found["gopher_short_doc"]["dropped"], found["low_quality"]["dropped"]) == (2, None)


def test_a_family_tells_its_variant_and_whether_it_drops() -> None:
    rule = next(rule for rule in catalog.rules() if rule.code == "gopher_short_doc")
    section = {"gopher": {"variant": "dolma", "drop": False, "min_words": 50}}
    assert rules_list.standing(section, rule) == ("dolma", False)
    assert rules_list.standing({"gopher": {"min_words": 50}}, rule) == (None, True)


def test_the_command_prints_a_table_or_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = builders.save_params(builders.complete_project(tmp_path))
    rules_list.main(path, json=False)
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if "gopher_short_doc" in line)
    assert "≥ 50" in line
    assert "28.57" in line
    rules_list.main(path, json=True)
    assert [row["code"] for row in json.loads(capsys.readouterr().out)] == [rule.code for rule in catalog.rules()]
