"""One entry of `ingest.sources`: which files, how to read them, which column is what."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from scoring.core.config import config
from transforms.core.text_files import check_files, check_template

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
    """A source. Only `name` and `paths` are required."""

    name: str  # unique; begins every sample id of the source
    paths: tuple[str, ...]  # files, folders or globs, relative to the project
    format: Format = "auto"  # auto: each file by its content and name
    columns: Mapping[str, str] = field(default_factory=dict)  # our field → the source's column; "" switches a field off
    media_root: str | None = None  # base of the paths in rows; null: the folder of the row's file
    encoding: str = "utf-8"
    markup: Literal["plain", "html"] = "plain"  # of the text column of rows; html: its main text is extracted
    html: HtmlConfig = HtmlConfig()
    whole_file: bool = True  # text files: one sample per file; false: one per paragraph
    split: str = "train"  # huggingface
    kwargs: Mapping[str, object] = field(default_factory=dict)  # huggingface: further arguments of load_dataset

    def __post_init__(self) -> None:
        check_files(self.name, self.paths, self.encoding)
        unknown = sorted(set(self.columns) - set(FIELDS))
        if unknown:
            raise ValueError(f"columns of {self.name} map unknown fields {unknown}; fields are {', '.join(FIELDS)}")
        check_template(self.columns.get("text", ""))
        if self.markup == "html" and "{" in self.columns.get("text", ""):
            raise ValueError(f"markup html of {self.name} takes one text column, not a template")
