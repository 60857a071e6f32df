"""Other texts that params refer to: benchmarks, target sets, labelled pages. Files are read completely or not at all.

A row that cannot be read is an error here, since its loss would go unnoticed; `ingest` is where faulty
sources belong.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scoring.core import files
from scoring.core.errors import ConfigError, DataError
from transforms.core.parts import digest
from transforms.core.text_files import TextSource
from transforms.decode.probe import HEAD_BYTES
from transforms.readers.base import BrokenError, Extent, Fault, Item, chunks, compression
from transforms.readers.columns import has
from transforms.readers.csv_table import read_csv
from transforms.readers.files import list_files
from transforms.readers.json_array import read_json
from transforms.readers.jsonl import read_jsonl
from transforms.readers.kinds import reader_of
from transforms.readers.parquet import read_parquet
from transforms.readers.source import SourceConfig
from transforms.readers.text import read_text

READERS: Mapping[str, Callable[[Extent], Iterator[Item]]] = {
    "jsonl": read_jsonl, "json": read_json, "parquet": read_parquet, "csv": read_csv, "text": read_text,
}  # fmt: skip
MAX_ROW_BYTES = 64 << 20


class Use(NamedTuple):
    """What the texts are for, in the words of an error: `benchmark`, and where params name them."""

    word: str
    where: str


def sources_digest(root: Path, sources: Sequence[TextSource], use: Use) -> str:
    """Returns the digest of the bytes of all files that `sources` name, and of how they are read.

    Raises:
      ConfigError: a path matches no file, or a file cannot be read.
    """
    return digest([[s.name, s.columns, s.format, s.encoding, _digests(root, s, use)] for s in by_name(sources)])


def _as_source(source: TextSource) -> SourceConfig:
    """Returns `source` as ingest's readers take it; exports of Label Studio are JSON."""
    kind = "json" if str(source.format) == "label_studio" else source.format
    columns = {"text": "".join(f"{{{column}}}" for column in source.columns)}
    return SourceConfig(name=source.name, paths=source.paths, format=kind, columns=columns, encoding=source.encoding)


def by_name(sources: Sequence[TextSource]) -> list[TextSource]:
    """Returns `sources` in the order of their names."""
    return sorted(sources, key=lambda s: s.name)


def _digests(root: Path, source: TextSource, use: Use) -> list[tuple[str, str]]:
    try:
        return [(uri, files.file_digest(root / uri)) for uri in _uris(root, source, use)]
    except OSError as error:
        raise _unreadable(source, use, str(error)) from error


def _uris(root: Path, source: TextSource, use: Use) -> list[str]:
    try:
        return list_files(root, _as_source(source))
    except ConfigError as error:
        what, remedy = str(error).splitlines()[0].removeprefix("source "), f"relative paths start at {root}"
        raise ConfigError(f"{use.word} {what}", where=use.where, remedy=remedy) from error


def _reader(root: Path, source: TextSource, use: Use, uri: str) -> Callable[[Extent], Iterator[Item]]:
    """Returns the reader of a file, by its content and name."""
    path = root / uri
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        packed = bool(compression(head))
        found, words = reader_of(_as_source(source), next(chunks(path), b"")[:HEAD_BYTES], path.name, packed=packed)
    except (OSError, BrokenError) as error:
        raise _unreadable(source, use, str(error)) from error
    if found not in READERS:
        raise _unreadable(source, use, f"{uri}: {words or found}")
    return READERS[found]


def _unreadable(source: TextSource, use: Use, words: str) -> ConfigError:
    remedy = f"supported formats are {', '.join(READERS)}; set `format` if the file name does not show it"
    return ConfigError(f"{use.word} {source.name}: {words}", where=use.where, remedy=remedy)


def read_texts(root: Path, source: TextSource, use: Use) -> Iterator[str]:
    """Yields the text of every row, in the order of files and rows: its columns joined by newlines.

    Raises:
      ConfigError, DataError: as `read_rows`.
    """
    for _, row in read_rows(root, source, use, dict.fromkeys(source.columns, "columns")):
        yield text_of(row, source.columns)


def read_rows(
    root: Path, source: TextSource, use: Use, columns: Mapping[str, str]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yields file and row, in the order of files and rows. `columns` maps each column to the key that names it.

    Raises:
      ConfigError: as `sources_digest`, or no row of a file has one of the columns.
      DataError: a row cannot be read.
    """
    for uri in _uris(root, source, use):
        reader = _reader(root, source, use, uri)
        missing, seen = dict(columns), dict[str, None]()
        for item in reader(Extent(root, root / uri, _as_source(source), MAX_ROW_BYTES)):
            if isinstance(item, Fault):
                raise _fault(source, use, uri, item)
            for column in [c for c in missing if c in item.fields]:
                del missing[column]
            if missing:
                seen |= dict.fromkeys(item.fields)
            yield uri, item.fields
        if missing:
            what = f"{use.word} {source.name}: no row of {uri} has column {', '.join(map(repr, missing))}; {has(seen)}"
            keys = " and ".join(f"`{key}`" for key in dict.fromkeys(missing.values()))
            raise ConfigError(what, where=use.where, remedy=f"set {keys} to existing columns")


def _fault(source: TextSource, use: Use, uri: str, fault: Fault) -> ConfigError | DataError:
    what = f"{use.word} {source.name}: {fault.reason} at {fault.position}: {fault.error}"
    if fault.reason == "missing_column":
        return ConfigError(f"{what} ({uri})", where=use.where, remedy="set `columns` to existing columns")
    remedy = f"fix or remove the row: every row of a {use.word} must be readable"
    return DataError(what, where=uri, remedy=remedy)


def text_of(row: Mapping[str, object], columns: Sequence[str]) -> str:
    """Returns the text of a row: its columns joined by newlines."""
    return "\n".join(piece for column in columns for piece in _pieces(row.get(column)))


def _pieces(value: object) -> Iterator[str]:
    """Yields every text and number in `value`, in order; a list of choices and nested columns are taken apart."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _pieces(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _pieces(inner)
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif value is not None:
        yield str(value).encode("utf-8", "replace").decode()
