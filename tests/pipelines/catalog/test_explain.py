"""Explain: the whole life of a row of every fate, found by id, by a beginning of it, or by its file."""

from pathlib import Path

import pytest
from support import builders

from pipelines.catalog.explain import explain
from pipelines.core.project import Project
from scoring.core.errors import ConfigError


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return builders.complete_project(tmp_path_factory.mktemp("a [b] 'c'"))


def lines(project: Project, wanted: str) -> list[str]:
    """Returns the lines of a life, runs of spaces as one."""
    return [" ".join(line.split()) for line in explain(project, wanted).splitlines()]


def test_a_kept_row_from_its_source_to_its_shard(project: Project) -> None:
    found = lines(project, "s00")
    assert found[0] == "sample s00"
    assert "read from web.jsonl at 0" in found
    assert "part part-aa-0000.parquet, row 0" in found
    assert "✓ gopher_short_doc 80 (keeps ≥ 50)" in found
    assert "✓ low_quality 0.91 (keeps ≥ 0.5)" in found
    assert "windows 1 from 0.89 to 0.93, 100 % of the tokens scored" in found
    assert "tokens: 90" in found
    assert "training FLOPs 5.4e+11" in found
    assert "static score: 0.4" in found
    assert "loss 5 4 3.5" in found
    assert "costate_dot 0.5 0.6 –" in found
    assert "score: 0.9, band challenge" in found
    assert found[-3:] == ["end: shard 0, position 0", "order rank 0, phase 0", "pool and tier shared, hot"]


def test_the_twelve_dimensions_come_with_weights_that_sum_to_one(project: Project) -> None:
    weights = [float(line.split("weight ")[1].split()[0]) for line in lines(project, "s00") if " weight " in line]
    assert len(weights) == 12
    assert sum(weights) == pytest.approx(1, abs=0.01)
    picture = lines(project, "s08")
    assert "length 0.500 weight 1.000 measured 3" in picture
    assert any(line.startswith("not defined lexical diversity, rare words") for line in picture)


def test_text_cannot_steer_the_terminal(project: Project) -> None:
    text = explain(project, "s00")
    assert "\x1b" not in text
    assert "<script>alert('x')</script> & hills.␛[31m" in text


def test_a_row_that_failed_rules(project: Project) -> None:
    found = lines(project, "s01")
    assert "clean: dropped, gopher_short_doc, gopher_few_stop_words" in found
    assert "✗ gopher_short_doc 2 (keeps ≥ 50) the text has too few words (clean.gopher.min_words)" in found
    assert "✓ gopher_few_alpha 0.98 (keeps ≥ 0.8)" in found
    assert "dedup: skipped, dropped by an earlier stage" in found
    assert found[-1] == "end: dropped by clean, gopher_short_doc, gopher_few_stop_words"


def test_a_rule_that_does_not_apply(project: Project) -> None:
    assert "– gopher_few_stop_words not measured" in lines(project, "s07")
    assert "– no rule applies to this kind of row" in lines(project, "s08")


def test_a_duplicate_names_the_row_that_stayed(project: Project) -> None:
    found = lines(project, "s02")
    assert "duplicate of s00, similarity 1" in found
    assert found[-1] == "end: dropped by dedup, duplicate_exact"


def test_a_row_of_low_quality(project: Project) -> None:
    found = lines(project, "s03")
    assert any(line.startswith("✗ low_quality 0.12 (keeps ≥ 0.5) the quality score is too low") for line in found)
    assert found[-1] == "end: dropped by quality, low_quality"


def test_a_row_that_the_plan_did_not_select(project: Project) -> None:
    found = lines(project, "s10")
    assert "note no gradient: static score alone" in found
    assert found[-1].startswith("end: kept by every filter, but not selected by the plan")


def test_a_row_that_was_read_in_part_shows_what_was_lost(project: Project) -> None:
    found = lines(project, "s09")
    assert "reject clips/b.mp4:0" in found
    assert "reason broken_audio: the audio cannot be decoded" in found
    assert "partly read yes; what was read became a sample" in found
    assert "end: shard 1, position 1" in found


@pytest.mark.parametrize("wanted", ["clips/broken.mp4", "clips/broken.mp4:0"])
def test_a_reject_tells_its_reason_and_the_decoders_words(project: Project, wanted: str) -> None:
    assert lines(project, wanted) == [
        "reject clips/broken.mp4:0",
        "source media",
        "stage ingest",
        "reason broken_video: the video cannot be decoded",
        "error ffmpeg ended with 183",
        "decoder output moov atom not found",
        "partly read no",
    ]


def test_a_row_of_a_file_is_found_by_its_position(project: Project) -> None:
    assert "reason bad_json: the line is not valid JSON" in lines(project, "web.jsonl:99")
    assert lines(project, "web.jsonl:3")[0] == "sample s03"
    assert lines(project, "pics/a.jpg")[0] == "sample s08"
    assert len([line for line in lines(project, "all_bad.jsonl") if line.startswith("reject ")]) == 2


def test_a_beginning_is_enough_where_it_is_unique(project: Project) -> None:
    assert lines(project, "s1")[0] == "sample s10"
    with pytest.raises(ConfigError, match=r"(?s)'s0' matches more than one.*s00, s01"):
        explain(project, "s0")
    with pytest.raises(ConfigError, match="more than one"):
        explain(project, "web.jsonl")


def test_an_unknown_id_comes_with_the_nearest(project: Project) -> None:
    with pytest.raises(ConfigError, match="closest ids are s07") as caught:
        explain(project, "x07")
    assert caught.value.exit_code == 2
    with pytest.raises(ConfigError, match="no sample or reject"):
        explain(project, "'; DROP VIEW samples; --")


@pytest.mark.parametrize("until", ["samples", "clean", "dedup", "quality", "tokens", "static", "lqs"])
def test_a_half_finished_run_tells_what_is_known(tmp_path: Path, until: str) -> None:
    project = builders.complete_project(tmp_path, until=until)
    assert lines(project, "s00")[-1] == "end: kept so far; not planned yet"
    assert lines(project, "s06")[-1] == (
        "end: kept so far; not planned yet" if until == "samples" else "end: dropped by clean, empty"
    )


def test_parts_that_are_done_are_told_before_their_folder_is_whole(project: Project, tmp_path: Path) -> None:
    half = builders.complete_project(tmp_path, until="clean")
    rows = [builders._own("dedup", r) for r in builders.SAMPLES[builders.PARTS[0]]]
    builders.write_rows(half, "dedup", builders.PARTS[0], rows)
    assert "duplicate of s00, similarity 1" in lines(half, "s02")
    assert not any(line.startswith("dedup") for line in lines(half, "s04"))
