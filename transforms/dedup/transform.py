"""How duplicates are found over all parts: by Beam steps that hand on names, keys and ids, never texts.

What is large stays in files under `dedup/`: the `signatures` of each part, what is `settled` of it, the rows of
each of the `bands`, the `shingles` of rows that share one, and the `near` duplicates of each of the `bundles`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.arrays import Array
from transforms.core import arrow_files
from transforms.core.arrow_files import SUFFIX
from transforms.core.parts import Part, Task, digest, read_columns
from transforms.dedup import exact as dedup
from transforms.dedup import near
from transforms.dedup.config import NearConfig

Band = tuple[int, int]  # its number, and which slice of its hashes


@dataclass(frozen=True)
class Corpus:
    """All parts of a run, and where what is known of them lies."""

    data: Path
    tasks: tuple[Task, ...]

    @cached_property
    def names(self) -> list[str]:
        """The names of the parts; a ref holds a place in this list."""
        return [t.name for t in self.tasks]

    @cached_property
    def number(self) -> dict[str, int]:
        """The place of each name."""
        return {name: k for k, name in enumerate(self.names)}

    def fingerprint(self, name: str) -> str:
        """Returns the digest of what a part is made from."""
        return self.tasks[self.number[name]].fingerprint

    def folder(self, name: str) -> Path:
        """Returns a folder of files of this stage's own."""
        return self.data / "dedup" / name

    def file(self, folder: str, name: str) -> Path:
        """Returns one of them."""
        return self.folder(folder) / f"{name}{SUFFIX}"


@dataclass
class FindCopies(beam.PTransform):
    """Settles exact duplicates, finds the rows that share a band: `PCollection[str]` (parts) → `PCollection[Band]`.

    `buckets` and `slices` bound what one worker holds, not the result.
    """

    corpus: Corpus
    config: NearConfig
    buckets: int
    slices: int

    def expand(self, names: beam.PCollection) -> beam.PCollection:
        # KV[bucket, key, quality, sample_id, ref] → KV[part name, key, survivor, survivor_ref]
        items = names | "SignAndReadKeys" >> beam.Map(self._read)
        lost = (
            items
            | "OfferCandidates" >> beam.FlatMap(self._offer)
            | "GroupByBucket" >> beam.GroupByKey()
            | "ChooseSurvivors" >> beam.FlatMap(self._choose)
        )
        named = items | "NameParts" >> beam.Map(self._name)
        settled = (
            (named, lost)
            | "JoinVerdicts" >> beam.Flatten()
            | "GroupByPart" >> beam.GroupByKey()
            | "SettleExact" >> beam.Map(self._settle)
        )
        return (
            settled
            | "GroupBySettled" >> beam.GroupByKey()
            | "ListBands" >> beam.FlatMap(self._bands)
            | "SpreadBands" >> beam.Reshuffle()
            | "FindShared" >> beam.Map(self._share)
        )

    def _read(self, name: str) -> Part:
        path, fingerprint = self.corpus.file("signatures", name), self.corpus.fingerprint(name)
        if self.config.enabled and arrow_files.recorded(path).get("fingerprint") != fingerprint:
            texts = read_columns(self.corpus.data, name, near.TEXTS)
            arrow_files.write(path, near.sign(texts, self.config), fingerprint=fingerprint)
        return Part(name, fingerprint, read_columns(self.corpus.data, name, dedup.KEYS))

    def _offer(self, part: Part) -> Iterable[tuple[int, Part]]:
        for bucket, batch in dedup.split(dedup.candidates(part.batch, self.corpus.number[part.name]), self.buckets):
            yield bucket, part.with_batch(batch)

    def _choose(self, item: tuple[int, Iterable[Part]]) -> Iterable[tuple[str, Part]]:
        for part in dedup.lost(item[1]):
            yield part.name, part

    def _name(self, part: Part) -> tuple[str, Part]:
        return part.name, part.with_batch(pa.RecordBatch.from_pylist([], dedup.SURVIVORS))

    def _settle(self, item: tuple[str, Iterable[Part]]) -> tuple[int, str]:
        name, found = item[0], [p.batch for p in item[1]]
        keys = read_columns(self.corpus.data, name, dedup.KEYS)
        elsewhere = pa.Table.from_batches(found, schema=dedup.SURVIVORS)
        arrow_files.write_scratch(
            self.corpus.file("settled", name), dedup.settle(keys, self.corpus.number[name], elsewhere)
        )
        return 0, name

    def _bands(self, settled: tuple[int, Iterable[str]]) -> Iterable[Band]:  # noqa: ARG002 (waits for all parts)
        for number in range(self.config.bands if self.config.enabled else 0):
            yield from ((number, k) for k in range(self.slices))

    def _share(self, item: Band) -> Band:
        number, which = item
        pairs = [self._hashes(k, number, which) for k in range(len(self.corpus.tasks))]
        hashes, refs = (np.concatenate([p[k] for p in pairs]) for k in range(2))
        arrow_files.write_scratch(self.corpus.file("bands", f"{number:03d}-{which:04d}"), near.shared(hashes, refs))
        return item

    def _hashes(self, number: int, column: int, which: int) -> tuple[Array, Array]:
        """Returns one band of those rows of a part that survive so far, of one slice of hashes: hashes and refs."""
        signed = arrow_files.read(self.corpus.file("signatures", self.corpus.names[number]))
        settled = arrow_files.read(self.corpus.file("settled", self.corpus.names[number]))
        refs = dedup.refs(number, signed.num_rows)
        hashes = signed[near.band(column)].to_numpy()
        mine = hashes % np.uint64(self.slices) == np.uint64(which)
        alive = pc.fill_null(pc.equal(settled["cluster_ref"], pa.array(refs)), False).to_numpy(zero_copy_only=False)
        taken = alive & mine & (signed["shingles"].to_numpy() > 0)
        return hashes[taken], refs[taken]


@dataclass
class MatchBundles(beam.PTransform):
    """Compares the rows of each bundle: `PCollection[str]` → `PCollection[str]`.

    In come the parts of whose rows some share a band; their shingles are stored first. Out go all parts.
    """

    corpus: Corpus
    config: NearConfig
    bundles: int

    def expand(self, names: beam.PCollection) -> beam.PCollection:
        return (
            names
            | "StoreShingles" >> beam.Map(self._store)
            | "GroupByStored" >> beam.GroupByKey()
            | "ListBundles" >> beam.FlatMap(self._list)
            | "SpreadBundles" >> beam.Reshuffle()
            | "MatchBundle" >> beam.Map(self._match)
            | "GroupByMatched" >> beam.GroupByKey()
            | "ListParts" >> beam.FlatMap(self._parts)
            | "SpreadParts" >> beam.Reshuffle()
        )

    def _store(self, name: str) -> tuple[int, str]:
        places = arrow_files.read(self.corpus.file("places", name))["place"].to_numpy()
        record = {"fingerprint": self.corpus.fingerprint(name), "places": digest(places.tolist())}
        path = self.corpus.file("shingles", name)
        if arrow_files.recorded(path) != record:
            texts = read_columns(self.corpus.data, name, near.TEXTS)
            arrow_files.write(path, near.store(texts, places, self.config), **record)
        return 0, name

    def _list(self, stored: tuple[int, Iterable[str]]) -> Iterable[int]:  # noqa: ARG002 (waits for all parts)
        return range(self.bundles)

    def _match(self, number: int) -> tuple[int, int]:
        rows = arrow_files.read(self.corpus.file("bundles", f"{number:05d}"))
        sets = near.gather(rows["ref"].to_numpy(), self.corpus.names, self.corpus.folder("shingles"))
        found = near.match(rows, sets, self.config)
        arrow_files.write_scratch(self.corpus.file("near", f"{number:05d}"), found.rows, full=found.full)
        return 0, number

    def _parts(self, matched: tuple[int, Iterable[int]]) -> Iterable[str]:  # noqa: ARG002 (waits for all bundles)
        return self.corpus.names


@dataclass
class JudgeParts(beam.PTransform):
    """Judges the rows of each part: `PCollection[str]` → `PCollection[Part]`."""

    corpus: Corpus

    def expand(self, names: beam.PCollection) -> beam.PCollection:
        return names | "JudgePart" >> beam.Map(self._judge)

    def _judge(self, name: str) -> Part:
        return judged(self.corpus, name)


def judged(corpus: Corpus, name: str) -> Part:
    """Returns the verdicts of one part. One where they stay keeps its bytes, however the corpus grows."""
    settled = arrow_files.read(corpus.file("settled", name))
    batch = dedup.judge(settled, near.lookup(settled["cluster_ref"], matches(corpus)))
    verdicts = [batch[c].to_pylist() for c in ("cluster", "similarity", "reasons")]
    return Part(name, digest(corpus.fingerprint(name), verdicts), batch)


def matches(corpus: Corpus) -> Iterator[pa.RecordBatch]:
    """Yields the near duplicates, bundle by bundle."""
    return map(arrow_files.read, sorted(corpus.folder("near").glob(f"*{SUFFIX}")))
