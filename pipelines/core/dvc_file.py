"""The project's `dvc.yaml`: its stage `ingest` depends on the files and folders that `ingest.sources` names.

All else in the file is written by hand, or by `gradsift init`. In a project that init made, the stage `sample`
stands in the file only where a source reads the embedded corpus.
"""

from itertools import takewhile
from pathlib import Path
from typing import Any

from pipelines.core import yaml_text
from scoring.core import files
from scoring.core.errors import ConfigError
from scoring.core.imports import PACKAGES
from scoring.core.types import Record

NAME = "dvc.yaml"
EMBEDDED = "data/sample"
TEMPLATE = Path(__file__).parents[1] / "commands/new_project" / NAME
REMEDY = "`gradsift init` writes one"


def source_deps(root: Path, tree: Record) -> list[str]:
    """Returns the files and folders that `ingest.sources` names, as DVC deps; a glob is its fixed folder."""
    named = [(source, str(p)) for source in tree["ingest"]["sources"] for p in source.get("paths", [])]
    found = {_fixed(path) for source, path in named if not _is_builder(root, source, path)}
    return sorted({EMBEDDED if path.startswith(EMBEDDED) else path for path in found})


def _is_builder(root: Path, source: Record, path: str) -> bool:
    """Returns whether `path` is the name of a `datasets` builder, which is no file that DVC could watch."""
    return source.get("format") == "huggingface" and not (root / path).exists()


def _fixed(pattern: str) -> str:
    fixed = list(takewhile(lambda piece: not set(piece) & set("*?["), Path(pattern).parts))
    return str(Path(*fixed)) if fixed else "."


def unwatched_sources(root: Path, tree: Record) -> list[str]:
    """Returns the sources that stage `ingest` of dvc.yaml has no dep for."""
    listed = {item.value for item in _ingest_deps(root, _stages(root, _read(root))).value}
    return sorted(set(source_deps(root, tree)) - listed)


def unnamed_sections(root: Path, own: Record) -> list[str]:
    """Returns the sections of params.yaml that stages of dvc.yaml watch and the file `own` does not name.

    DVC fails on them, with a message that does not say what to write.
    """
    stages = _stages(root, _read(root)).value
    listed = [p for _, stage in stages for p in getattr(yaml_text.child(stage, "params"), "value", ())]
    return sorted({str(p.value) for p in listed if isinstance(p.value, str)} - set(own))


def watch_sources(root: Path, tree: Record) -> list[str]:
    """Writes the sources of the params `tree` into the deps of stage `ingest`, and returns them.

    Deps on code stay, and so does every other character of the file.

    Raises:
      ConfigError: there is no dvc.yaml, or it has no stage `ingest` with deps.
    """
    text, sources = _read(root), source_deps(root, tree)
    stages = _stages(root, text)
    node = _ingest_deps(root, stages)
    code = [item.value for item in node.value if Path(item.value).parts[0] in PACKAGES]
    edits = [yaml_text.replaced(node, [*sources, *code])]
    if yaml_text.child(stages, "lock"):
        edits += _sample_stage(stages, wanted=EMBEDDED in sources)
    files.write_text(root / NAME, yaml_text.edited(text, edits))
    return sources


def _sample_stage(stages: Any, *, wanted: bool) -> list[yaml_text.Edit]:
    """Returns the edit that puts the stage `sample` before `ingest`, or removes it."""
    there = yaml_text.child(stages, "sample")
    if wanted == bool(there):
        return []
    if there:
        return [(*_lines(stages, "sample"), "")]
    text = TEMPLATE.read_text(encoding="utf-8")
    start, end = _lines(yaml_text.child(yaml_text.parse(text), "stages"), "sample")
    at, _ = _lines(stages, "ingest")
    return [(at, at, text[start:end])]


def _lines(stages: Any, name: str) -> tuple[int, int]:
    """Returns where the lines of stage `name` begin and end; another stage follows it."""
    keys = [key for key, _ in stages.value]
    k = [key.value for key in keys].index(name)
    start, end = (key.start_mark for key in (keys[k], keys[min(k + 1, len(keys) - 1)]))
    return start.index - start.column, end.index - end.column


def _read(root: Path) -> str:
    try:
        return (root / NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError("no dvc.yaml", where=str(root), remedy=REMEDY) from None


def _stages(root: Path, text: str) -> Any:
    """Returns the YAML node of the stages in `text`; its marks say where in `text` they stand."""
    import yaml

    try:
        stages = yaml_text.child(yaml_text.parse(text), "stages")
    except yaml.YAMLError as error:
        remedy = f"fix the file, or replace it: {REMEDY}"
        raise ConfigError(f"not YAML: {error}", where=str(root / NAME), remedy=remedy) from error
    if stages is None or not isinstance(stages, yaml.MappingNode):
        raise ConfigError("no stages", where=str(root / NAME), remedy=REMEDY)
    return stages


def _ingest_deps(root: Path, stages: Any) -> Any:
    node = yaml_text.child(yaml_text.child(stages, "ingest"), "deps")
    if not node or not node.value or not isinstance(node.value, list):
        raise ConfigError("no stage `ingest` with deps", where=str(root / NAME), remedy=REMEDY)
    return node
