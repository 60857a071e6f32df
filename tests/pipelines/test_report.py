"""The report: true totals, a page that needs nothing and hides nothing, the same bytes every time."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import builders

from pipelines import report
from pipelines.catalog import views as catalog
from pipelines.core.project import Project
from pipelines.reporting import score_figures
from pipelines.reporting.config import ReportConfig
from scoring.core.errors import DataError
from transforms.core import schemas

ORDER = [*schemas.PARTS, "plan", "shards"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = builders.complete_project(tmp_path / "it's [a] page")
    builders.write_reference_metrics(project)
    return project


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that has its report; no test changes it."""
    project = builders.complete_project(tmp_path_factory.mktemp("it's [a] report"))
    builders.write_reference_metrics(project)
    report.run(project)
    return project


def page_in(project: Project) -> str:
    return report.page_path(project).read_text(encoding="utf-8")


def page_of(project: Project) -> str:
    report.run(project)
    return page_in(project)


def metrics_of(project: Project) -> dict[str, Any]:
    return dict(json.loads(project.metrics("report").read_text()))


class Balanced(HTMLParser):
    """Fails on a tag that is not closed, or closed by another."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_shows_every_section(reported: Project) -> None:
    page = page_in(reported)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert page.count("<svg ") == page.count("</desc>") == 13
    assert "has not run" not in page
    for words in (
        "gopher_short_doc",
        "moov atom not found",
        "quality.min_quality",
        "clean.gopher.min_words",
        "predictability",
    ):
        assert words in page


def test_the_page_asks_nothing_of_a_network(reported: Project) -> None:
    page = page_in(reported).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|//\w+\.\w|src=|url\(|@import|<link|<script|<iframe", page)


def test_text_of_the_data_cannot_become_part_of_the_page(reported: Project) -> None:
    page = page_in(reported)
    assert "Rivers &lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; hills.␛[31m" in page
    assert "<script" not in page
    assert "\x1b" not in page


def test_the_same_data_gives_the_same_bytes_however_it_lies_in_parts(project: Project, tmp_path: Path) -> None:
    page = page_of(project)
    written = {p.relative_to(project.root): p.read_bytes() for p in project.root.glob("[pm]*/*") if p.is_file()}
    assert page_of(project) == page
    other = builders.complete_project(tmp_path / "other", parts_as=builders.layout(2))
    builders.write_reference_metrics(other)
    assert page_of(other) == page
    assert {p: (other.root / p).read_bytes() for p in written} == written


def test_nothing_written_tells_where_the_project_lies(reported: Project) -> None:
    for path in [report.page_path(reported), reported.metrics("report"), *(reported.root / "plots").iterdir()]:
        assert str(reported.root.parent) not in path.read_text(encoding="utf-8")


def test_metrics_hold_the_totals(reported: Project) -> None:
    found = metrics_of(reported)
    assert (found["inputs"], found["rows"], found["rejects"], found["read_in_part"], found["kept"]) == (15, 11, 4, 1, 6)
    assert found["dropped"] == {"clean": 3, "dedup": 1, "quality": 1}
    assert found["by_reason"]["clean.gopher_short_doc"] == 2
    assert found["by_source"]["broken"] == {
        "inputs": 2, "rejects": 2, "rows": 0, "kept": 0, "dropped": {"clean": 0, "dedup": 0, "quality": 0},
    }  # fmt: skip
    assert found["tokens"] == {"text": 182, "image": 256, "video": 256, "audio": 125}
    assert found["plan"]["rows"] == 5


def test_plots_are_tables_for_dvc(reported: Project) -> None:
    def rows(name: str) -> list[dict[str, str]]:
        with (reported.root / "plots" / f"{name}.csv").open(encoding="utf-8") as file:
            return list(csv.DictReader(file))

    assert {r["stage"]: int(r["rows"]) for r in rows("funnel")} == {
        "kept": 6, "clean": 3, "dedup": 1, "quality": 1, "rejects": 4,
    }  # fmt: skip
    assert [(r["shard"], r["tokens"]) for r in rows("shard_cost")] == [("0", "426"), ("1", "318")]
    assert sum(int(r["rows"]) for r in rows("scores") if r["score"] == "quality") == 4
    assert {r["modality"] for r in rows("tokens")} == {"text", "image", "video", "audio"}


@pytest.mark.parametrize("until", ["samples", "clean", "quality", "tokens", "static", "lqs", "plan"])
def test_a_half_finished_run_has_a_report(tmp_path: Path, until: str) -> None:
    project = builders.complete_project(tmp_path, until=until)
    page = page_of(project)
    ran = ORDER[: ORDER.index(until) + 1]
    for stage, folder in (("quality", "quality"), ("static", "static"), ("lqs", "lqs"), ("plan", "plan")):
        assert (f"The stage {stage} has not run yet." in page) == (folder not in ran)
    assert "kept" in report.summary(project)


def test_a_corpus_without_text_says_why_scores_are_missing(tmp_path: Path) -> None:
    media = {"part-bb-0000.parquet": builders.SAMPLES[builders.PARTS[2]]}
    project = builders.complete_project(tmp_path, until="lqs", parts_as=media)
    page = page_of(project)
    assert "No row has gradients" in page
    assert "No row has this score." in page
    assert "No rows were dropped." in page
    assert "No row failed just one rule by a small margin." in page


def test_a_corpus_of_rejects_alone(tmp_path: Path) -> None:
    project = builders.empty_project(tmp_path)
    for folder in schemas.PARTS:
        builders.write_rows(
            project, folder, builders.PARTS[3], builders.REJECTS[builders.PARTS[3]] * (folder == "rejects")
        )
    assert "got a list" in page_of(project)
    assert metrics_of(project)["inputs"] == 2
    assert "2 inputs became 0 rows and 2 rejects" in report.summary(project)


def test_examples_come_from_both_ends(tmp_path: Path) -> None:
    project = builders.complete_project(tmp_path, report={"examples": 1})
    page = page_of(project)
    highest, lowest = page[page.index("Highest score") :].split("Lowest score")
    assert re.findall(r"<code>(s\d\d)</code>", highest) == ["s00"]
    assert re.findall(r"<code>(s\d\d)</code>", lowest) == ["s08"]
    none = builders.complete_project(tmp_path / "none", report={"examples": 0})
    assert "Examples" not in page_of(none)


def test_the_summary_tells_the_run_in_a_few_lines(reported: Project) -> None:
    assert report.summary(reported).splitlines() == [
        "15 inputs became 11 rows and 4 rejects",
        "          2 not_an_object",
        "          1 bad_json",
        "          1 broken_video",
        "          1 partly read: broken_audio",
        "5 rows dropped",
        "          3 by clean (gopher_short_doc 2, empty 1, gopher_few_stop_words 1)",
        "          1 by dedup (duplicate_exact 1)",
        "          1 by quality (low_quality 1)",
        "6 rows kept (54.5 % of rows)",
        "warning: source web loses 5 of 8 rows (62 %): most fail gopher_short_doc 2, duplicate_exact 1, empty 1. "
        "Examples: s01, s02, s03",
        "819 tokens: text 182, image 256, video 256, audio 125",
        "5 rows in 2 shards, 4.46T FLOPs",
        f"report: {report.page_path(reported)}",
    ]


def test_large_losses_stand_on_top_of_the_page_and_in_the_metrics(reported: Project, tmp_path: Path) -> None:
    page = page_in(reported)
    assert page.index("Large losses") < page.index("Inputs and outcomes")
    assert "most fail gopher_short_doc 2, duplicate_exact 1, empty 1" in page
    [loss] = metrics_of(reported)["losses"]
    assert (loss["source"], loss["dropped"], loss["examples"]) == ("web", 5, ["s01", "s02", "s03"])
    media = {"part-bb-0000.parquet": builders.SAMPLES[builders.PARTS[2]]}
    project = builders.complete_project(tmp_path, until="lqs", parts_as=media)
    assert "Large losses" not in page_of(project)
    assert "warning" not in report.summary(project)


def change(project: Project, folder: str, sample_id: str, **values: Any) -> None:
    for part, rows in builders.SAMPLES.items():
        if any(r["sample_id"] == sample_id for r in rows):
            own = [dict(builders._own(folder, r)) for r in rows]
            changed = [{**r, **values} if r["sample_id"] == sample_id else r for r in own]
            builders.write_rows(project, folder, part, changed)


def test_a_row_without_a_verdict_is_a_breach(project: Project) -> None:
    change(project, "quality", "s04", kept=None, reasons=None)
    with pytest.raises(DataError, match="1 rows that no filter kept or dropped") as caught:
        report.run(project)
    assert caught.value.exit_code == 1
    assert not report.page_path(project).exists()


def test_a_planned_row_that_was_dropped_since_is_a_breach(project: Project) -> None:
    change(project, "quality", "s04", kept=False, reasons=["low_quality"])
    with pytest.raises(DataError, match="1 planned rows that a filter dropped"):
        report.run(project)


def test_a_planned_row_that_is_in_no_shard_is_a_breach(project: Project) -> None:
    path = project.folder("shards") / "shard-00001.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(DataError, match="1 planned rows that are in no shard"):
        report.run(project)


def test_a_planned_row_that_is_no_sample_is_a_breach(project: Project) -> None:
    path = project.folder("plan") / "plan.parquet"
    plan = pq.read_table(path)
    ids = pa.array(["gone", *plan["sample_id"].to_pylist()[1:]])
    pq.write_table(plan.set_column(1, "sample_id", ids), path)
    catalog.build(project)
    with pytest.raises(DataError, match="1 planned rows that are not samples"):
        report.run(project)


def test_inputs_that_ingest_counted_must_all_be_found(project: Project) -> None:
    counts = {"web": {"inputs": 10, "rows": 8, "rejects": 2}}
    project.metrics("ingest").write_text(json.dumps({"by_source": counts}), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"source web: ingest counted 10 inputs, the catalog 9; .* 2 rejects, the catalog 1"
    ):
        report.run(project)


def test_the_segments_of_a_video_are_one_input(tmp_path: Path) -> None:
    project = builders.complete_project(tmp_path, until="clean")
    video = builders.SAMPLES[builders.PARTS[2]][1]
    rows = [video, {**video, "sample_id": "s09-1", "segment": 1}]
    builders.write_rows(project, "samples", builders.PARTS[2], rows)
    builders.write_rows(
        project, "clean", builders.PARTS[2], [{"sample_id": r["sample_id"], **builders.KEPT} for r in rows]
    )
    report.run(project)
    assert metrics_of(project)["by_source"]["media"] == {
        "inputs": 2, "rejects": 1, "rows": 2, "kept": 2, "dropped": {"clean": 0},
    }  # fmt: skip


@pytest.mark.parametrize("examples", [-1, 101])
def test_config_is_checked(examples: int) -> None:
    with pytest.raises(ValueError, match=str(examples)):
        ReportConfig(title="a", examples=examples)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200), st.sampled_from(score_figures.QUANTILES))
def test_quantiles_of_bins_are_those_of_the_values(values: list[float], share: float) -> None:
    bins = score_figures.FINE_BINS
    counts = np.histogram(values, bins, (0, 1))[0].tolist()
    below, above = (np.quantile(values, share, method=m) for m in ("lower", "higher"))
    assert below - 1 / bins <= score_figures.quantile(counts, share) <= above + 1 / bins
