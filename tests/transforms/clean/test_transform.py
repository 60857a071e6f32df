import dataclasses
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import batch
from support.places import SHIPPED
from support.text_oracle import FIRST_IS_SLOW, PAGES, TEXTS

from pipelines.core import params
from transforms.clean import rules
from transforms.clean import transform as clean
from transforms.clean.config import CleanConfig
from transforms.clean.transform import clean_batch
from transforms.core import schemas
from transforms.core.parts import Part
from transforms.text.decontaminate import overlap as decontaminate

CONFIG = params.read(SHIPPED).section("clean", CleanConfig)
GOOD = (
    "The committee met on Monday to discuss the new budget, and most members agreed that schools should have priority. "
    "After a long debate with several interruptions, they voted in favour of the plan. Teachers welcomed this decision "
    "because class sizes had grown every year, while parents hoped for better books, safer buildings and more music."
)
PICTURE, OTHER = {"bytes": b"picture", "path": "a.jpg"}, {"bytes": b"other", "path": "a.jpg"}


@pytest.fixture(scope="module")
def detector() -> clean.Tools:
    return clean.load()


def read(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Returns the columns that the stage reads, for sample rows that are text unless they say otherwise."""
    full = [{"sample_id": str(k), "modality": "text", **row} for k, row in enumerate(rows)]
    samples = batch(schemas.SAMPLES, full)
    columns = {f"samples.{c}": samples[c] for c in clean.READS["samples"]}
    return pa.record_batch({"sample_id": samples["sample_id"], **columns})


def run(rows: list[dict[str, Any]], detector: clean.Tools, **changes: Any) -> list[dict[str, Any]]:
    """Cleans `rows`; a change of a section is a mapping of its keys."""
    sections = {
        name: dataclasses.replace(getattr(CONFIG, name), **new) if name != "extra" else new
        for name, new in changes.items()
    }
    return clean_batch(read(rows), dataclasses.replace(CONFIG, **sections), detector).to_pylist()


def test_a_good_text_is_kept_with_every_value(detector: clean.Tools) -> None:
    (row,) = run([{"text": GOOD}], detector)
    assert row["kept"] is True
    assert row["reasons"] == []
    assert row["rule_quality"] == 1.0
    assert row["language"] == "en"
    absent = {"c4_text", "boilerplate_lines", "extra_shouting", *(name for name, _ in decontaminate.VALUES)}
    assert {name for name in schemas.CLEAN.names if row[name] is None} == absent
    assert (row["chars"], row["lines"]) == (len(GOOD), 1)


def test_a_text_lists_all_rules_that_it_fails(detector: clean.Tools) -> None:
    (row,) = run([{"text": "buy now\n" * 40}], detector)
    assert not row["kept"]
    codes = list(rules.REASONS)
    assert row["reasons"] == sorted(row["reasons"], key=codes.index)
    assert {"gopher_few_stop_words", "repetition_dup_lines", "repetition_top_2_gram", "repetition_dup_10_gram"} <= set(
        row["reasons"]
    )
    assert row["rule_quality"] == pytest.approx(1 - len(row["reasons"]) / 24)


@pytest.mark.parametrize("text", [None, "", " \n\t ", "\u200b\ufeff\x00"])
def test_a_text_without_words_is_empty_and_nothing_else(detector: clean.Tools, text: str | None) -> None:
    (row,) = run([{"text": text}], detector)
    assert row["reasons"] == ["empty"]
    assert row["rule_quality"] == 0.0
    assert row["key_hash"] is None
    assert row["language"] is None
    assert row["mean_word_length"] is None
    assert (row["clean_text"] is None) == (text is None)


def test_captions_are_normalised_and_tagged_but_not_judged(detector: clean.Tools) -> None:
    rows = [
        {"modality": "image", "text": "A dog\r\nruns over the green grass", "images": [PICTURE]},
        {"modality": "image", "text": None, "images": [PICTURE]},
        {"modality": "interleaved", "text": "", "images": [PICTURE]},
    ]
    caption, bare, blank = run(rows, detector, language={"allow": ("zh",)})
    assert caption["clean_text"] == "A dog\nruns over the green grass"
    assert (caption["language"], caption["words"], caption["lines"]) == ("en", 7, 2)
    for row in (caption, bare, blank):
        assert row["kept"] is True
        assert row["rule_quality"] is None
        assert row["nonsymbol_words"] is None
        assert row["key_hash"] is not None


def test_keys_tell_media_apart(detector: clean.Tools) -> None:
    rows = [
        {"text": "A dog"},
        {"modality": "image", "text": "A dog", "images": [PICTURE]},
        {"modality": "image", "text": "A dog", "images": [OTHER]},
        {"modality": "image", "text": "A dog", "images": [PICTURE, OTHER]},
        {"modality": "image", "text": "A dog", "images": [{"bytes": None, "path": "b.jpg"}]},
        {"modality": "video", "text": "A dog", "images": [PICTURE, OTHER], "image_times_s": [0.0, 1.0]},
        {"modality": "video", "text": "A dog", "images": [PICTURE, OTHER], "image_times_s": [0.0, 2.0]},
        {"modality": "audio", "text": "A dog", "audio": {"bytes": b"sound", "path": None}},
    ]
    keys = [row["key_hash"] for row in run(rows, detector)]
    assert len(set(keys)) == len(rows)
    same = run([{"modality": "image", "text": "a  DOG!", "images": [{"bytes": b"picture", "path": "x"}]}], detector)
    assert same[0]["key_hash"] == keys[1]


def test_only_allowed_languages_stay(detector: clean.Tools) -> None:
    chinese = "今天天气很好，我们一起去公园散步，看见许多人在那里跳舞唱歌，还有孩子放风筝，大家都觉得十分开心愉快。" * 2
    english, zh, empty = run(
        [{"text": GOOD}, {"text": chinese}, {"text": ""}], detector, language={"allow": ("en", "de")}
    )
    assert english["kept"]
    assert "language_not_allowed" in zh["reasons"]
    assert empty["reasons"] == ["empty"]
    unsure = run([{"text": GOOD}], detector, language={"allow": ("en",), "min_score": 1.0})[0]
    assert (unsure["language"], unsure["reasons"]) == ("und", ["language_not_allowed"])
    assert unsure["stop_words"] is None


def test_rules_of_spaced_scripts_are_off_for_chinese(detector: clean.Tools) -> None:
    text = (
        "今天的天气非常晴朗，我们决定去郊外的山上走一走，顺便看望住在那里的外公外婆。"
        "晚饭后大家坐在院子里聊起从前许多有趣故事，孩子听得入迷。"
    )
    (row,) = run([{"text": text}], detector)
    assert (row["language"], row["mean_word_length"], row["stop_words"]) == ("zh", None, None)
    assert row["kept"], row["reasons"]


def test_no_rows_make_a_batch_of_the_schema(detector: clean.Tools) -> None:
    found = clean_batch(read([]), CONFIG, detector)
    assert found.schema == schemas.CLEAN
    assert found.num_rows == 0


@FIRST_IS_SLOW
@given(st.lists(st.one_of(st.none(), TEXTS, PAGES), max_size=4))
def test_verdicts_follow_from_the_stored_values_and_rows_stand_alone(
    detector: clean.Tools, texts: list[str | None]
) -> None:
    rows = run([{"text": t} for t in texts], detector)
    assert rows == [{**run([{"text": t}], detector)[0], "sample_id": str(k)} for k, t in enumerate(texts)]
    for row in rows:
        values = {r.code: row[r.value] for r in rules.RULES if row[r.value] is not None and r.is_on(CONFIG)}
        limits = {r.code: (r.bound, r.limit(CONFIG)) for r in rules.RULES}
        fails = [c for c, v in values.items() if (v < limits[c][1] if limits[c][0] == "min" else v > limits[c][1])]
        assert row["reasons"] == (fails if row["words"] else ["empty"])
        assert row["kept"] == (not row["reasons"])
        assert row["rule_quality"] == pytest.approx(1 - len(row["reasons"]) / (len(values) + 1))


def test_every_code_is_unique_and_explained() -> None:
    codes = [rule.code for rule in rules.RULES]
    assert len(set(codes)) == len(codes)
    assert list(rules.REASONS) == ["empty", *codes, "language_not_allowed"]
    assert all(rule.value in schemas.CLEAN.names and rule.origin for rule in rules.RULES)
    assert all(rule.limit(CONFIG) >= 0 for rule in rules.RULES if not rule.threshold.startswith("extra."))


def test_a_family_that_is_off_measures_and_drops_nothing(detector: clean.Tools) -> None:
    page = {"text": GOOD + "\nfunction () { return; }\n"}
    (off,) = run([page], detector)
    (on,) = run([page], detector, c4={"drop": True}, fineweb={"drop": True})
    assert (off["kept"], off["c4_brace_lines"], off["c4_text"]) == (True, 0, GOOD)
    assert on["kept"]
    (code,) = run([{"text": GOOD.replace("plan", "{plan}")}], detector, c4={"drop": True})
    assert code["reasons"] == ["c4_braces"]
    (silent,) = run([{"text": "buy now\n" * 40}], detector, gopher={"drop": False}, repetition={"drop": False})
    assert (silent["kept"], silent["reasons"], silent["dup_line_ratio"]) == (True, [], 39 / 40)


def test_an_extra_rule_drops_when_it_is_named(detector: clean.Tools) -> None:
    loud = {"text": GOOD.upper().replace("THE", "the").replace(" AND ", " and ").replace(" OF ", " of ")}
    assert run([loud], detector)[0]["extra_shouting"] is None
    (row,) = run([loud], detector, extra={"shouting": 0.5})
    assert row["reasons"] == ["shouting"]
    assert row["extra_shouting"] > 0.9


def test_personal_data_is_replaced_before_anything_is_stored(detector: clean.Tools) -> None:
    (row,) = run([{"text": GOOD + " Write to jane.doe@mail.example.com today."}], detector)
    assert "jane.doe" not in str(row)
    (span,) = row["pii"]
    assert (span["kind"], row["pii_count"]) == ("email", 1)
    assert row["clean_text"][span["start"] : span["end"]].startswith("<EMAIL_")
    (seen,) = run([{"text": "Write to jane.doe@mail.example.com today."}], detector, pii={"mode": "detect"})
    assert seen["clean_text"][seen["pii"][0]["start"] : seen["pii"][0]["end"]] == "jane.doe@mail.example.com"


@pytest.mark.parametrize(
    ("section", "wrong", "message"),
    [
        ("language", {"allow": ("EN",)}, r"not \['EN'\]"),
        ("language", {"min_score": 1.5}, "not 1.5"),
        ("c4", {"min_sentences": -1}, "min_sentences must be at least 0, not -1"),
        ("fineweb", {"max_short_line_ratio": -0.1}, "max_short_line_ratio must be at least 0"),
    ],
)
def test_config_is_checked(section: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(getattr(CONFIG, section), **wrong)
    with pytest.raises(ValueError, match=r"unknown extra rules \['whispering'\]; available: shouting"):
        dataclasses.replace(CONFIG, extra={"whispering": 1.0})


def test_the_transform_maps_parts_to_parts(detector: clean.Tools) -> None:
    pipeline = beam.Pipeline()
    parts_in = pipeline | beam.Create([Part("p", "f", read([{"text": GOOD}]))]).with_output_types(Part)
    assert (parts_in | clean.Clean(CONFIG)).element_type is Part
