"""The steps of stage `clean` in datatrove: python clean_datatrove.py SAMPLES OUTPUT MODEL WORKERS [--every-document].

SAMPLES is a folder of parts, of which only ids and texts are read; MODEL a file of fastText's lid.176. The filters
have their published defaults and drop documents, so later ones see fewer; language only labels, as ours does when
every language is allowed. With `--every-document` all four families judge every document, and none is dropped.
"""

import sys
from pathlib import Path

from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
)
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.formatters import FTFYFormatter, PIIFormatter
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import ParquetWriter
from datatrove.utils.lid import FastTextLID


class LocalLID(FastTextLID):
    """datatrove's detector over a model file on this disk; its own class downloads one."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    @property
    def model(self) -> object:
        if self._model is None:
            from fasttext.FastText import _FastText

            self._model = _FastText(self.path)
        return self._model


class Judged(BaseFilter):
    """Lets a filter judge a copy of every document, and keeps them all."""

    name = "judged"

    def __init__(self, judge: BaseFilter) -> None:
        super().__init__()
        self.judge = judge

    def filter(self, doc: Document) -> bool:
        self.judge.filter(Document(text=doc.text, id=doc.id))
        return True


def main(source: str, output: str, model: str, workers: int, *, every_document: bool) -> None:
    """Runs them with as many tasks as workers."""
    language = LanguageFilter(label_only=True)
    language.model = LocalLID(model)
    rules = [GopherQualityFilter(), GopherRepetitionFilter(), C4QualityFilter(), FineWebQualityFilter()]
    pipeline = [
        ParquetReader(source, text_key="text", id_key="sample_id", read_metadata=False, glob_pattern="*.parquet"),
        FTFYFormatter(),
        language,
        *(map(Judged, rules) if every_document else rules),
        PIIFormatter(),
        ParquetWriter(str(Path(output) / "clean")),
    ]
    logs = str(Path(output) / "logs")
    LocalPipelineExecutor(pipeline=pipeline, tasks=workers, workers=workers, logging_dir=logs).run()


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), every_document="--every-document" in sys.argv[5:])
