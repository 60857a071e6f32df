"""Why a row has its score: its lowest windows and the values that pulled, as the real stage scored real prose."""

import re
import shutil
from pathlib import Path
from typing import Any

import builders
import numpy as np
import prose
import pytest

from pipelines import quality
from pipelines.explain import explain
from pipelines.explain_quality import excerpts, lowest, strongest, token_places
from pipelines.project import Project
from scoring import degrade, models
from scoring.errors import DataError
from scoring.quality_head import Head
from transforms import clean
from transforms.clean import CleanConfig, clean_batch, samples_of
from transforms.quality import QualityConfig
from transforms.quality_values import NAMES

PART = "part-aa-0000.parquet"
WINDOW = 64
PARAMS = {"train_rows": 30, "window_tokens": WINDOW, "stride_tokens": WINDOW, "max_windows": 0, "min_heldout_f1": 0.0}
LONG, SHORT, BLANK = "s0060", "s0061", "s0062"


def project(root: Path, **values: Any) -> Project:
    return builders.empty_project(root, quality={**PARAMS, **values})


def texts() -> list[str | None]:
    """Prose to learn from, a row whose second half is page furniture, one of a single window, and one without text."""
    found = prose.paragraphs()
    [(_, junk)] = degrade.degrade_in_turn([" ".join(found[64:66])], [3])
    junk = "Log in | Sign up | Menu » Next » Click here! BUY NOW!!! Add to cart | 0 comments \x1b[31m " * 5
    return [*found[:60], f"{' '.join(found[60:62])} {junk}", "Rain falls on the hills of the north.", None]


def write(found: Project, rows: list[str | None]) -> None:
    """Writes a corpus whose values of `clean` are real, every row of it kept."""
    prose.write_corpus(found, rows, part_rows=len(rows))
    config = found.section("clean", CleanConfig)
    told = clean_batch(samples_of([t or "" for t in rows], "prose"), config, clean.load()).to_pylist()
    own = {"kept": True, "reasons": []}
    cleaned = [{**row, **own, "sample_id": f"s{k:04d}"} for k, row in enumerate(told)]
    builders.write_rows(found, "clean", PART, cleaned)
    builders.write_rows(found, "rejects", PART, [])


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scored")
    found = project(root)
    write(found, texts())
    quality.run(found)
    return root


def again(scored: Path, root: Path, **values: Any) -> Project:
    shutil.copytree(scored, root, dirs_exist_ok=True)
    return project(root, **values)


def lines(found: Project, wanted: str) -> list[str]:
    """Returns the lines of a life, runs of spaces as one."""
    return [" ".join(line.split()) for line in explain(found, wanted).splitlines()]


def starting(found: list[str], words: str) -> list[str]:
    return [line for line in found if line.startswith(words)]


def test_show(scored: Path) -> None:
    print(explain(project(scored), LONG))
    print(explain(project(scored), SHORT))
    print(explain(project(scored), BLANK))
