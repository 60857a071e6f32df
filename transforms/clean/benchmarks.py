"""Benchmark files become an index of their items' n-grams.

A row without enough words is no item and is counted. How the files are read: `text_source`.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from scoring.core.errors import ConfigError
from transforms.readers import text_source
from transforms.text.decontaminate.config import DecontaminateConfig
from transforms.text.decontaminate.overlap import Index, make_index, ngram_pairs, of_template

Clean = Callable[[pa.LargeStringArray], pa.LargeStringArray]

USE = text_source.Use("benchmark", "params, clean.decontaminate.benchmarks")
_BATCH_ITEMS = 4096


def build_index(root: Path, config: DecontaminateConfig, clean: Clean) -> tuple[Index, dict[str, dict[str, int]]]:
    """Returns the index of all benchmarks of `config`, and benchmark → its `items`, `skipped` rows, `template_ngrams`.

    `clean` brings items to the normal form of the texts that will be looked up.

    Raises:
      ConfigError, DataError: as `text_source.read_texts`; or a benchmark has no item of `min_words` words.
    """
    items, counts = _Items(config), {}
    for benchmark in text_source.by_name(config.benchmarks):
        before, read = len(items.names), 0
        for texts in _batches(text_source.read_texts(root, benchmark, USE), clean):
            items.add(benchmark.name, read, texts)
            read += len(texts)
        kept = len(items.names) - before
        template = items.drop_template(before)
        counts[benchmark.name] = {"items": kept, "skipped": read - kept, "template_ngrams": template}
        if not kept:
            what = (
                f"benchmark {benchmark.name} has no usable items: none of its {read} rows has {config.min_words} words"
            )
            raise ConfigError(what, where=USE.where, remedy="fix `paths` and `columns`, or lower `min_words`")
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

    def drop_template(self, first: int) -> int:
        """Drops the template of the benchmark that begins with item `first`; returns how many n-grams that is."""
        after = [k for k, owners in enumerate(self._owners) if len(owners) and owners[0] >= first]
        if not after:
            return 0
        hashes, owners = (np.concatenate(x[after[0] :]) for x in (self._hashes, self._owners))
        template = of_template(hashes, owners - first, len(self.names) - first, self._config.max_item_ratio)
        self._hashes[after[0] :], self._owners[after[0] :] = [hashes[~template]], [owners[~template]]
        return len(np.unique(hashes[template]))

    def index(self) -> Index:
        """Returns the index of all items."""
        hashes, owners, lengths = (np.concatenate(x) for x in (self._hashes, self._owners, self._lengths))
        return make_index(hashes, owners, lengths, pa.array(self.names, pa.string()))


def _batches(texts: Iterator[str], clean: Clean) -> Iterator[pa.LargeStringArray]:
    """Yields `texts`, cleaned, in arrays."""
    while held := list(islice(texts, _BATCH_ITEMS)):
        yield clean(pa.array(held, pa.large_string()))
