"""Columns become fields: every shape of text and media, and nothing that a user had is dropped."""

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reading import source

from transforms.readers.base import Record
from transforms.readers.columns import Columns
from transforms.readers.fields import Fields, Media, Repair, RowError, as_json, media_of, to_fields


def fields(row: dict[str, Any], *, plain: bool = False, **columns: str) -> Fields:
    return to_fields(Record(0, row, plain), Columns.of(source(columns=columns)))


USER = {"role": "user", "content": "Who?"}
TURN = {"from": "gpt", "value": "Kane."}
PICTURE = {"type": "image_url", "image_url": {"url": "a.jpg"}}
PARTS = {"role": "user", "content": [PICTURE, {"type": "text", "text": "Who?"}, {"type": "audio", "value": "b.mp3"}]}

# (row, mapping, text, meta)
TEXTS: list[tuple[dict[str, Any], dict[str, str], str | None, Any]] = [
    ({"text": "a"}, {}, "a", None),
    ({"text": ""}, {}, "", None),
    ({"text": None}, {}, None, None),
    ({"text": math.nan}, {}, None, None),
    ({"text": 7}, {}, "7", None),
    ({"text": 1.5}, {}, "1.5", None),
    ({"text": "你好".encode()}, {}, "你好", None),
    ({"text": []}, {}, "", {"text": []}),
    ({"text": ["a", "b"]}, {}, "a\nb", {"text": ["a", "b"]}),
    ({"text": [USER, TURN]}, {}, "Who?\nKane.", {"text": [USER, TURN]}),
    ({"chosen": TURN}, {"text": "chosen"}, "Kane.", {"chosen": TURN}),
    ({"text": [{"role": "assistant", "content": None, "tool_calls": []}]}, {}, "",
     {"text": [{"role": "assistant", "content": None, "tool_calls": []}]}),
    ({"q": "Q", "a": "A", "n": 1}, {"text": "{q}\n\n{a}"}, "Q\n\nA", {"q": "Q", "a": "A", "n": 1}),
    ({"q": "Q"}, {"text": "{q}: {a}"}, "Q: ", {"q": "Q"}),
    ({"q": ["x", "y"], "a": 3}, {"text": "{{{q}}} {a}"}, "{x\ny} 3", {"q": ["x", "y"], "a": 3}),
    ({"text": "t", "body": "b"}, {"text": "body"}, "b", {"text": "t"}),
]  # fmt: skip


@pytest.mark.parametrize(("row", "columns", "text", "meta"), TEXTS, ids=str)
def test_a_text(row: dict[str, Any], columns: dict[str, str], text: str | None, meta: Any) -> None:
    found = fields(row, **columns)
    assert found.text == text
    assert (json.loads(found.meta) if found.meta else None) == meta


BAD: list[tuple[dict[str, Any], dict[str, str], str, str]] = [
    ({"text": True}, {}, "bad_value", "the text is a boolean"),
    ({"text": {"a": 1}}, {}, "bad_value", "but an object"),
    ({"text": ["a", 1]}, {}, "bad_value", "but a list"),
    ({"text": b"\xff"}, {}, "bad_encoding", "byte 0xff at 0"),
    ({"text": [{"role": "user", "content": 7}]}, {}, "bad_value", "content of a message is a int"),
    ({"text": [{"role": "user", "content": [{"type": "odd"}]}]}, {}, "bad_value", "type 'odd'"),
    ({"id": 1, "body": "x"}, {}, "missing_column", "no text column (text) and no media column"),
    ({}, {}, "missing_column", "there are no columns"),
    ({"x": 1}, {"text": "{q} {a}"}, "missing_column", "no text column (q, a)"),
    ({"text": "a", "image": 7}, {}, "bad_value", "image is not a valid image: expected a path or bytes, got a int"),
    ({"text": "a", "video": {"url": "x"}}, {}, "bad_value", "video is not a valid video"),
    ({"text": "a", "images": [{"bytes": None, "path": None}]}, {}, "bad_value", "got an object"),
]


@pytest.mark.parametrize(("row", "columns", "reason", "words"), BAD, ids=str)
def test_a_row_that_is_no_sample(row: dict[str, Any], columns: dict[str, str], reason: str, words: str) -> None:
    with pytest.raises(RowError) as caught:
        fields(row, **columns)
    assert caught.value.reason == reason
    assert words in caught.value.error


IMAGE = Media("image", "a.jpg")
MEDIA: list[tuple[dict[str, Any], dict[str, str], list[Media], Any]] = [
    ({"image": "a.jpg"}, {}, [IMAGE], None),
    ({"image": None, "images": [], "text": "a", "audio": ""}, {}, [], None),
    ({"images": ["a.jpg", None, "b.jpg"]}, {}, [IMAGE, Media("image", "b.jpg")], None),
    ({"images": [{"bytes": b"x", "path": "a.jpg"}]}, {}, [Media("image", "a.jpg", b"x")], None),
    ({"image": {"path": "a.jpg", "alt": "A"}}, {}, [IMAGE], {"image": {"path": "a.jpg", "alt": "A"}}),
    ({"image_bytes": [b"x"], "images": ["p"]}, {"images": "image_bytes"}, [Media("image", None, b"x")],
     {"images": ["p"]}),
    ({"videos": ["a.mp4"], "audios": ["b.mp3"]}, {}, [Media("video", "a.mp4"), Media("audio", "b.mp3")], None),
    ({"text": "a", "image": 7}, {"image": ""}, [], {"image": 7}),
]  # fmt: skip


@pytest.mark.parametrize(("row", "columns", "media", "meta"), MEDIA, ids=str)
def test_media(row: dict[str, Any], columns: dict[str, str], media: list[Media], meta: Any) -> None:
    found = fields(row, **columns)
    assert list(found.media) == media
    assert media_of(row, Columns.of(source(columns=columns))) == media
    assert (json.loads(found.meta) if found.meta else None) == meta
    assert not found.in_messages


def test_media_in_messages() -> None:
    found = fields({"messages": [PARTS, TURN]}, text="messages")
    assert found.text == "Who?\nKane."
    assert found.media == (IMAGE, Media("audio", "b.mp3"))
    assert found.in_messages
    assert media_of({"messages": [PARTS]}, Columns.of(source(columns={"text": "messages"}))) == list(found.media)


def test_media_of_a_bad_row_are_none() -> None:
    assert media_of({"image": 7}, Columns.of(source())) == []


SCALARS: list[tuple[Any, str | None]] = [
    ("x", "x"), ("", None), (None, None), (math.nan, None), (7, "7"), (1.0, "1.0"), (True, "true"),
    (["a", "b"], '["a","b"]'), ({"$oid": "f"}, '{"$oid":"f"}'), (2**70, str(2**70)),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), SCALARS, ids=str)
def test_ids_labels_and_domains_are_text(value: Any, expected: str | None) -> None:
    found = fields({"text": "t", "id": value, "label": value, "domain": value})
    assert (found.own_id, found.label, found.domain, found.meta) == (expected, expected, expected, None)


def test_a_column_may_be_two_fields() -> None:
    found = fields({"url": "u", "text": "t"}, id="url", domain="url")
    assert (found.own_id, found.domain, found.meta) == ("u", "u", None)


def test_what_utf8_or_a_database_cannot_hold_is_repaired_and_counted() -> None:
    row = {"text": "a\ud800b\0", "id": "i\0", "label": "\udfff", "m": {"k\0": ["\ud800", "é"]}}
    found = fields(row)
    assert (found.text, found.own_id, found.label) == ("a\ufffdb", "i", "\ufffd")
    assert found.meta == '{"m":{"k":["\ufffd","é"]}}'
    assert found.repaired == 6
    assert fields({"text": "a\0", "m": ["\0", "\\u0000"]}, plain=True).meta == '{"m":["","\\\\u0000"]}'


VALUES: list[tuple[Any, str]] = [
    ({1: "a", None: 2, (1, 2): 3}, '{"1":"a","None":2,"(1, 2)":3}'),
    (dt.datetime(2024, 2, 29, 1, 2, 3), '"2024-02-29T01:02:03"'),
    (dt.date(2024, 2, 29), '"2024-02-29"'),
    (dt.timedelta(days=1), '"1 day, 0:00:00"'),
    (Decimal("1.50"), '"1.50"'),
    (b"\0\xff", '{"base64":"AP8="}'),
    ([math.nan, math.inf, -math.inf, 1e16], '["NaN","Infinity","-Infinity",1e+16]'),
    (2**100, str(2**100)),
    ((1, {2}), "[1,[2]]"),
    ({"a": {"b": {"c": None}}}, '{"a":{"b":{"c":null}}}'),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=str)
def test_any_value_is_json_in_meta(value: Any, expected: str) -> None:
    assert as_json(value, Repair()) == expected
    assert fields({"text": "t", "m": value}).meta == '{"m":' + expected + "}"


def test_a_row_nested_too_deeply_is_a_fault() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RowError, match="nested too deeply"):
        fields({"text": "t", "m": deep})


def test_nesting_beyond_the_fast_writer(tmp_path: object) -> None:
    row = orjson.loads('{"text": "t", "m": ' + "[" * 300 + "]" * 300 + "}")
    assert json.loads(fields(row, plain=True).meta or "") == {"m": row["m"]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3), max_leaves=8,
)  # fmt: skip


@given(
    row=st.dictionaries(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4), JSON, max_size=4
    )
)
@settings(max_examples=100, deadline=None)
def test_both_writers_of_meta_agree_and_lose_nothing(row: dict[str, Any]) -> None:
    row = {f"_{k}": v for k, v in json.loads(json.dumps(row).replace("\\u0000", "")).items()}
    fast, slow = (fields({"text": "t", **row}, plain=p).meta for p in (True, False))
    if not row:
        assert fast is slow is None
        return
    assert json.loads(fast or "") == json.loads(slow or "") == row
