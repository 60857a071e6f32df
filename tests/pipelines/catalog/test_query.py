"""Queries: the shipped ones answer right, anything that is not a question is refused, results are written whole."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import builders
from support.places import ROOT

from pipelines.catalog import current, query, results
from pipelines.core.project import Project
from scoring.core.errors import ConfigError


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return builders.complete_project(tmp_path_factory.mktemp("a 'b' [c]"))


def ask(project: Project, text: str, **values: Any) -> list[dict[str, Any]]:
    with query.run_query(project, text, values) as result:
        return [dict(zip(result.columns, row, strict=True)) for row in result.rows()]


@pytest.mark.parametrize("name", sorted(query.shipped()))
def test_every_shipped_query_runs_and_says_what_it_answers(project: Project, name: str) -> None:
    assert query.shipped()[name].description
    assert ask(project, name)
    assert name in query.listing()


def test_shipped_queries_answer_right(project: Project) -> None:
    assert [r["sample_id"] for r in ask(project, "top_lqs", rows=2)] == ["s00", "s04"]
    assert ask(project, "bottom_lqs")[0]["sample_id"] == "s07"
    drops = [(r["stage"], r["reason"], r["source"], r["rows"]) for r in ask(project, "drops")]
    assert drops[0] == ("clean", "gopher_short_doc", "web", 2)
    assert len(drops) == 5
    assert ask(project, "drops")[0]["meaning"] == "the text has too few words"
    near = ask(project, "near_miss")
    assert [(r["sample_id"], r["value"], r["threshold"], r["percent_off"]) for r in near] == [("s05", 47, 50, -6)]
    assert ask(project, "near_miss", within=0.01) == []
    (cluster,) = ask(project, "duplicates")
    assert (cluster["survivor"], cluster["rows"], cluster["dropped_ids"]) == ("s00", 2, "s02")


def test_rows_to_review_come_with_the_most_doubtful_first(project: Project) -> None:
    rows = ask(project, "review")
    assert [(r["text_id"], r["label"], r["priority"]) for r in rows] == [("t2", "good", 1.7), ("t1", None, 1.2)]
    assert rows[0]["reasons"] == "model and label disagree, cluster outlier"
    assert [r["text_id"] for r in ask(project, "review", rows=1)] == ["t2"]


def test_without_labels_there_is_nothing_to_review(tmp_path: Path) -> None:
    project = builders.complete_project(tmp_path, until="clean")
    assert ask(project, "review") == []


def test_the_funnel_of_each_source_adds_up(project: Project) -> None:
    rows = {r["source"]: r for r in ask(project, "sources")}
    assert {s: r["inputs"] for s, r in rows.items()} == {"broken": 2, "media": 4, "web": 9}
    for row in rows.values():
        ends = ("rejects", "dropped_by_clean", "dropped_by_dedup", "dropped_by_quality", "kept")
        assert row["inputs"] == sum(row[end] for end in ends)


def test_tokens_shards_languages_and_rejects(project: Project) -> None:
    tokens = {r["modality"]: r["tokens"] for r in ask(project, "tokens_by_modality")}
    assert tokens == {"text": 182, "image": 256, "video": 306, "audio": 75}
    assert [(r["rows"], r["tokens"]) for r in ask(project, "shard_balance")] == [(3, 426), (2, 318)]
    assert [(r["language"], r["rows"], r["kept"]) for r in ask(project, "languages")] == [("en", 6, 2), ("zh", 1, 1)]
    broken = next(r for r in ask(project, "rejects") if r["reason"] == "broken_video")
    assert (broken["example"], broken["last_words"]) == ("clips/broken.mp4:0", "moov atom not found")


QUESTIONS = [
    "SELECT 1 AS one", "WITH a AS (SELECT 1 AS one) SELECT * FROM a", "FROM samples_all SELECT sample_id", "VALUES (1)",
    "DESCRIBE samples_all", "SUMMARIZE quality", "SHOW TABLES", "EXPLAIN SELECT 1", "EXPLAIN ANALYZE FROM samples",
    "  -- a comment\nSELECT 1;", "PIVOT fates ON modality IN ('text', 'image') USING count(*)",
    "explain (format json) select 1",
]  # fmt: skip


@pytest.mark.parametrize("sql", QUESTIONS)
def test_questions_are_answered(project: Project, sql: str) -> None:
    assert ask(project, sql)


REFUSED = [
    "COPY samples TO '{out}/a.csv'", "COPY (SELECT 1) TO '{data}/a.parquet'", "ATTACH '{out}/a.duckdb'",
    "INSTALL httpfs", "LOAD httpfs", "CREATE TABLE a (b INT)", "CREATE TEMP TABLE a AS SELECT 1",
    "CREATE VIEW a AS SELECT 1", "DROP VIEW samples", "DELETE FROM rules", "UPDATE rules SET threshold = 0",
    "INSERT INTO rules SELECT * FROM rules",
    "SET threads = 1", "SET enable_external_access = true", "PRAGMA database_list", "CALL enable_logging()",
    "CHECKPOINT",
    "EXPORT DATABASE '{out}/b'", "USE memory", "EXPLAIN ANALYZE COPY (SELECT 1) TO '{data}/a.csv'",
    "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{data}/a.csv'", "/* a */ EXPLAIN ANALYZE COPY (SELECT 1) TO '{data}/a.csv'",
    "PREPARE a AS SELECT 1", "SELECT 1; DROP VIEW samples", "", " ; ", "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM glob('/*')", "SELECT * FROM query('COPY (SELECT 1) TO ''{data}/a.csv''')",
    "SELECT set_config('threads', '1', false)",
]  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_no_question_is_refused_and_leaves_no_trace(project: Project, tmp_path: Path, sql: str) -> None:
    before = sorted(project.data.rglob("*"))
    data = str(project.data).replace("'", "''")
    with pytest.raises(ConfigError):
        ask(project, sql.format(out=tmp_path, data=data))
    assert list(tmp_path.iterdir()) == []
    assert sorted(project.data.rglob("*")) == before


def test_a_mistake_comes_with_duckdbs_words_and_what_there_is(project: Project) -> None:
    with pytest.raises(ConfigError, match="nonsense") as caught:
        ask(project, "SELECT nonsense FROM samples_all")
    assert "samples_all" in str(caught.value)
    assert caught.value.exit_code == 2
    with pytest.raises(ConfigError, match=r"views: .*rejects"):
        ask(project, "SELECT * FROM nowhere")
    with pytest.raises(ConfigError, match="top_lqs"):
        ask(project, "top_lsq")


def test_a_query_of_a_stage_that_has_not_run_says_so(tmp_path: Path) -> None:
    project = builders.complete_project(tmp_path, until="clean")
    with pytest.raises(ConfigError, match="later stages add more views"):
        ask(project, "top_lqs")
    assert ask(project, "sources")


def test_a_value_that_breaks_a_query_late_is_an_error_too(project: Project) -> None:
    with pytest.raises(ConfigError, match="boom"):
        ask(project, "SELECT CASE WHEN range > 900000 THEN error('boom') END FROM range(1000000)")


def test_words_of_the_data_in_an_error_do_not_steer_the_terminal(project: Project) -> None:
    with pytest.raises(ConfigError, match="Rivers") as caught:
        ask(project, "SELECT text::INTEGER FROM samples WHERE contains(text, 'Rivers')")
    assert "\x1b" not in str(caught.value)


NESTED = """
    SELECT sample_id, reasons, images AS pictures, quality, 'NaN'::DOUBLE AS n, sum(row) OVER () AS s
    FROM samples_all JOIN samples USING (sample_id, row) ORDER BY sample_id"""


def rendered(project: Project, sql: str, write: Any, *more: Any) -> str:
    stream = io.StringIO()
    with query.run_query(project, sql) as result:
        write(result, *more, stream)
    return stream.getvalue()


def test_json_is_one_array_of_objects(project: Project) -> None:
    found = json.loads(rendered(project, NESTED, results.write_json))
    assert len(found) == 11
    assert found[1]["reasons"] == ["gopher_short_doc", "gopher_few_stop_words"]
    assert found[8]["pictures"] == [{"bytes": b"\xff\xd8picture".hex(), "path": "a.jpg"}]
    assert found[0]["n"] is None
    assert isinstance(found[0]["s"], int)
    assert json.loads(rendered(project, "SELECT 1 AS a WHERE false", results.write_json)) == []
    with pytest.raises(ConfigError, match="duplicate column names: a"):
        rendered(project, "SELECT 1 AS a, 2 AS a", results.write_json)


def test_csv_keeps_every_value(project: Project) -> None:
    rows = list(
        csv.DictReader(io.StringIO(rendered(project, "SELECT sample_id, text, reasons FROM fates", results.write_csv)))
    )
    assert {r["sample_id"]: r["text"] for r in rows}["s00"] == builders.SAMPLES[builders.PARTS[0]][0]["text"]
    assert json.loads(rows[1]["reasons"]) == ["gopher_short_doc", "gopher_few_stop_words"]


def test_parquet_holds_the_same_rows(project: Project, tmp_path: Path) -> None:
    with query.run_query(project, "SELECT * FROM fates ORDER BY sample_id") as result:
        results.write_parquet(result, tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["sample_id"].to_pylist() == [f"s{k:02d}" for k in range(11)]
    assert table["reasons"].to_pylist()[3] == ["low_quality"]
    assert [p.name for p in tmp_path.iterdir()] == ["out.parquet"]


def test_a_failed_parquet_leaves_no_file(project: Project, tmp_path: Path) -> None:
    sql = "SELECT CASE WHEN range > 900000 THEN error('boom') END AS a FROM range(1000000)"
    with pytest.raises(ConfigError, match="boom"), query.run_query(project, sql) as result:
        results.write_parquet(result, tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_table_shows_some_rows_and_counts_the_rest(project: Project) -> None:
    out = rendered(project, "SELECT sample_id, 1234567 AS big, text FROM fates ORDER BY 1", results.write_table, 3)
    assert "3 of 11 rows shown, 8 more" in out
    assert "1,234,567" in out
    assert "\x1b" not in out
    assert "␛[31m" in out
    everything = rendered(project, "SELECT sample_id FROM fates", results.write_table, 0)
    assert "more" not in everything
    assert "s10" in everything
    assert "no rows" in rendered(project, "SELECT 1 AS a WHERE false", results.write_table, 5)


def test_wide_rows_are_records_and_long_text_is_cut(project: Project) -> None:
    out = rendered(
        project, "SELECT * REPLACE (repeat('x', 500) AS text) FROM samples_all LIMIT 1", results.write_table, 1
    )
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    assert lines["text"].endswith("x…")
    assert len(lines["text"]) < 150


def test_a_plan_keeps_its_lines(project: Project) -> None:
    assert "│ Function: READ_PARQUET" in rendered(project, "EXPLAIN FROM samples", results.write_table, 5)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""), (True, "yes"), (1234, "1,234"), (0.123456, "0.1235"), (3.0, "3"), (1.5e300, "1.5e+300"),
        (float("nan"), "nan"), (float("inf"), "inf"), (b"abc", "<3 bytes>"), (["a", 2], "a, 2"), ("a\nb\x07", "a b␇"),
        ("x" * 61, "x" * 59 + "…"),
    ],
)  # fmt: skip
def test_cells(value: Any, shown: str) -> None:
    assert results.cell(value) == shown


def test_memory_does_not_grow_with_the_result(project: Project, tmp_path: Path) -> None:
    """20 million rows of 8 bytes pass through, a few batches at a time."""
    before = pa.total_allocated_bytes()
    rows = most = 0
    with query.run_query(project, "SELECT range FROM range(20000000)") as result:
        for batch in result.stream():
            rows += batch.num_rows
            most = max(most, pa.total_allocated_bytes() - before)
    assert rows == 20_000_000
    assert most < 20_000_000


def test_main_writes_what_was_asked_for(project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = builders.save_params(project)
    plain = {"csv": False, "json": False, "parquet": None, "rows": 50}
    query.main(path, None, **plain)
    assert "near_miss" in capsys.readouterr().out
    query.main(path, "SELECT 7 AS a", **{**plain, "csv": True})
    assert capsys.readouterr().out == "a\n7\n"
    query.main(path, "SELECT 7 AS a", **{**plain, "json": True})
    assert json.loads(capsys.readouterr().out) == [{"a": 7}]
    query.main(path, "sources", **plain)
    assert "broken" in capsys.readouterr().out
    query.main(path, "SELECT 7 AS a", **{**plain, "parquet": tmp_path / "a.parquet"})
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == [{"a": 7}]


PLAIN_VALUES = """
    SELECT sample_id AS "a\x1b", row, quality, kept, NULL::VARCHAR AS gone, 'NaN'::DOUBLE AS n, 0.1::FLOAT AS f,
           2::UTINYINT AS u FROM samples_all ORDER BY sample_id"""


@pytest.mark.parametrize("write", [results.write_table, results.write_csv, results.write_json])
@pytest.mark.parametrize("sql", [PLAIN_VALUES, NESTED, "SELECT 1 AS a WHERE false", "EXPLAIN FROM samples"])
def test_values_without_arrow_read_as_those_with_it(project: Project, sql: str, write: Any) -> None:
    more = [5] if write is results.write_table else []
    stream = io.StringIO()
    with query.run_plain(project, sql) as result:
        assert isinstance(result, results.PlainResult) == (sql != NESTED)
        write(result, *more, stream)
    assert stream.getvalue() == rendered(project, sql, write, *more)


def test_a_plain_query_loads_no_arrow(project: Project) -> None:
    path = builders.save_params(project)
    current.fresh(project)
    code = (
        "import sys; from pathlib import Path; from pipelines.catalog import query\n"
        f"asked = Path({str(path)!r}), 'SELECT count(*) FROM samples_all'\n"
        "query.main(*asked, csv=True, json=False, parquet=None, rows=1)\n"
        "print([m for m in ('pyarrow', 'numpy', 'pydantic') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.split() == ["count_star()", "11", "[]"]
