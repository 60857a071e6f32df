"""What the stage `reference` left: reference.json, which names the checkpoints that are whole."""

import json
from pathlib import Path

from pipelines.core.project import Project
from scoring.core.errors import DataError
from scoring.core.types import JsonObject

TRAIN = "train"  # reference.model of a reference that is trained here

Marker = JsonObject


def path(project: Project) -> Path:
    """Returns where the marker lies."""
    return project.folder("reference") / "reference.json"


def read(project: Project) -> Marker:
    """Returns what the stage wrote: `checkpoints` [{name, digest}], or none and why they were `skipped`.

    Raises:
      DataError: the stage has not run, or was cut off.
    """
    try:
        return dict(json.loads(path(project).read_bytes()))
    except (OSError, ValueError) as error:
        raise DataError(
            "there is no reference model", where=str(path(project)), remedy="run gradsift run reference"
        ) from error


def checkpoints(project: Project, marker: Marker) -> list[str]:
    """Returns the model names of the checkpoints of `marker`, as `scoring.models.load` takes them."""
    return [model_name(project, marker, c["name"]) for c in marker["checkpoints"]]


def model_name(project: Project, marker: Marker, name: str) -> str:
    """Returns the model name of checkpoint `name` of `marker`."""
    return str(project.folder("reference") / name) if marker["model"] == TRAIN else name
