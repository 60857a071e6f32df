"""Our rules decide as datatrove's do, given the same words, on real English pages."""

import sys
from pathlib import Path

import pytest
from support.places import ROOT

pytest.importorskip("datatrove")
sys.path.append(str(ROOT / "benchmarks"))
import text_rules


@pytest.mark.slow
def test_every_rule_agrees_on_99_of_100_documents(shared: Path) -> None:
    pages = sorted(p for p in (shared / "text_en").glob("*.jsonl") if p.stem != "wiki_long")
    documents = text_rules.texts(pages, 2_500_000)
    assert len(documents) >= 300
    config = text_rules.settings()
    found = text_rules.agreement(documents, text_rules.values(documents, config), config)
    assert len(found) >= 28
    assert {code: rows for code, rows in found.items() if len(rows) > 0.01 * len(documents)} == {}
