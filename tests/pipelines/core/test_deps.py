"""The code version: what changes it, and what does not."""

from pathlib import Path

import pytest

from pipelines.core import deps
from scoring.core import imports


def forget() -> None:
    for cached in (imports.closure, imports.tree, imports.imports, deps._digest, deps.code_version):
        cached.cache_clear()


def test_comments_do_not_change_the_code_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scoring").mkdir()
    module = tmp_path / "scoring" / "one.py"
    versions = []
    for text in ('"""Doc."""\nX = 1\n', '"""Other."""\n# why\nX   = 1\n', "X = 2\n"):
        module.write_text(text)
        monkeypatch.setattr(imports, "ROOT", tmp_path)
        forget()
        versions.append(deps.code_version("scoring.one"))
    forget()
    assert versions[0] == versions[1] != versions[2]
