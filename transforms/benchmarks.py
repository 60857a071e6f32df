"""Benchmark files become an index of their items' n-grams, and the index a file that workers map.

A benchmark is read whole or not at all: a row that cannot be read is an error, since what it holds would go
unnoticed. A row without enough words is no item and is counted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from scoring import files
from scoring.errors import ConfigError, DataError
from transforms import arrow_files
from transforms.decode.probe import HEAD_BYTES
from transforms.parts import digest
from transforms.readers.base import BrokenError, Extent, Fault, Item, Record, chunks, compression
from transforms.readers.csv_table import read_csv
from transforms.readers.files import list_files
from transforms.readers.json_array import read_json
from transforms.readers.jsonl import read_jsonl
from transforms.readers.kinds import reader_of
from transforms.readers.parquet import read_parquet
from transforms.readers.text import read_text
from transforms.text.decontaminate import BenchmarkConfig, DecontaminateConfig, Index, make_index, ngram_pairs

Clean = Callable[[pa.LargeStringArray], pa.LargeStringArray]

READERS: Mapping[str, Callable[[Extent], Iterator[Item]]] = {
    "jsonl": read_jsonl, "json": read_json, "parquet": read_parquet, "csv": read_csv, "text": read_text,
}  # fmt: skip
MAX_ROW_BYTES = 64 << 20
_BATCH_ITEMS = 4096
_WHERE = "params, clean.decontaminate.benchmarks"
_ARRAYS = ("hashes", "starts", "postings", "sizes", "lengths", "filter", "items")


def benchmarks_digest(root: Path, benchmarks: Sequence[BenchmarkConfig]) -> str:
    """Returns the digest of the bytes of all files that `benchmarks` name, and of how they are read.

    Raises:
      ConfigError: a path matches no file, or a file cannot be read.
    """
    return digest([[b.name, b.columns, b.format, b.encoding, _digests(root, b)] for b in _by_name(benchmarks)])


def _by_name(benchmarks: Sequence[BenchmarkConfig]) -> list[BenchmarkConfig]:
    return sorted(benchmarks, key=lambda b: b.name)


def _digests(root: Path, benchmark: BenchmarkConfig) -> list[tuple[str, str]]:
    try:
        return [(uri, files.file_digest(root / uri)) for uri in _uris(root, benchmark)]
    except OSError as error:
        raise _unreadable(benchmark, str(error)) from error


def _uris(root: Path, benchmark: BenchmarkConfig) -> list[str]:
    try:
        return list_files(root, benchmark.source)
    except ConfigError as error:
        what, remedy = str(error).splitlines()[0].removeprefix("source "), f"a relative path begins at {root}"
        raise ConfigError(f"benchmark {what}", where=_WHERE, remedy=remedy) from error


def _reader(root: Path, benchmark: BenchmarkConfig, uri: str) -> Callable[[Extent], Iterator[Item]]:
    """Returns the reader of a file, by its content and name."""
    path = root / uri
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        packed = bool(compression(head))
        found, words = reader_of(benchmark.source, next(chunks(path), b"")[:HEAD_BYTES], path.name, packed=packed)
    except (OSError, BrokenError) as error:
        raise _unreadable(benchmark, str(error)) from error
    if found not in READERS:
        raise _unreadable(benchmark, f"{uri}: {words or found}")
    return READERS[found]


def _unreadable(benchmark: BenchmarkConfig, words: str) -> ConfigError:
    remedy = f"benchmarks are {', '.join(READERS)} files; set `format` where the name does not tell"
    return ConfigError(f"benchmark {benchmark.name}: {words}", where=_WHERE, remedy=remedy)


def read_items(root: Path, benchmark: BenchmarkConfig) -> Iterator[str]:
    """Yields the text of every row, in the order of files and rows: its columns joined by newlines.

    Raises:
      ConfigError: as `benchmarks_digest`, or no row of a file has one of the columns.
      DataError: a row cannot be read.
    """
    for uri in _uris(root, benchmark):
        reader = _reader(root, benchmark, uri)
        missing = dict.fromkeys(benchmark.columns)
        for item in reader(Extent(root, root / uri, benchmark.source, MAX_ROW_BYTES)):
            if isinstance(item, Fault):
                raise _fault(benchmark, uri, item)
            for column in [c for c in missing if c in item.fields]:
                del missing[column]
            yield _text(item, benchmark.columns)
        if missing:
            what = f"benchmark {benchmark.name}: no row of {uri} has column {', '.join(map(repr, missing))}"
            raise ConfigError(what, where=_WHERE, remedy="name the columns that make up an item in `columns`")


def _fault(benchmark: BenchmarkConfig, uri: str, fault: Fault) -> ConfigError | DataError:
    what = f"benchmark {benchmark.name}: {fault.reason} at {fault.position}: {fault.error}"
    if fault.reason == "missing_column":
        return ConfigError(f"{what} ({uri})", where=_WHERE, remedy="name the columns in `columns`")
    remedy = "mend or remove the row: a benchmark is read whole, or what it holds would go unnoticed"
    return DataError(what, where=uri, remedy=remedy)


def _text(record: Record, columns: Sequence[str]) -> str:
    return "\n".join(piece for column in columns for piece in _pieces(record.fields.get(column)))


def _pieces(value: Any) -> Iterator[str]:
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


def build_index(root: Path, config: DecontaminateConfig, clean: Clean) -> tuple[Index, dict[str, dict[str, int]]]:
    """Returns the index of all benchmarks of `config`, and benchmark → its `items` and `skipped` rows.

    `clean` brings items to the normal form of the texts that will be looked up.

    Raises:
      ConfigError, DataError: as `read_items`; or a benchmark has no item of `min_words` words.
    """
    items, counts = _Items(config), {}
    for benchmark in _by_name(config.benchmarks):
        before, read = len(items.names), 0
        for texts in _batches(read_items(root, benchmark), clean):
            items.add(benchmark.name, read, texts)
            read += len(texts)
        kept = len(items.names) - before
        counts[benchmark.name] = {"items": kept, "skipped": read - kept}
        if not kept:
            what = f"benchmark {benchmark.name} is empty: none of its {read} rows has {config.min_words} words"
            raise ConfigError(what, where=_WHERE, remedy="mend `paths` and `columns`, or lower `min_words`")
    return items.index(), counts


class _Items:
    """The n-grams of the items read so far."""

    def __init__(self, config: DecontaminateConfig) -> None:
        self._config = config
        self._hashes, self._owners, self._lengths = ([np.empty(0, kind)] for kind in (np.uint64, np.int64, np.int64))
        self.names: list[str] = []

    def add(self, benchmark: str, first: int, texts: pa.LargeStringArray) -> None:
        """Takes in the rows of `benchmark` from number `first` on; those of too few words are no items."""
        config = self._config
        hashes, rows, words = ngram_pairs(texts, ngram=config.ngram, min_words=config.min_words)
        kept = words >= config.min_words
        self._hashes.append(hashes)
        self._owners.append((len(self.names) - 1 + np.cumsum(kept))[rows])
        self._lengths.append(np.minimum(words[kept], config.ngram))
        self.names += [f"{benchmark}:{first + k}" for k in np.flatnonzero(kept).tolist()]

    def index(self) -> Index:
        """Returns the index of all items."""
        hashes, owners, lengths = (np.concatenate(x) for x in (self._hashes, self._owners, self._lengths))
        return make_index(hashes, owners, lengths, pa.array(self.names, pa.string()))


def _batches(texts: Iterator[str], clean: Clean) -> Iterator[pa.LargeStringArray]:
    """Yields `texts`, cleaned, in arrays."""
    while held := list(islice(texts, _BATCH_ITEMS)):
        yield clean(pa.array(held, pa.large_string()))


def save_index(path: Path, index: Index, **record: object) -> None:
    """Writes `index` as an Arrow file of one row, a list a field, with a `record` for `arrow_files.recorded`."""
    values = [v if isinstance(v, pa.Array) else pa.array(v) for v in (getattr(index, n) for n in _ARRAYS)]
    lists = [pa.LargeListArray.from_arrays(pa.array([0, len(v)], pa.int64()), v) for v in values]
    arrow_files.write(path, pa.record_batch(lists, names=list(_ARRAYS)), **record)


def load_index(path: Path) -> Index:
    """Returns the index that `save_index` wrote: its arrays lie in the mapped file, shared by all workers."""
    batch = arrow_files.read(path)
    values = {name: batch[name].values for name in _ARRAYS}
    return Index(**{n: v if n == "items" else v.to_numpy() for n, v in values.items()})
