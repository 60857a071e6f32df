"""Files of texts that params name beside the sources: benchmarks, labels, targets. `readers.text_source` reads them."""

import codecs
import re
import string
from collections.abc import Sequence
from typing import Literal

from scoring.core.config import config


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
        check_files(self.name, self.paths, self.encoding)
        check_template("".join(f"{{{column}}}" for column in self.columns))


def check_files(name: str, paths: Sequence[str], encoding: str) -> None:
    """Raises ValueError unless files can be read by this entry of params: its name, paths and encoding."""
    if not re.fullmatch(r"[a-z0-9_-]+", name):
        raise ValueError(f"name {name!r} may hold only a-z, 0-9, _ and -")
    if not paths or "" in paths:
        raise ValueError(f"paths of {name} must not be empty")
    _check_encoding(encoding)


def _check_encoding(name: str) -> None:
    """Raises ValueError for an encoding whose lines do not end in the byte 10, such as UTF-16."""
    try:
        codecs.lookup(name)
        splits = "a\n".encode(name) == b"a\n"
    except (LookupError, UnicodeError) as error:
        raise ValueError(f"unknown encoding {name!r}") from error
    if not splits:
        raise ValueError(f"encoding {name!r} is not supported: convert the files to UTF-8, for example with iconv")


def check_template(template: str) -> None:
    """Raises ValueError for a text template with an unnamed or formatted place."""
    for _, name, form, conversion in string.Formatter().parse(template):
        if name is not None and (not name or form or conversion):
            raise ValueError(f"text template {template!r} may only use fields like {{column}}; write {{{{ for a brace")
