"""The columns of `data/quality/also`: params name them, so the catalog and `explain` read them off the parts.

Reads: data/quality/also.
Writes: nothing.
"""

from pipelines.core.project import Project
from scoring.core.types import JsonObject
from transforms.core import parts

FOLDER = "quality/also"
_A_MODEL = 3  # columns: score, label, coverage


def columns(project: Project) -> list[str]:
    """Returns the columns of the folder beside `sample_id`; none where parts of it are still of other params."""
    folder = project.folder(FOLDER)
    found = {tuple(parts.Footer(folder / name).columns) for name in parts.names(folder)}
    return list(found.pop()[1:]) if len(found) == 1 else []


def scores(project: Project, part: str, row: int) -> dict[str, tuple[float, str | None, float]]:
    """Returns score, label and coverage of one row by each model that scored it; none of a part of other samples."""
    path, samples = project.folder(FOLDER) / part, project.folder("samples") / part
    if not path.exists() or parts.Footer(path).meta.get("ids") != parts.Footer(samples).meta.get("ids"):
        return {}
    names = parts.Footer(path).columns[1:]
    values: JsonObject = parts.read_part(path, names).slice(row, 1).to_pylist()[0]
    triples = [names[k : k + _A_MODEL] for k in range(0, len(names), _A_MODEL)]
    return {name: (values[name], values[label], values[share])
            for name, label, share in triples if values[name] is not None}  # fmt: skip
