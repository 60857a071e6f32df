"""One entry of `ingest.sources`: which files, how to read them, which column is what."""

import codecs
import re
import string
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from scoring.core.config import config

FIELDS = ("id", "text", "label", "domain", "image", "images", "video", "audio")
Format = Literal[
    "auto", "jsonl", "json", "parquet", "csv", "text", "html", "warc", "webdataset", "media", "huggingface"
]  # fmt: skip


@config
class HtmlConfig:
    """How the main text of HTML pages is found."""

    extractor: Literal["trafilatura", "resiliparse"] = "trafilatura"  # the best | the fastest
    timeout_s: float = 10.0  # of computing, a page
    max_bytes: int = 10485760  # of a page, unpacked

    def __post_init__(self) -> None:
        if not 0.01 <= self.timeout_s <= 3600:
            raise ValueError(f"timeout_s {self.timeout_s} must be in [0.01, 3600]")
        if not 1 <= self.max_bytes <= 1 << 28:
            raise ValueError(f"max_bytes {self.max_bytes} must be in [1, 268435456]")


@config
class SourceConfig:
    """A source. Only `name` and `paths` are needed; the other keys are for sources that differ from the rule."""

    name: str  # unique; begins every sample id of the source
    paths: tuple[str, ...]  # files, folders or globs, relative to the project
    format: Format = "auto"  # auto: each file by its content and name
    columns: Mapping[str, str] = field(default_factory=dict)  # our field → the source's column; "" switches a field off
    media_root: str | None = None  # base of the paths in rows; null: the folder of the row's file
    encoding: str = "utf-8"
    markup: Literal["plain", "html"] = "plain"  # of the text column of rows; html: its main text is extracted
    html: HtmlConfig = HtmlConfig()
    whole_file: bool = True  # text files: one sample a file; false: one a paragraph
    split: str = "train"  # huggingface
    kwargs: Mapping[str, Any] = field(default_factory=dict)  # huggingface: further arguments of load_dataset

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9_-]+", self.name):
            raise ValueError(f"name {self.name!r} may hold only a-z, 0-9, _ and -")
        if not self.paths or "" in self.paths:
            raise ValueError(f"paths of {self.name} must not be empty")
        unknown = sorted(set(self.columns) - set(FIELDS))
        if unknown:
            raise ValueError(f"columns of {self.name} map unknown fields {unknown}; fields are {', '.join(FIELDS)}")
        _check_template(self.columns.get("text", ""))
        if self.markup == "html" and "{" in self.columns.get("text", ""):
            raise ValueError(f"markup html of {self.name} takes one text column, not a template")
        _check_encoding(self.encoding)


def _check_template(template: str) -> None:
    """Raises ValueError for a text template with an unnamed or formatted place."""
    for _, name, form, conversion in string.Formatter().parse(template):
        if name is not None and (not name or form or conversion):
            raise ValueError(f"text template {template!r} may only use fields like {{column}}; write {{{{ for a brace")


def _check_encoding(name: str) -> None:
    """Raises ValueError for an encoding whose lines do not end in the byte 10, such as UTF-16."""
    try:
        codecs.lookup(name)
        splits = "a\n".encode(name) == b"a\n"
    except (LookupError, UnicodeError) as error:
        raise ValueError(f"unknown encoding {name!r}") from error
    if not splits:
        raise ValueError(f"encoding {name!r} is not supported: convert the files to UTF-8, for example with iconv")


@config
class TextSource:
    """Files of texts, and the columns that make up a text, joined by newlines in this order."""

    name: str
    paths: tuple[str, ...]  # files, folders or globs, relative to the project
    columns: tuple[str, ...] = ("text",)
    format: Literal["auto", "jsonl", "json", "parquet", "csv", "text"] = "auto"
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError(f"columns of {self.name} must not be empty")
        self.source  # noqa: B018 (checks name, paths, columns and encoding)

    @property
    def source(self) -> SourceConfig:
        """The same as ingest's readers take it."""
        text = "".join(f"{{{column}}}" for column in self.columns)
        columns = {"text": text}
        return SourceConfig(
            name=self.name, paths=self.paths, columns=columns, format=self.format, encoding=self.encoding
        )
