"""The directions that gradients are compared with: one file per checkpoint, and directions.json.

Reads:      data/clean, data/dedup, data/quality, data/reference; the files of `gradients.target`
Writes:     data/gradients/directions
Guarantees: directions of a corpus sample are kept until its rows have changed by more than `refresh_ratio`; those of
            a target set until a byte of it changes.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from pipelines.core import progress, stage
from pipelines.core.project import Project
from pipelines.passes import kept_texts
from scoring.core import drift, files
from scoring.core.errors import ConfigError
from scoring.core.files import file_digest
from scoring.core.hashing import hash64
from scoring.core.types import JsonObject
from scoring.gradients import directions
from scoring.gradients.costate import costates
from scoring.gradients.layers import Tensors
from scoring.gradients.losses import Objective
from scoring.gradients.sketches import Float32s
from scoring.models import load as models
from scoring.models.types import Tensor
from scoring.reference.config import CHARS_PER_TOKEN
from transforms.core import parts
from transforms.gradients.checkpoints import load_model, scored_layers, token_rows, write_directions
from transforms.gradients.config import GradientsConfig
from transforms.readers.text_source import Use, read_texts, sources_digest

OTHER = "other-seed.safetensors"
USE = Use("target", "params, gradients.target")
_SETTINGS = (
    "embeddings", "dtype", "max_tokens", "batch_tokens", "target", "target_rows", "contrast", "costate", "costate_rate",
    "seed",
)  # fmt: skip

Marker = JsonObject


def folder(project: Project) -> Path:
    """Returns the folder of the directions."""
    return project.folder("gradients") / "directions"


def remove(project: Project) -> None:
    """Removes the directions, when there is no reference."""
    shutil.rmtree(folder(project), ignore_errors=True)


def prepare(project: Project, config: GradientsConfig, names: Sequence[str], digests: Sequence[str]) -> Marker:
    """Returns what directions.json says: of the directions on disk if they are still good, else of new ones.

    `names` and `digests` are those of the reference's checkpoints.

    Raises:
      ConfigError, DataError: the target set cannot be read, or holds no text.
    """
    source = sources_digest(project.root, [config.target], USE) if config.target else ""
    settings = {"layers": config.scored, **{n: asdict(config)[n] for n in _SETTINGS}}
    key = stage.fingerprint("pipelines.passes.directions", settings, [*digests, source])
    inputs = source or kept_texts.inputs(project)
    old = None if project.force else _reusable(project, key)
    if old and old["inputs"] == inputs:
        return old
    ids, texts = _target(project, config, config.seed)
    if old and drift.distance(old["ids"], ids) <= config.refresh_ratio:
        marker = old | {"inputs": inputs}
    else:
        remove(project)
        written = _write(project, config, names, texts())
        _write_other(project, config, names)
        marker = {"fingerprint": key, "inputs": inputs, "ids": ids, "files": written}
    files.write_json(folder(project) / "directions.json", marker)
    return marker


def _target(project: Project, config: GradientsConfig, seed: int) -> tuple[list[str], Callable[[], list[str]]]:
    """Returns the ids of the target rows, and a function that reads their texts."""
    chars = config.max_tokens * CHARS_PER_TOKEN
    if config.target is None:
        chosen = kept_texts.choose(project, config.target_rows, seed, better_half=True)
        return [c.sample_id for c in chosen], partial(kept_texts.read, project, chosen, chars)
    rows = ((parts.digest(t), t[:chars]) for t in read_texts(project.root, config.target, USE) if t.strip())
    found = sorted(dict(rows).items(), key=lambda r: hash64(seed, r[0]))[: config.target_rows]
    if not found:
        raise ConfigError(
            f"target {config.target.name} contains no text", where=USE.where, remedy="change `paths` or `columns`"
        )
    return [i for i, _ in found], partial(list, [t for _, t in found])


def read(project: Project) -> Marker | None:
    """Returns what directions.json says: `files` {name: digest}, `ids` of the target rows; None without one."""
    try:
        return dict(json.loads((folder(project) / "directions.json").read_bytes()))
    except (OSError, ValueError):
        return None


def _reusable(project: Project, key: str) -> Marker | None:
    """Returns the marker on disk if its fingerprint is `key` and its files are complete."""
    marker = read(project)
    if marker is None or marker["fingerprint"] != key:
        return None
    try:
        whole = all(file_digest(folder(project) / name) == digest for name, digest in marker["files"].items())
    except OSError:
        return None
    return marker if whole else None


def _write(project: Project, config: GradientsConfig, names: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Writes one file of directions a checkpoint; returns their digests by name."""
    progress.say(f"gradients: computing the target direction from {len(texts)} rows at {len(names)} checkpoints")
    models.use_threads(project.runtime.threads)
    at = _Differentiated(project, config, texts, names, config.seed)
    found = [at(directions.target_gradient, name) for name in names]
    products = [partial(at, directions.hessian_product, name) for name in names] if config.costate == "full" else None
    digests = {}
    for number, (target, costate) in enumerate(
        zip(found, costates(found, products, rate=config.costate_rate), strict=True), start=1
    ):
        path = folder(project) / f"checkpoint-{number:02d}.safetensors"
        files.write_atomic(path, partial(write_directions, target=target, costate=costate))
        digests[path.name] = file_digest(path)
    return digests


class _Differentiated:
    """The target set and its degraded copies, ready to be differentiated on any checkpoint."""

    def __init__(
        self, project: Project, config: GradientsConfig, texts: Sequence[str], names: Sequence[str], seed: int
    ) -> None:
        self._config, self._root = config, project.root
        self._tokenizer = models.load_tokenizer(names[0], project.root)
        copies = directions.degraded(texts, seed)
        target, degraded = (token_rows(self._tokenizer, t, config.max_tokens).ids for t in (texts, copies))
        self._sets = directions.Sets(target, degraded, config.contrast)

    def __call__(self, function: Callable[..., dict[str, Tensor]], name: str, *vector: Tensors) -> dict[str, Tensor]:
        """Returns `function` of checkpoint `name` and the sets."""
        model = load_model(self._config, name, self._root)
        options = {"batch_tokens": self._config.batch_tokens, "objective": Objective.of(model, self._tokenizer)}
        return function(model, scored_layers(model, self._config), self._sets, *vector, **options)


def _write_other(project: Project, config: GradientsConfig, names: Sequence[str]) -> None:
    """Writes the sketch of the last direction as another seed would choose it: what `stability` compares with."""
    from safetensors.numpy import save

    _, texts = _target(project, config, config.seed + 1)
    gradient = _Differentiated(project, config, texts(), names, config.seed + 1)(directions.target_gradient, names[-1])
    sketch = config.projection.of({n: g[None] for n, g in gradient.items()})
    content = save({"sketch": sketch})
    files.write_atomic(folder(project) / OTHER, lambda path: Path(path).write_bytes(content))


def other_sketch(project: Project) -> Float32s:
    """Returns (1, width) float32: the sketch of the last direction as another seed would choose it."""
    from safetensors.numpy import load_file

    return load_file(folder(project) / OTHER)["sketch"]
