"""One line a claim, and the exit codes of a benchmark that cannot measure."""

import json
import sys
import venv
from pathlib import Path

import pytest
from support.places import ROOT

sys.path.append(str(ROOT / "benchmarks"))
import claim


def test_a_claim_is_one_json_line_name_and_ratio_first(capsys: pytest.CaptureFixture[str]) -> None:
    claim.claim("sketch over bare", 1.03456, unit="µs", limit=1.15)
    out = capsys.readouterr().out
    assert out == '{"claim": "sketch over bare", "ratio": 1.035, "limit": 1.15, "unit": "µs"}\n'
    assert list(json.loads(out)) == ["claim", "ratio", "limit", "unit"]


@pytest.mark.parametrize("ratio", [float("nan"), float("inf"), 0.0, -1.0])
def test_what_was_not_measured_is_not_claimed(ratio: float, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        claim.claim("nothing", ratio)
    said = capsys.readouterr()
    assert (end.value.code, said.out) == (1, "")
    assert "nothing was measured" in said.err


def test_a_missing_module_names_the_extra(capsys: pytest.CaptureFixture[str]) -> None:
    claim.need("json", "peers")
    with pytest.raises(SystemExit) as end:
        claim.need("no_such_module", "peers")
    assert end.value.code == 3
    assert "pip install 'gradsift[peers]'" in capsys.readouterr().err


def test_an_interpreter_without_the_peer_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare/bin/python"
    claim.need_in(bare, "json", "--peer", "pip install peer")
    for python, words in ((bare, "does not have numpy"), (tmp_path / "none", "does not start: No such file")):
        with pytest.raises(SystemExit) as end:
            claim.need_in(python, "numpy", "--peer", "pip install peer")
        said = capsys.readouterr().err
        assert end.value.code == 3
        assert words in said
        assert "pip install peer" in said
