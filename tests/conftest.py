"""What every test shares: offline, one thread a library, and no socket that leaves the machine."""

import os
import socket
from pathlib import Path

from support.places import SHARED

os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
}

import pytest


@pytest.fixture
def shared() -> Path:
    """Real files, where a checkout has them beside it."""
    if not SHARED.is_dir():
        pytest.skip("no shared data beside this checkout")
    return SHARED


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses connections to other machines: a stage that opens one without being told to is a bug."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "local"
        if host not in ("127.0.0.1", "::1", "localhost", "local"):
            raise AssertionError(f"a test opened a connection to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded corpus in small: made once, by whichever worker needs it first; tests copy it."""
    from support import small

    own = tmp_path_factory.getbasetemp()
    return small.make_corpus((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "corpus")


@pytest.fixture(scope="session")
def whole_run(corpus: Path) -> Path:
    """A small project that ran through, made once like the corpus; tests copy it."""
    from filelock import FileLock
    from support import whole

    root = corpus.parents[1] / "whole"
    with FileLock(root.with_suffix(".lock")):
        if not (root / whole.SUMMARY).exists():
            whole.make(root, corpus)
    return root


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the files that hold a slow test first, so that no worker is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
