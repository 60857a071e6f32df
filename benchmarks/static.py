"""The text readings of the static score, those that need no model, in MB/s of one core.

    python benchmarks/static.py                                      # 1 MB of the documentation that Python ships
    python benchmarks/static.py --texts FILES --megabytes 16         # the README's figure

Everything that the stage does to a text is timed: the corpus counts of words and characters, and the nine readings;
length, originality and predictability are columns of earlier stages. A row's characters beyond its excerpt are not
counted as read. `static stage` is the whole stage with its Parquet and Beam, by what three times the texts take
longer, in MB of whole text: short ones cost more by the row. The ratios are over the 5 MB/s a core that are wanted.
One thread, CPU time, the best of the rounds; kernels are compiled before.
"""

from collections.abc import Sequence

from claim import claim
from harness import cpu_s, parser
from inputs import texts as source
from inputs.static_project import stage_rate
from threadpoolctl import threadpool_limits

from scoring.static.text import text_readings
from scoring.static.unigrams import Unigrams, count_tokens

MAX_TOKENS = 2048  # params static.max_tokens
VOCABULARY = 65_536  # params static.vocabulary
WANTED = 5.0  # MB/s a core


def excerpt_megabytes(documents: Sequence[str]) -> float:
    """Returns the size of what is read of the documents: text beyond the excerpts is not walked."""
    from scoring.static.words import excerpt

    return sum(len(excerpt(t, MAX_TOKENS).encode()) for t in documents) / 1e6


def speeds(documents: Sequence[str], megabytes: float, rounds: int) -> dict[str, float]:
    """Returns the MB/s of each pass over the texts and of both."""
    words, chars = count_tokens(documents, max_tokens=MAX_TOKENS)
    known = Unigrams(dict(words.most_common(VOCABULARY)), words.total(), dict(chars), chars.total())
    english = [True] * len(documents)
    text_readings(documents[:2], english[:2], known, max_tokens=MAX_TOKENS)
    count_s = cpu_s(lambda: count_tokens(documents, max_tokens=MAX_TOKENS), rounds)
    read_s = cpu_s(lambda: text_readings(documents, english, known, max_tokens=MAX_TOKENS), rounds)
    return {"counts": megabytes / count_s, "readings": megabytes / read_s, "both": megabytes / (count_s + read_s)}


def main() -> None:
    """Times both passes and the stage, and prints the claims."""
    options = parser(__doc__, texts="the documentation that Python ships")
    options.add_argument("--megabytes", type=float, default=1.0)
    options.add_argument("--rounds", type=int, default=3)
    flags = options.parse_args()
    documents = source.up_to(source.of(flags.texts, source.documentation), flags.megabytes * 1e6)
    size = excerpt_megabytes(documents)
    print(f"{len(documents)} texts, {size:.1f} MB in excerpts", flush=True)
    with threadpool_limits(1):
        found = speeds(documents, size, flags.rounds)
        stage = stage_rate(documents, flags.rounds)
    by_pass = {name: round(speed, 2) for name, speed in found.items()}
    facts = {"bar": 1, "megabytes": round(size, 2), "unit": "MB/s a core"}
    claim("static text readings", found["readings"] / WANTED, **by_pass, **facts)
    claim("static stage", stage / WANTED, stage=round(stage, 2), **facts)


if __name__ == "__main__":
    main()
