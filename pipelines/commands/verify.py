"""`gradsift verify`: every file of a project's data against the digests that were written with it.

Reads:      all of data/ but data/sample, which only stage `sample` writes and later stages read as sources
Writes:     nothing; a damaged file's time changes, so that its stage rewrites it
Guarantees: every byte of a file with a seal or a recorded digest is compared; files without are counted
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.core.project import Project, open_project
from scoring.core.errors import DataError
from scoring.core.files import file_digest
from scoring.models import files as model_files
from transforms.core import arrow_files, parts, schemas, sealed
from transforms.shard import manifest

_THREADS = 4

Pairs = Iterable[tuple[str, str]]  # file, digest


class Fault(NamedTuple):
    """What is wrong with a file."""

    path: Path
    what: str


class Check(NamedTuple):
    """A file, and what compares it: returns whether it has a checksum, raises DataError where it is damaged."""

    path: Path
    compare: Callable[[Path], bool]


def main(path: Path) -> None:
    """Prints each damaged file of the project with params file `path`, and a summary.

    Raises:
      DataError: a file is damaged, missing, or not of the samples it should belong to.
    """
    project = open_project(path)
    checks = list(_checks(project))
    faults, unsealed = _run(checks)
    if not faults:  # what follows reads footers
        faults = [*_unlike_samples(project), *_unlike_rejects(project)]
    for fault in faults:
        where = fault.path.relative_to(project.root)
        print(f"{where}: {fault.what}\n  rewritten by: {_remedy(fault.path)}")
    size = sum(c.path.stat().st_size for c in checks if c.path.is_file())
    print(f"{len(checks):,} files, {size / 1e6:,.1f} MB: {len(faults):,} damaged, {unsealed:,} without checksums")
    if faults:
        stages = sorted({sealed.stage_of(f.path) for f in faults} - {""})
        remedy = f"gradsift run {' '.join(stages)}, then the stages after them: gradsift run"
        raise DataError(f"{len(faults)} files are damaged", where=str(project.data), remedy=remedy)


def _remedy(path: Path) -> str:
    return f"gradsift run {sealed.stage_of(path)}"


def _run(checks: list[Check]) -> tuple[list[Fault], int]:
    """Returns what is wrong, and how many files carry no checksum."""
    faults, unsealed = [], 0
    with ThreadPoolExecutor(_THREADS) as pool:
        for check, found in zip(checks, _tracked(pool.map(_result, checks), len(checks)), strict=True):
            if isinstance(found, str):
                faults.append(Fault(check.path, found))
            else:
                unsealed += not found
    return faults, unsealed


def _result(check: Check) -> bool | str:
    try:
        return check.compare(check.path)
    except DataError as error:
        return str(error).splitlines()[0]


def _tracked(found: Iterable[bool | str], total: int) -> Iterable[bool | str]:
    """Returns `found`, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        return found
    from rich.console import Console
    from rich.progress import track

    return track(found, description="verify", total=total, console=Console(stderr=True))


def _checks(project: Project) -> Iterator[Check]:
    """Yields a check of every file with a digest, and of every Parquet file."""
    target = project.folder("shards")
    listed = manifest.listed(manifest.read(target / "manifest.json"))
    if (target / "manifest.json").exists() and not listed:
        yield Check(target / "manifest.json", partial(_fail, "the manifest cannot be read"))
    recorded = {target / name: digest for name, digest in listed.items()}
    for path in sorted({*_files(project, "*.parquet"), *recorded}):
        if path.parent == target and listed:
            yield Check(path, partial(_shard, recorded.get(path)))
        else:
            yield Check(path, _parquet)
    yield from (Check(path, _arrow) for path in _files(project, f"*{arrow_files.SUFFIX}"))
    yield from _recorded(project)


def _files(project: Project, pattern: str) -> list[Path]:
    """Returns the files of all stages but `sample`, without hidden folders, in which runs leave what only they need."""
    found = []
    for path in sorted(project.data.rglob(pattern)):
        pieces = path.relative_to(project.data).parts
        if pieces[0] != "sample" and not any(p.startswith(".") for p in pieces):
            found.append(path)
    return found


def _fail(what: str, path: Path) -> bool:
    raise sealed.damage(path, what)


def _parquet(path: Path) -> bool:
    found = sealed.check(path)
    if not found:
        sealed.read_table(path)  # nothing to compare with, but it must be readable
    elif parts.Footer(path).meta.get("part", path.name) != path.name:
        raise sealed.damage(path, "it is another part, copied here")
    return found


def _shard(listed: str | None, path: Path) -> bool:
    if listed is None:
        raise sealed.damage(path, "manifest.json does not list it")
    if sealed.sha256(path) != listed:
        raise sealed.damage(path, "its SHA-256 is not the one in manifest.json")
    return True


def _arrow(path: Path) -> bool:
    try:
        found = arrow_files.check(path)
    except OSError as error:
        raise sealed.fault(path, error) from error
    if found is False:
        raise sealed.damage(path, "its bytes are not those that were written")
    return bool(found)


def _recorded(project: Project) -> Iterator[Check]:
    """Yields checks of the files whose digests another file records."""
    folder = project.folder
    yield from _listed(folder("gradients/directions") / "directions.json", lambda r: r["files"].items())
    yield from _listed(folder("quality/head") / "card.json", lambda r: [("head.safetensors", r["head"])])
    yield from _listed(folder("lqs") / "distilled.json", lambda r: [("distilled.safetensors", r["digest"])])
    yield from _listed(folder("dedup/lines") / "shared.json", lambda r: [("shared.npy", r["digest"])])
    yield from _listed(folder("reference") / "reference.json", _own_checkpoints, _checkpoint)


def _own_checkpoints(record: Any) -> Pairs:
    """Returns the checkpoints that were trained here; a model that params name is not ours to verify."""
    named = [(str(c["name"]), str(c["digest"])) for c in record["checkpoints"]]
    return [(name, digest) for name, digest in named if re.fullmatch(r"checkpoint-\d+", name)]


def _listed(
    record: Path, pairs: Callable[[Any], Pairs], compare: Callable[[str, Path], bool] | None = None
) -> Iterator[Check]:
    """Yields a check of each file that `record`, a file of JSON, names beside its digest; none without a record."""
    try:
        found = list(pairs(json.loads(record.read_bytes())))
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield Check(record, partial(_fail, f"it cannot be read: {error}"))
        return
    yield from (Check(record.with_name(name), partial(compare or _file, digest)) for name, digest in found)


def _file(digest: str, path: Path) -> bool:
    try:
        if file_digest(path) != digest:
            raise sealed.damage(path, "its bytes are not those that were written")
    except OSError as error:
        raise sealed.fault(path, error) from error
    return True


def _checkpoint(digest: str, path: Path) -> bool:
    if not path.is_dir() or model_files.digest(str(path)) != digest:
        raise sealed.damage(path, "the checkpoint is not as it was written")
    return True


def _unlike_samples(project: Project) -> list[Fault]:
    """Returns the sidecars that are missing or of other samples than the part of that name."""
    names, faults = parts.names(project.folder("samples")), []
    ids = {n: parts.Footer(project.folder("samples") / n).meta.get("ids") for n in names}
    for folder in (f for f in schemas.PARTS if f not in ("samples", "rejects")):
        found = set(parts.names(project.folder(folder)))
        for name in sorted(found.union(names) if found else ()):
            path = project.folder(folder) / name
            if name not in found or name not in ids:
                words = "the part is missing" if name in ids else "there is no part of samples with its name"
                faults.append(Fault(path, words))
            elif parts.Footer(path).meta.get("ids") != ids[name]:
                faults.append(Fault(path, "it holds other samples than the part of samples with its name"))
    return faults


def _unlike_rejects(project: Project) -> list[Fault]:
    """Returns the parts of rejects that do not belong to the parts of samples of their name: both are of one run."""
    samples, rejects = project.folder("samples"), project.folder("rejects")
    return [
        Fault(rejects / name, "it belongs to other parts of samples")
        for name in parts.names(rejects)
        if (samples / name).exists()
        and parts.Footer(samples / name).fingerprint != parts.Footer(rejects / name).fingerprint
    ]
