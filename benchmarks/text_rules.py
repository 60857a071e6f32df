"""Gopher quality, Gopher repetition, C4 and FineWeb rules against datatrove's, on the same documents in one run.

    pip install -e '.[peers]'
    python benchmarks/text_rules.py --texts ../shared/data/text_en/*.jsonl

One process and one thread each. Ours evaluates every rule of every document and keeps all values; datatrove's
four filters stop at the first rule that a document fails, so it does less. Times are CPU time. Then both judge
each rule on its own, with the same word boundaries, and disagreements are listed with the cause. The last line is
JSON.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from transforms.text.normal.normalize import normalize  # noqa: E402
from transforms.text.rules import listed  # noqa: E402
from transforms.text.rules.measure import measure  # noqa: E402

RULES = (*listed.GOPHER, *listed.REPETITION, *listed.C4, *listed.FINEWEB)
BATCH = 4096
_EXAMPLES = 3


def texts(paths: Sequence[Path], limit_bytes: float) -> list[str]:
    """Returns the normalised texts of JSONL files, taken in turn, up to a number of bytes; made ones without files."""
    found, size = [], 0
    with closing(raw_texts(paths)) as raw:
        for text in raw:
            clean = normalize(text, "NFC")
            if clean.strip():
                found.append(clean)
                size += len(clean.encode())
            if size >= limit_bytes:
                break
    return found


def raw_texts(paths: Sequence[Path]) -> Generator[str]:
    """Yields the texts of JSONL files, taken in turn; without files made ones, without end."""
    with ExitStack() as opened:
        files = [opened.enter_context(path.open(encoding="utf-8")) for path in paths]
        yield from _in_turn([iter(file) for file in files]) if paths else _made()


def _in_turn(sources: list[Iterator[str]]) -> Iterator[str]:
    while sources:
        for source in list(sources):
            line = next(source, None)
            if line is None:
                sources.remove(source)
            elif isinstance(text := json.loads(line).get("text"), str):
                yield text


def _made() -> Iterator[str]:
    """Yields seeded documents of a skewed vocabulary, without end."""
    rng = np.random.default_rng(7)
    words = ["".join(rng.choice(list("etaoinshrdlu"), size=n)) for n in rng.integers(2, 10, size=20_000)]
    while True:
        picked = [words[k] for k in np.minimum(rng.zipf(1.3, size=rng.integers(60, 900)), 20_000) - 1]
        yield "\n".join(" ".join(picked[k : k + 40]).capitalize() + "." for k in range(0, len(picked), 40))


def settings() -> Any:
    """Returns the stage's params with the variants and constants of datatrove."""
    from pipelines.core import params
    from transforms.clean.config import CleanConfig

    tree = params.read(params.DEFAULTS).tree
    section = json.loads(json.dumps(tree["clean"]))
    section["c4"] |= {"variant": "datatrove", "min_line_words": 3, "min_sentences": 5}
    return params.Params(params.DEFAULTS, {**tree, "clean": section}).section("clean", CleanConfig)


def batches(documents: Sequence[str]) -> list[pa.LargeStringArray]:
    """Returns the documents as arrays of the rows of a part."""
    return [pa.array(documents[k : k + BATCH], pa.large_string()) for k in range(0, len(documents), BATCH)]


def ours(arrays: Sequence[pa.LargeStringArray], config: Any) -> list[dict[str, pa.Array]]:
    """Returns the values of every rule."""
    return [measure(a, ["en"] * len(a), np.ones(len(a), bool), config).values for a in arrays]


def values(documents: Sequence[str], config: Any) -> dict[str, Any]:
    """Returns the values of every rule for all documents, (n,) float64, NaN where a rule says nothing."""
    found = ours(batches(documents), config)
    columns = {name: pa.chunked_array([v[name] for v in found]).cast(pa.float64()) for name in found[0]}
    return {name: np.asarray(column.to_numpy()) for name, column in columns.items()}


def cpu_s(action: Callable[[], object], rounds: int) -> float:
    """Returns the least CPU seconds of `action` over `rounds` rounds."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return min(times)


def peer(documents: Sequence[str]) -> None:
    """Runs datatrove's four filters, as they come, over copies of the documents."""
    from datatrove.data import Document
    from datatrove.pipeline.filters import (
        C4QualityFilter,
        FineWebQualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
    )

    filters = (GopherQualityFilter(), GopherRepetitionFilter(), FineWebQualityFilter(), C4QualityFilter())
    for text in documents:
        for each in filters:
            each.filter(Document(text=text, id=""))


def agreement(documents: Sequence[str], measured: dict[str, Any], config: Any) -> dict[str, list[int]]:
    """Returns, by rule, the documents on which datatrove decides otherwise."""
    import datatrove_rules

    by_code = datatrove_rules.filters()
    failed = {r.code: r.drops(measured[r.value], config) for r in RULES}
    failed["gopher_too_many_hashes"] = failed["gopher_too_many_hashes"] | failed["gopher_too_many_ellipses"]
    found: dict[str, list[int]] = {code: [] for code in by_code}
    with datatrove_rules.our_words():
        for k, text in enumerate(documents):
            theirs = datatrove_rules.drops(text, by_code)
            for code in by_code:
                if bool(failed[code][k]) != (code in theirs):
                    found[code].append(k)
    return found


def cause(code: str, text: str, value: float) -> str:
    """Returns why the two may decide otherwise about a document for which we have `value`."""
    if np.isnan(value):
        return "the rule is off in scripts without spaces"
    if code.startswith("repetition_dup_") and code.endswith("_gram"):
        return "n-grams are equal when their words are; datatrove joins the words first"
    if code.startswith("repetition_dup_") and text != text.strip():
        return "the text is stripped before it is cut into lines"
    if code == "c4_few_sentences" and "[" in text:
        return "sentences are counted outside deleted citations, not in the joined rest"
    if code in ("gopher_short_doc", "gopher_short_words", "gopher_long_words"):
        return "the punctuation set is all of Unicode's, datatrove's is a list"
    return "a rounding, or a difference that has no name yet"


def report(found: dict[str, list[int]], documents: Sequence[str], columns: dict[str, Any]) -> float:
    """Prints the disagreements; returns the least share of documents on which both agree, over the rules."""
    measured = {rule.code: columns[rule.value] for rule in RULES}
    for code, rows in found.items():
        print(f"{code:32} {100 * (1 - len(rows) / len(documents)):7.2f} % agree")
        causes = Counter(cause(code, documents[k], measured[code][k]) for k in rows)
        for why, count in causes.most_common():
            print(f"    {count} × {why}")
        for k in rows[:_EXAMPLES]:
            print(f"    document {k}: {documents[k][:90]!r}")
    return 1 - max(map(len, found.values())) / len(documents)


def main() -> None:
    """Times both, compares them, and prints the claim."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="*", type=Path, default=[], help="JSONL files; without, made documents")
    parser.add_argument("--megabytes", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    documents = texts(options.texts, options.megabytes * 1e6)
    size = sum(len(t.encode()) for t in documents) / 1e6
    arrays, config = batches(documents), settings()
    print(f"{len(documents)} documents, {size:.1f} MB; kernels are compiled at first use", flush=True)
    found = values(documents, config)
    our_s = cpu_s(lambda: ours(arrays, config), options.rounds)
    peer(documents[:20])
    peer_s = cpu_s(lambda: peer(documents), 1)
    our_s = min(our_s, cpu_s(lambda: ours(arrays, config), options.rounds))
    least = report(agreement(documents, found, config), documents, found)
    print(f"ours {size / our_s:.1f} MB/s, datatrove {size / peer_s:.3f} MB/s, least agreement {least:.4f}")
    claim = {"claim": "rules against datatrove", "ours": round(size / our_s, 2), "peer": round(size / peer_s, 4)}
    print(json.dumps({**claim, "ratio": round(peer_s / our_s, 1), "unit": "MB/s", "agreement": round(least, 4)}))


if __name__ == "__main__":
    main()
