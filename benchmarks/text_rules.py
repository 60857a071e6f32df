"""Gopher quality, Gopher repetition, C4 and FineWeb rules against datatrove's, on the same documents in one run.

    pip install 'gradsift[peers]'                                    # datatrove and spacy
    python benchmarks/text_rules.py                                  # 1 MB of made documents
    python benchmarks/text_rules.py --texts FILES --megabytes 2      # the README's figure

One process and one thread each. Ours evaluates every rule of every document and keeps all values; datatrove's
four filters stop at the first rule that a document fails, so it does less. Times are CPU time. Then both judge
each rule on its own, with the same word boundaries, and disagreements are listed with the cause.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from claim import claim, need
from harness import cpu_s, parser, shipped
from inputs import texts as source

from transforms.text.normal.normalize import normalize
from transforms.text.rules import listed
from transforms.text.rules.measure import measure

RULES = (*listed.GOPHER, *listed.REPETITION, *listed.C4, *listed.FINEWEB)
BATCH = 4096
BAR = 150  # times datatrove's speed
_EXAMPLES = 3


def texts(paths: Sequence[Path], limit_bytes: float) -> list[str]:
    """Returns the normalised texts of JSONL files, taken in turn, up to a number of bytes; made ones without files."""
    clean = (normalize(text, "NFC") for text in source.of(paths, source.made))
    return source.up_to((text for text in clean if text.strip()), limit_bytes)


def settings() -> Any:
    """Returns the stage's params with the variants and constants of datatrove."""
    from pipelines.core import params
    from transforms.clean.config import CleanConfig

    tree = shipped()
    tree["clean"]["gopher"] |= {"variant": "datatrove"}
    tree["clean"]["c4"] |= {"variant": "datatrove", "min_line_words": 3, "min_sentences": 5}
    return params.Params(params.DEFAULTS, tree).section("clean", CleanConfig)


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
    from peers import datatrove_rules

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
    flags = parser(__doc__, texts="made documents")
    flags.add_argument("--megabytes", type=float, default=1.0)
    flags.add_argument("--rounds", type=int, default=5)
    options = flags.parse_args()
    for module in ("datatrove", "spacy"):
        need(module, "peers")
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
    speed = {"ours": round(size / our_s, 2), "peer": round(size / peer_s, 4), "unit": "MB/s"}
    claim("rules against datatrove", peer_s / our_s, bar=BAR, agreement=round(least, 4), **speed)


if __name__ == "__main__":
    main()
