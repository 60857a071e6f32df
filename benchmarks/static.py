"""The text readings of the static score, those that need no model, in MB/s of one core.

    python benchmarks/static.py                                # the documentation that Python ships
    python benchmarks/static.py --texts a.jsonl b.jsonl        # `text` of the rows, files in turn

Everything that the stage does to a text is timed: the corpus counts of words and characters, and the nine readings;
length, originality and predictability are columns of earlier stages. A row's characters beyond its excerpt are not
counted as read. `stage` is the whole stage with its Parquet and Beam, by what three times the texts take longer, in MB
of whole text: short ones cost more by the row. One thread, CPU time, the best of the rounds; kernels are compiled
before. The last line is JSON; where readings or stage are below the bar, the exit code is 1.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from static_stage import stage_rate  # noqa: E402
from text_rules import cpu_s  # noqa: E402

from scoring.static.text import text_readings  # noqa: E402
from scoring.static.unigrams import Unigrams, count_tokens  # noqa: E402

MAX_TOKENS = 2048  # params static.max_tokens
VOCABULARY = 65_536  # params static.vocabulary
BAR = 5.0  # MB/s


def texts(paths: Sequence[Path], limit_bytes: float) -> list[str]:
    """Returns the texts of JSONL files, in turn, or Python's own documentation, up to a number of bytes."""
    found, size = [], 0
    sources = [_rows(path) for path in paths] or [_documentation()]
    while sources and size < limit_bytes:
        for source in list(sources):
            text = next(source, None)
            if text is None:
                sources.remove(source)
            else:
                found.append(text)
                size += len(text.encode())
    return found


def _rows(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]


def _documentation() -> Iterator[str]:
    """Yields the language reference and the docstrings of the standard library."""
    import ast
    import sysconfig
    from pydoc_data.topics import topics

    yield from (topics[name] for name in sorted(topics))
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        tree = ast.parse(path.read_bytes())
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        yield from (doc for node in ast.walk(tree) if isinstance(node, kinds) and (doc := ast.get_docstring(node)))


def excerpt_megabytes(documents: Sequence[str]) -> float:
    """Returns the size of what is read of the documents: text beyond the excerpts is not walked."""
    from scoring.static.words import excerpt

    return sum(len(excerpt(t, MAX_TOKENS).encode()) for t in documents) / 1e6


def main() -> int:
    """Times both passes and prints the claim; returns 0 if the readings are fast enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="*", type=Path, default=[])
    parser.add_argument("--megabytes", type=float, default=16.0)
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    documents = texts(flags.texts, flags.megabytes * 1e6)
    size, english = excerpt_megabytes(documents), [True] * len(documents)
    print(f"{len(documents)} texts, {size:.1f} MB in excerpts", flush=True)
    words, chars = count_tokens(documents, max_tokens=MAX_TOKENS)
    known = Unigrams(dict(words.most_common(VOCABULARY)), words.total(), dict(chars), chars.total())
    text_readings(documents[:2], english[:2], known, max_tokens=MAX_TOKENS)
    count_s = cpu_s(lambda: count_tokens(documents, max_tokens=MAX_TOKENS), flags.rounds)
    read_s = cpu_s(lambda: text_readings(documents, english, known, max_tokens=MAX_TOKENS), flags.rounds)
    speeds = {"counts": size / count_s, "readings": size / read_s, "both": size / (count_s + read_s)}
    speeds["stage"] = stage_rate(documents, flags.rounds)
    print(json.dumps({"claim": "static text readings", "megabytes": round(size, 2), "unit": "MB/s a core",
                      **{k: round(v, 2) for k, v in speeds.items()}, "bar": BAR}))  # fmt: skip
    return 0 if min(speeds["readings"], speeds["stage"]) >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
