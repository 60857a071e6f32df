"""Whether a stage has anything to do, at a glance: nothing that it follows from has changed since it last ended.

A stage finds out what is left to do from the fingerprints of parts; to ask them it loads the code of its models and
engines. Here the system is asked instead: size, times and inode of every file that the stage and those before it
wrote, and of every file that params name; the content of all our code; what is installed. What ingest reads is not
only named in params, so it always looks for itself, as the default corpus does.

`data/.verified/stages` holds the digests of the last glance: a memory, not a truth. Without it, the stage runs.
"""

import glob
import hashlib
import json
import os
import platform
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from pipelines.core import deps, trust
from pipelines.core.project import Project
from pipelines.core.stage import ORDER
from scoring.core import files
from scoring.core.imports import PACKAGES, ROOT

WRITES = {  # of each stage, in order, but those that always look for themselves; its metrics file comes on top
    "clean": ("data/clean",),
    "dedup": ("data/dedup",),
    "quality": ("data/quality",),
    "tokens": ("data/tokens",),
    "reference": ("data/reference",),
    "gradients": ("data/gradients",),
    "static": ("data/static",),
    "lqs": ("data/lqs",),
    "plan": ("data/plan",),
    "shard": ("data/shards",),
    "report": ("data/catalog.duckdb", "reports", "plots"),
}
_SETTLED_S = 2.0  # a file that was just written may be written again without another time
_LONGEST_PATH = 1024
_TOOLS = ("ffmpeg", "ffprobe")
_MODEL_HOMES = ("HF_HOME", "HF_HUB_CACHE")


def run(project: Project, name: str, work: Callable[[], None]) -> bool:
    """Calls `work` of stage `name` unless nothing has changed since it last ended; returns whether it did."""
    if name not in WRITES:
        work()
        return True
    follows_from, settled = _inputs(project, name), _settled(project)
    if not project.force and _remembered(project, name) == [follows_from, _outputs(project, name)]:
        return False
    memory = _memory(project, name)
    memory.unlink(missing_ok=True)
    work()
    if settled:
        files.write_json(memory, {"glance": [follows_from, _outputs(project, name)], "when": time.time()})
    return True


def _memory(project: Project, name: str) -> Path:
    return project.data / trust.FOLDER / "stages" / f"{name}.json"


def _remembered(project: Project, name: str) -> list[str]:
    """Returns the last glance; an empty one where bytes on the disk may have rotted since."""
    try:
        found = json.loads(_memory(project, name).read_text(encoding="utf-8"))
        return list(found["glance"]) if 0 <= time.time() - float(found["when"]) < trust.TRUST_S else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _inputs(project: Project, name: str) -> str:
    """Returns the digest of all that stage `name` follows from."""
    earlier = list(WRITES)[: list(WRITES).index(name)]
    places = ["data/samples", *(place for stage in earlier for place in WRITES[stage])]
    if name == "report":
        places += ["data/rejects", *(f"metrics/{stage}.json" for stage in ORDER if stage != name)]
    params = {key: value for key, value in project.params.tree.items() if key != "runtime"}
    variables = [f"{v} {os.environ.get(v)}" for v in (*_MODEL_HOMES, *(t for k, t in _texts(params) if k == "key_env"))]
    seen = [_glance(path) for path in (*map(project.root.joinpath, places), *_named(project))]
    return _digest(repr(params), str(project.root), _machine(), *variables, *seen)


def _outputs(project: Project, name: str) -> str:
    return _digest(*(_glance(project.root / place) for place in (*WRITES[name], f"metrics/{name}.json")))


def _settled(project: Project) -> bool:
    """Returns whether the files that params name have times that would tell of another change."""
    limit = time.time() - _SETTLED_S
    return all(path.lstat().st_ctime < limit for path in _named(project))


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).hexdigest()


def _glance(path: Path) -> str:
    """Returns what changes with any file at or under `path`: names, sizes, times and inodes."""
    return _digest(*_stats(str(path)))


def _stats(path: str) -> Iterator[str]:
    try:
        found = os.stat(path)
        names = sorted(os.listdir(path)) if stat.S_ISDIR(found.st_mode) else None
    except OSError:
        yield f"{path} -"
        return
    if names is None:
        yield f"{path} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} {found.st_dev}"
    else:
        yield f"{path} {len(names)}"
        for name in names:
            yield from _stats(f"{path}/{name}")


@cache
def _machine() -> str:
    """Returns the digest of our code, of what is installed, and of what this machine computes with."""
    code = hashlib.blake2b(digest_size=16)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                code.update(f"{path}\0".encode() + path.read_bytes())
    cpu = Path("/proc/cpuinfo")
    flags = [line for line in cpu.read_text().splitlines() if line.startswith("flags")][:1] if cpu.exists() else []
    tools = [_glance(Path(found)) for tool in _TOOLS if (found := shutil.which(tool))]
    return _digest(code.hexdigest(), repr(deps.installed()), platform.platform(), *flags, *tools)


def _texts(tree: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yields (key, text) of every text in `tree`."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _texts(value, str(name))
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _texts(value, key)
    elif isinstance(tree, str):
        yield key, tree


def _named(project: Project) -> list[Path]:
    """Returns the files and folders that texts in the params of later stages than ingest may name."""
    sections = {name: section for name, section in project.params.tree.items() if name not in ("ingest", "runtime")}
    texts = {text for _, text in _texts(sections) if text.strip(". /") and len(text) < _LONGEST_PATH}
    return sorted({path for text in texts for path in _places(project.root, text) if path.exists()})


def _places(root: Path, text: str) -> Iterator[Path]:
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache/huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    yield from (root / text, hub / f"models--{text.replace('/', '--')}")
    if set(text) & set("*?["):
        yield from map(Path, glob.glob(str(root / text), recursive=True))
