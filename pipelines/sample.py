"""Stage `sample`: the embedded default corpus, so that everything runs with nothing but the installation.

Reads: texts of Python and of the packages the project depends on, two photos, ffmpeg's generators.
Writes: `data/sample`: texts.jsonl, captions.jsonl, pictures/, videos/, sounds/, _manifest.json.
Guarantees: the same params and installation give the same bytes; every planted fault is named in the
column `fault`; no file names a path of this machine.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipelines.core import progress, stage
from pipelines.core.project import Project
from pipelines.sample_corpus import faults, sources, texts
from pipelines.sample_corpus.config import SampleConfig
from pipelines.sample_corpus.files import MediaFile
from pipelines.sample_corpus.pictures import pictures
from pipelines.sample_corpus.recordings import sounds, videos
from scoring.core import files
from scoring.core.types import JsonObject, Record
from transforms.decode import tool

MANIFEST = "_manifest.json"


def run(project: Project) -> None:
    """Writes the corpus, unless it is there whole."""
    config = project.section("sample", SampleConfig)
    folder, wanted = project.folder("sample"), _fingerprint(config)
    if project.force or not is_current(folder, wanted):
        progress.say("sample: generating the default corpus")
        _write(folder, wanted, config)
    stage.write_metrics(project, "sample", _manifest(folder)["counts"])


def _fingerprint(config: SampleConfig) -> str:
    return stage.fingerprint("pipelines.sample", config, [*sources.versions(), tool.versions()])


def is_current(folder: Path, fingerprint: str) -> bool:
    """Returns whether `folder` holds every file of a corpus with this fingerprint, unchanged."""
    found = _manifest(folder)
    return found.get("fingerprint") == fingerprint and all(
        _digest(folder / name) == digest for name, digest in found["files"].items()
    )


def _manifest(folder: Path) -> JsonObject:
    try:
        return dict(json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _write(folder: Path, fingerprint: str, config: SampleConfig) -> None:
    """Writes every file whole, the manifest last; removes what an earlier corpus left."""
    (folder / MANIFEST).unlink(missing_ok=True)
    digests: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for name, data, facts in _files(config):
        _write_file(folder / name, data)
        digests[name] = hashlib.sha256(data).hexdigest()
        counts.update(facts)
    _remove_others(folder, set(digests))
    files.write_json(
        folder / MANIFEST, {"fingerprint": fingerprint, "files": digests, "counts": dict(sorted(counts.items()))}
    )


def _write_file(path: Path, data: bytes) -> None:
    files.write_atomic(path, lambda temporary: Path(temporary).write_bytes(data))


def _remove_others(folder: Path, wanted: set[str]) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in wanted:
            path.unlink()


def _files(config: SampleConfig) -> Iterator[tuple[str, bytes, Mapping[str, int]]]:
    """Yields every file of the corpus: its path, its bytes, and what it adds to the counts."""
    documents = texts.documents(config.texts, config.seed)
    clean = [_line({"id": d.id, "text": d.text, "domain": d.domain, "origin": d.origin}) for d in documents]
    faulty = faults.lines(documents, config.faults, config.seed)
    yield "texts.jsonl", _joined([*clean, *faulty]), {"texts": len(clean), "text_faults": len(faulty)}
    media: list[MediaFile] = []
    makers = (
        pictures(config.pictures, config.seed, documents),
        videos(config.videos, config.seed),
        sounds(config.sounds, config.seed),
    )
    for maker in makers:
        for file in maker:
            media.append(file)
            yield file.path, file.data, {file.path.split("/")[0]: 1, "media_faults": int(file.fault is not None)}
    captions = list(_captions(media))
    yield "captions.jsonl", _joined(captions), {"captions": len(captions)}


def _captions(media: list[MediaFile]) -> Iterator[bytes]:
    """Yields a row for each medium that has a caption, then rows whose medium cannot be had."""
    captioned = [m for m in media if m.caption]
    for number, file in enumerate(captioned):
        yield _line({"id": f"caption-{number:03d}", "text": file.caption, file.kind: file.path})
    lost = {
        "missing_media": "pictures/no-such-picture.png",
        "unsafe_path": "../../outside.png",
        "broken_media": "pictures/truncated.jpg",
    }
    for fault, path in lost.items():
        text = "A picture that the reader of this row will not see."
        yield _line({"id": f"fault-{fault}-00", "text": text, "image": path, "fault": fault})


def _line(row: Record) -> bytes:
    return json.dumps({**row, "fault": row.get("fault")}, ensure_ascii=False).encode()


def _joined(rows: list[bytes]) -> bytes:
    return b"\n".join(rows) + b"\n"


def main(argv: list[str] | None = None) -> int:
    """Runs the stage from the command line; returns its exit code."""
    return stage.main(run, "sample", argv)


if __name__ == "__main__":
    sys.exit(main())
