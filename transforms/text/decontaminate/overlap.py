"""Decontamination: which benchmark item a text holds, by overlap of word n-grams.

Words are runs of letters, digits and combining marks in lower case; all else parts them; in scripts without spaces
every letter with its marks is a word. So case, punctuation and spacing do not hide an item (GPT-3, Brown et al. 2020,
appendix C: 13-grams, lower case, no punctuation; lm-evaluation-harness does the same).

* The overlap of an item with a text is the share of the item's distinct n-grams that the text has. GPT-3 takes a
  single shared 13-gram for contamination: `max_overlap: 0`. The default of 0.5 is that of Cosmopedia (Hugging Face,
  2024), which discards a text that matches more than half of a benchmark sample.
* An item shorter than n words is one n-gram of its own length: its overlap is 0 or 1. Below `min_words` it is left
  out: GPT-3 never goes below 8, as shorter runs stand everywhere.
* n-grams that more than `max_item_ratio` of a benchmark's items share, and three or more, are its template ("Below is
  an instruction …"): they belong to no item. An item of nothing else keeps them.
* The benchmark share of a text is the share of its words in a matched n-gram (Llama 2, appendix A.6, counts
  tokens in the same way).
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from scoring.core.arrays import Array
from transforms.text.decontaminate.kernels import CASED, hash_items, search
from transforms.text.tables import MARK, UNSPACED, WORD, classes
from transforms.text.utf8 import own_buffers

_FILTER_BITS = 16  # of the filter, an n-gram: one lookup in 16 passes it by chance


VALUES = (
    ("benchmark_item", pa.string()),  # benchmark:row of the item that overlaps most; null if none does
    ("benchmark_overlap", pa.float64()),  # share of that item's distinct n-grams that the text has
    ("benchmark_ngrams", pa.int32()),  # how many those are
    ("benchmark_word_ratio", pa.float64()),  # share of the text's words in n-grams of any item
)


@dataclass(frozen=True)
class Index:
    """The distinct n-grams of all items, ascending, and the items that have each.

    Items are in the order of benchmark name and row; those with too few words are none.
    """

    hashes: Array  # (g,) uint64, ascending
    starts: Array  # (g + 1,) int64: the items of n-gram k are postings[starts[k]:starts[k + 1]]
    postings: Array  # (p,) int32
    sizes: Array  # (i,) int32: distinct n-grams of each item
    lengths: Array  # (l,) int64, ascending: how many words the n-grams have; fewer than n only for short items
    filter: Array  # (f,) uint8: a bit for each hash, so that most lookups end in one access
    items: pa.StringArray  # (i,) benchmark:row


class Hits(NamedTuple):
    """The columns of `VALUES` for n texts."""

    item: pa.StringArray
    overlap: pa.DoubleArray
    ngrams: pa.Int32Array
    word_ratio: pa.DoubleArray


@cache
def _letters() -> tuple[Array, Array]:
    """Returns (0x110000,) uint8 what every code point is, and (0x20000,) int32 its lower case, one letter for one.

    A code point is WORD (cased scripts and others with spaces; no mark), WORD | MARK, UNSPACED, MARK alone for a
    format character that neither parts words nor changes them, or 0: it parts words.
    """
    table = (classes() & (WORD | MARK | UNSPACED)).astype(np.uint8)
    table[[0x00AD, 0x200C, 0x200D, 0x2060]] = MARK
    lower = np.array([ord(chr(c).lower()[0]) for c in range(CASED)], np.int32)
    lower[0x03C2] = 0x03C3  # final sigma
    return table, lower


def ngram_pairs(texts: pa.LargeStringArray, *, ngram: int, min_words: int) -> tuple[Array, Array, Array]:
    """Returns (hashes (p,) uint64, the text of each (p,) int64, words of each text (n,) int64), nothing sorted."""
    data, offsets, _ = own_buffers(texts)
    found, starts = np.empty(len(data) // 2 + len(texts), np.uint64), np.zeros(len(texts) + 1, np.int64)
    words = np.zeros(len(texts), np.int64)
    hash_items(data, offsets, _letters(), ngram, min_words, found, starts, words)
    return found[: starts[-1]].copy(), np.repeat(np.arange(len(texts)), np.diff(starts)), words


_FEW_ITEMS = 2  # that may share an n-gram in any benchmark


def of_template(hashes: Array, owners: Array, items: int, max_item_ratio: float) -> Array:
    """Returns (p,) bool: which of the n-grams of one benchmark are its template.

    Args:
      hashes: (p,) uint64, in any order.
      owners: (p,) int64: the item in [0, items) that has each.
      items: how many the benchmark has.
      max_item_ratio: the share of items that may have an n-gram in common.
    """
    order = np.lexsort((owners, hashes))
    first = np.ones(len(hashes), bool)
    first[1:] = np.diff(owners[order]) != 0
    first[1:] |= hashes[order][1:] != hashes[order][:-1]
    distinct, counts = np.unique(hashes[order][first], return_counts=True)
    shared = np.isin(hashes, distinct[counts > max(_FEW_ITEMS, max_item_ratio * items)])
    own = np.bincount(owners[~shared], minlength=items)
    return shared & (own[owners] > 0)


def make_index(hashes: Array, owners: Array, lengths: Array, items: pa.StringArray) -> Index:
    """Returns the index of `items`: n-gram `hashes[k]` occurs in item `owners[k]`; duplicates do not count."""
    order = np.lexsort((owners, hashes))
    hashes, owners = hashes[order], owners[order]
    new = np.ones(len(hashes), bool)
    new[1:] = (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])
    distinct, starts = np.unique(hashes[new], return_index=True)
    postings = owners[new].astype(np.int32)
    sizes = np.bincount(postings, minlength=len(items)).astype(np.int32)
    ends = np.append(starts, len(postings)).astype(np.int64)
    return Index(distinct, ends, postings, sizes, np.unique(lengths), _filter(distinct), items)


def _filter(hashes: Array) -> Array:
    """Returns 2^k bytes with a bit set for each hash, by its first k + 3 bits."""
    size = max(1, 1 << int(len(hashes) * _FILTER_BITS / 8 - 1).bit_length()) if len(hashes) else 1
    found = np.zeros(size, np.uint8)
    places = hashes >> _shift(found)
    bits = (np.uint64(1) << (places & np.uint64(7))).astype(np.uint8)
    np.bitwise_or.at(found, (places >> np.uint64(3)).astype(np.int64), bits)
    return found


def _shift(bits: Array) -> np.uint64:
    return np.uint64(62 - len(bits).bit_length())


def hits(texts: pa.LargeStringArray, index: Index | None) -> Hits:
    """Returns for each text the item of `index` that overlaps most, of those that tie the first by name and row.

    All is null for a null text, and for every text if there is no index.
    """
    if index is None:
        return Hits(*(pa.nulls(len(texts), kind) for _, kind in VALUES))
    data, offsets, live = own_buffers(texts)
    best, counts, ratios = np.full(len(texts), -1, np.int64), np.zeros(len(texts), np.int32), np.zeros(len(texts))
    arrays = (index.hashes, index.starts, index.postings, index.sizes, index.lengths, index.filter)
    unseen = [np.full(n, -1, np.int32) for n in (len(index.hashes), len(index.sizes))]
    seen = (unseen[0], unseen[1], np.zeros_like(index.sizes))
    search(data, offsets, live, _letters(), (*arrays, _shift(index.filter)), seen, (best, counts, ratios))
    none = best < 0
    sizes = np.append(index.sizes, 1)[best]  # -1 takes the one behind the last
    return Hits(
        index.items.take(pa.array(best, pa.int64(), mask=none)),
        *(pa.array(v, mask=~live) for v in (counts / sizes, counts, ratios)),
    )
