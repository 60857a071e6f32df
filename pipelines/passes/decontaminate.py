"""The index of benchmark items in which stage `clean` looks up texts.

Reads:      the files named in `clean.decontaminate.benchmarks`
Writes:     clean/benchmarks.arrow
Guarantees: the index is rebuilt when a byte of a benchmark, the params or the code changes, and only then.
"""

from pathlib import Path
from typing import NamedTuple

from pipelines.core import progress, stage
from pipelines.core.project import Project
from transforms.clean import benchmarks
from transforms.core import arrow_files, parts
from transforms.readers.text_source import sources_digest
from transforms.text.decontaminate import index_file
from transforms.text.decontaminate.config import DecontaminateConfig

MODULE = "pipelines.passes.decontaminate"


class Prepared(NamedTuple):
    """The index, None without benchmarks; the digest of its arrays; benchmark → its `items` and what was left out."""

    path: Path | None
    digest: str
    counts: dict[str, dict[str, int]]


def prepare(project: Project, config: DecontaminateConfig, clean: benchmarks.Clean, how: object) -> Prepared:
    """Returns the index of the benchmarks of `config`; the one on disk where nothing has changed.

    `clean` brings items to the normal form of the texts that will be looked up; `how` are its params.

    Raises:
      ConfigError, DataError: as `benchmarks.build_index`.
    """
    path = project.folder("clean") / "benchmarks.arrow"
    if not config.benchmarks:
        path.unlink(missing_ok=True)
        return Prepared(None, "", {})
    content = sources_digest(project.root, config.benchmarks, benchmarks.USE)
    wanted = stage.fingerprint(MODULE, [config.ngram, config.min_words, config.max_item_ratio, how], [content])
    record = arrow_files.recorded(path)
    if record.get("fingerprint") != wanted:
        progress.say(f"clean: reading {len(config.benchmarks)} benchmarks")
        index, counts = benchmarks.build_index(project.root, config, clean)
        index_file.save_index(path, index, fingerprint=wanted, counts=counts)
        record = arrow_files.recorded(path)
    return Prepared(path, parts.digest(record["content"]), record["counts"])
