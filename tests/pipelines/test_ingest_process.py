"""The stage as a process: killed at any moment, and without the rights to read everything."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.ingesting import ask, contents, lines, metrics
from support.places import SHIPPED

from pipelines.core import params


def write_params(root: Path, sources: Sequence[dict[str, Any]], **keys: Any) -> None:
    tree = dict(params.read(SHIPPED).tree)
    tree["ingest"] = {**tree["ingest"], "sources": list(sources), **keys}
    (root / "params.yaml").write_text(yaml.safe_dump(tree))


def command(root: Path) -> list[str]:
    return [sys.executable, "-m", "pipelines.ingest", "--params", str(root / "params.yaml")]


def test_killed_at_any_moment_a_run_ends_in_the_same_bytes(tmp_path: Path) -> None:
    def write(root: Path) -> None:
        for k in range(4):
            rows = [{"id": f"{k}-{n % 900}", "text": f"{k} {n} " + "words " * 20} for n in range(1000)]
            lines(root / f"raw/{k}.jsonl", [*rows, {"id": "0-5", "text": "claimed"}])
        write_params(root, [{"name": "web", "paths": ["raw"]}], rows_per_part=100)

    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    write(calm)
    write(stormy)
    assert subprocess.run(command(calm), check=False, capture_output=True).returncode == 0
    kills = 0
    for written in (1, 12, 25):  # of 41 parts
        child = subprocess.Popen(command(stormy), stderr=subprocess.PIPE, start_new_session=True)
        while child.poll() is None and len(list(stormy.glob("data/samples/part-*"))) < written:
            time.sleep(0.002)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            kills += 1
        child.communicate()
    assert kills
    assert subprocess.run(command(stormy), check=False, capture_output=True).returncode == 0
    assert contents(stormy) == contents(calm)
    assert not list((stormy / "data").rglob(".tmp-*"))


def test_what_the_user_may_not_read(tmp_path: Path) -> None:
    lines(tmp_path / "raw/a.jsonl", [{"text": "a"}])
    lines(tmp_path / "raw/secret.jsonl", [{"text": "b"}])
    lines(tmp_path / "raw/vault/c.jsonl", [{"text": "c"}])
    write_params(tmp_path, [{"name": "web", "paths": ["raw"]}])
    humble = command(tmp_path)
    if os.geteuid() == 0:  # root reads everything, unless it gives up that power
        if not shutil.which("setpriv"):
            pytest.skip("root, and no setpriv")
        powers = "-dac_override,-dac_read_search"
        humble = ["setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}", *humble]
    (tmp_path / "raw/vault").chmod(0)
    refused = subprocess.run(humble, check=False, capture_output=True, text=True)
    (tmp_path / "raw/vault").chmod(0o755)
    assert refused.returncode == 2, refused.stderr
    assert "source web: no permission to list" in refused.stderr
    assert "raw/vault" in refused.stderr
    assert "remedy" in refused.stderr
    (tmp_path / "raw/secret.jsonl").chmod(0)
    done = subprocess.run(humble, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert metrics(tmp_path)["by_reason"] == {"unreadable_file": 1}
    assert ask(tmp_path, "rejects", "uri, error") == [("raw/secret.jsonl", "Permission denied")]
