"""fastText's lid.176 as tables that kernels read: a text's vector is a sum of table rows, its language a tree walk.

Joulin et al. 2017 (Bag of Tricks) and 2016 (FastText.zip): a text is the mean of the vectors of its words
and of their n-grams of 2 to 4 characters, and a Huffman tree over the languages turns it into probabilities.
The packaged file holds the vectors product-quantised and only the n-grams that matter; it is unpacked once a machine.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scoring.core.arrays import Array
from scoring.core.files import file_digest
from scoring.core.table_cache import kept

DIM = 16  # of a vector
BUCKETS = 2_000_000  # of n-gram hashes
SLOTS = 1 << 15  # of the word table, a power of two well above the 7 235 words
_MAGIC, _VERSION = 793712314, 12
_SHAPE = {"dim": DIM, "word_ngrams": 1, "loss": 1, "buckets": BUCKETS, "min_n": 2, "max_n": 4}  # loss 1: a tree
_LABEL = b"__label__"


class Tables(NamedTuple):
    """The unpacked model; `d` is `DIM`, `w` its words, `g` its n-grams, `k` its languages."""

    slots: Array  # (SLOTS,) int32: word at this hash, or -1; the next slots hold what collided
    spelling: Array  # (bytes,) uint8: all words, one after another
    bounds: Array  # (w + 1,) int64: where each begins in `spelling`
    word_sums: Array  # (w, d) float32: the word's vector and those of its n-grams, added up
    word_counts: Array  # (w,) int64: how many vectors that were
    end: Array  # (d,) float32: the vector of the end of a text
    known: Array  # (BUCKETS / 8,) uint8: one bit a hash, whether it has a row; small enough to stay near the core
    rows: Array  # (BUCKETS,) uint16: row of `grams` for this hash
    grams: Array  # (g, d) float32
    children: Array  # (k - 1, 2) int32: of each inner node, below k a leaf; the root is the last
    planes: Array  # (k - 1, d) float32: what decides at an inner node; `children[:, 1]` on the positive side


@dataclass(frozen=True)
class Detector:
    """The ISO codes of the languages that the model knows, and its tables."""

    codes: tuple[str, ...]
    tables: Tables


class _Reader:
    """A cursor over the bytes of a model file, little-endian."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def values(self, kinds: str) -> tuple[Any, ...]:  # of `struct`, by their kinds
        found = struct.unpack_from("<" + kinds, self.content, self.at)
        self.at += struct.calcsize("<" + kinds)
        return found

    def array(self, kind: str, count: int) -> Array:
        found = np.frombuffer(self.content, kind, count, self.at)
        self.at += found.nbytes
        return found

    def entries(self, count: int) -> Iterator[tuple[bytes, int, int]]:
        """Yields (word, count, 1 for a label and 0 for a word)."""
        for _ in range(count):
            end = self.content.index(b"\0", self.at)
            word, self.at = self.content[self.at : end], end + 1
            yield (word, *self.values("qb"))


def load(path: Path) -> Detector:
    """Returns the detector in the fastText model `path`.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is no model of the shape that the kernels are written for.
    """
    codes, *tables = _unpacked(str(path), file_digest(path))
    return Detector(tuple(codes.tolist()), Tables(*tables))


@kept
def _unpacked(path: str, digest: str) -> tuple[Array, ...]:
    """Returns the codes and the tables of the model in `path`, whose content `digest` tells apart."""
    del digest
    found = unpack(Path(path).read_bytes())
    return np.array(found.codes), *found.tables


def unpack(content: bytes) -> Detector:
    """Returns the detector in the bytes of a fastText model.

    Raises:
      ValueError: it is no model of the shape that the kernels are written for.
    """
    reader = _Reader(content)
    _check(reader)
    size, words, labels, _, pruned = reader.values("iiiqq")
    entries = list(reader.entries(size))
    pairs = reader.array("<i4", 2 * pruned).reshape(-1, 2)
    vectors = _vectors(reader)
    (quantised,) = reader.values("?")
    rows, _ = reader.values("qq")
    if quantised or rows != labels or [kind for *_, kind in entries] != [0] * words + [1] * labels:
        raise ValueError("the language model has an unexpected layout")
    planes = reader.array("<f4", rows * DIM).reshape(rows, DIM)[: labels - 1].astype(np.float32)
    tables = _tables([word for word, *_ in entries[:words]], pairs, vectors)
    children = _tree([count for _, count, _ in entries[words:]])
    codes = tuple(word.removeprefix(_LABEL).decode() for word, *_ in entries[words:])
    return Detector(codes, tables._replace(children=children, planes=planes))


def _check(reader: _Reader) -> None:
    names = ("dim", "window", "epoch", "min_count", "negative", "word_ngrams", "loss", "model", "buckets", "min_n",
             "max_n", "rate")  # fmt: skip
    if reader.values("ii") != (_MAGIC, _VERSION):
        raise ValueError("not a fastText model of version 12")
    found = dict(zip(names, reader.values("12i"), strict=True))
    reader.values("d")
    if any(found[name] != value for name, value in _SHAPE.items()):
        raise ValueError(f"the language model has shape {found}, expected {_SHAPE}")


def _vectors(reader: _Reader) -> Array:
    """Returns (rows, DIM) float32: every input vector, from its codes of two dimensions each and its norm."""
    quantised, normed, rows, _, size = reader.values("??qqi")
    codes = reader.array("u1", size).reshape(rows, -1)
    centroids = _centroids(reader)
    if not (quantised and normed and codes.shape[1] * centroids.shape[2] == DIM):
        raise ValueError("the language model has an unexpected quantisation")
    norms = reader.array("u1", rows)
    lengths = _centroids(reader)[0, norms]
    parts = centroids[np.arange(codes.shape[1]), codes].reshape(rows, DIM)
    return np.asarray(parts * lengths, np.float32)


def _centroids(reader: _Reader) -> Array:
    """Returns (parts, 256, dimensions a part) float32."""
    dim, parts, width, _ = reader.values("4i")
    return reader.array("<f4", dim * 256).reshape(parts, 256, width)


def fnv(word: bytes) -> int:
    """Returns fastText's 32-bit FNV-1a hash, in which a byte above 127 is a negative number."""
    found = 2166136261
    for byte in word:
        found = ((found ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return found


def _tables(words: list[bytes], pairs: Array, vectors: Array) -> Tables:
    rows, known = np.zeros(BUCKETS, np.uint16), np.zeros(BUCKETS, bool)
    rows[pairs[:, 0]], known[pairs[:, 0]] = pairs[:, 1], True
    grams = np.ascontiguousarray(vectors[len(words) :])
    hashes = [[fnv(gram) % BUCKETS for gram in _ngrams(word)] for word in words]
    found = [rows[own][known[own]] for own in hashes]
    end = words.index(b"</s>")
    found[end] = found[end][:0]
    sums = [vectors[k] + grams[own].sum(axis=0, dtype=np.float32) for k, own in enumerate(found)]
    nothing = np.empty((0, 0), np.float32)
    return Tables(
        slots=_slots(words),
        spelling=np.frombuffer(b"".join(words), np.uint8),
        bounds=np.cumsum([0, *map(len, words)], dtype=np.int64),
        word_sums=np.array(sums, np.float32),
        word_counts=np.array([1 + len(own) for own in found], np.int64),
        end=vectors[end].copy(),
        known=np.packbits(known, bitorder="little"),
        rows=rows,
        grams=grams,
        children=nothing,
        planes=nothing,
    )


def _ngrams(word: bytes) -> Iterator[bytes]:
    """Yields the n-grams of 2 to 4 characters of `<word>`."""
    text = f"<{word.decode()}>"
    for start in range(len(text)):
        for length in range(2, min(4, len(text) - start) + 1):
            yield text[start : start + length].encode()


def _slots(words: list[bytes]) -> Array:
    found = np.full(SLOTS, -1, np.int32)
    for k, word in enumerate(words):
        slot = fnv(word) % SLOTS
        while found[slot] >= 0:
            slot = (slot + 1) % SLOTS
        found[slot] = k
    return found


def _tree(counts: list[int]) -> Array:
    """Returns (k - 1, 2) int32: the Huffman tree over `counts` (k,), which fall."""
    total, leaf, node = len(counts), len(counts) - 1, len(counts)
    weights = [*counts, *[10**15] * (total - 1)]
    children = np.zeros((total - 1, 2), np.int32)
    for k in range(total - 1):
        for side in (0, 1):
            if leaf >= 0 and weights[leaf] < weights[node]:
                children[k, side], leaf = leaf, leaf - 1
            else:
                children[k, side], node = node, node + 1
        weights[total + k] = sum(weights[c] for c in children[k])
    return children
