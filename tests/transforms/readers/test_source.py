"""A source's keys, and which column is which field."""

from typing import Any

import pytest
from support.reading import source

from transforms.readers.columns import Columns
from transforms.readers.source import HtmlConfig

BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "Web"}, "name 'Web'"),
    ({"name": "a/b"}, "name 'a/b'"),
    ({"name": ""}, "name ''"),
    ({"paths": ()}, "paths of src must not be empty"),
    ({"paths": ("",)}, "paths of src must not be empty"),
    ({"columns": {"body": "x"}}, "unknown fields ['body']; fields are id, text"),
    ({"columns": {"text": "{}"}}, "text template '{}'"),
    ({"columns": {"text": "{a!r}"}}, "text template '{a!r}'"),
    ({"columns": {"text": "{a:>3}"}}, "text template '{a:>3}'"),
    ({"columns": {"text": "{a"}}, "expected '}'"),
    ({"markup": "html", "columns": {"text": "{a}"}}, "takes one text column, not a template"),
    ({"encoding": "utf-9"}, "unknown encoding 'utf-9'"),
    ({"encoding": "utf-16"}, "encoding 'utf-16' is not supported"),
]


@pytest.mark.parametrize(("keys", "words"), BAD, ids=str)
def test_a_bad_source_is_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the words are compared as a whole)
        source(**keys)
    assert words in str(caught.value)


def test_columns_that_params_name_must_be_there() -> None:
    columns = Columns.of(source(columns={"text": "{q} {a}", "label": "y", "image": ""}))
    assert columns.named == {"q": "text", "a": "text", "y": "label"}
    assert columns.missing(["q", "a", "y"]) is None
    fault = columns.missing(["q", "b"])
    assert fault is not None
    assert fault.error == "no column 'a', 'y'; columns: q, b"
    assert "image" not in columns.taken
    assert ("images", "image") in columns.media


def test_a_table_needs_a_text_or_a_medium() -> None:
    assert Columns.of(source()).missing(["audio"]) is None
    fault = Columns.of(source()).missing([f"c{k}" for k in range(30)])
    assert fault is not None
    assert fault.reason == "missing_column"
    assert fault.error.endswith("c19, …")


@pytest.mark.parametrize("keys", [{"timeout_s": 0.0}, {"timeout_s": 4000.0}, {"max_bytes": 0}, {"max_bytes": 1 << 30}])
def test_limits_of_pages_are_checked(keys: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be in"):
        HtmlConfig(**keys)
