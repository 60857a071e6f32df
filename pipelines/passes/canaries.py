"""Does the score rank good rows above junk? Canaries are scored before any row is.

Reads:      data/clean, data/dedup, data/quality (good rows), data/reference, data/gradients/directions, data/static
            (unigrams), metrics/static.json (quantiles); the files of `lqs.canaries.labelled`
Writes:     data/lqs/canaries.parquet: what each canary scored
Guarantees: the same corpus and params choose the same rows and make the same junk; nothing here is ever a sample.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from pipelines import gradients
from pipelines.core import progress, stage, trust
from pipelines.core.project import Project
from pipelines.passes import directions, kept_texts, reference_marker
from scoring.core.errors import ConfigError, DataError
from scoring.core.hashing import hash64
from scoring.core.types import JsonObject
from scoring.models import load as models
from scoring.order.cost_config import TokensConfig
from scoring.static.scale import Bounds
from transforms.clean import transform as clean
from transforms.clean.config import CleanConfig
from transforms.core import parts
from transforms.gradients.checkpoints import Recipe
from transforms.gradients.config import GradientsConfig
from transforms.lqs import canaries
from transforms.lqs.canaries import Canary, Tools
from transforms.lqs.canary_figures import GOOD, LABELLED_BAD, LABELLED_GOOD, MIN_ROWS
from transforms.lqs.config import CanaryConfig, LabelledSource, LqsSection
from transforms.readers.text_source import Use, read_texts
from transforms.static.config import StaticConfig
from transforms.static.transform import load_unigrams

USE = Use("canary source", "params, lqs.canaries.labelled")
MAX_LABELLED = 400  # rows of a labelled source
_NAME = "canaries.parquet"


def measure(project: Project, config: CanaryConfig) -> pa.RecordBatch | None:
    """Returns what each canary scored, from disk if nothing has changed; None if the check does not apply.

    Raises:
      ConfigError, DataError: the labelled rows cannot be read, or are all of one kind.
    """
    folder = project.folder("lqs")
    marker = directions.read(project) if config.rows else None
    chosen = list(_choose(project, config)) if marker else []
    if marker is None or sum(c.kind == GOOD for c in chosen) < MIN_ROWS:
        if config.rows:
            progress.say(f"lqs: canary check skipped: fewer than {MIN_ROWS} good rows, or no reference")
        (folder / _NAME).unlink(missing_ok=True)
        return None
    recipe = gradients.make_recipe(project, project.section("gradients", GradientsConfig), marker)
    reference = [c["digest"] for c in reference_marker.read(project)["checkpoints"]]
    unigrams = project.folder("static") / "unigrams.parquet"
    bounds = _bounds(project)
    sections = {n: project.params.tree[n] for n in ("clean", "tokens", "gradients", "static")}
    inputs = [*reference, *marker["files"].values(), str(parts.Footer(unigrams).meta["values"]), parts.digest(bounds)]
    texts = parts.digest([list(c) for c in chosen])
    task = parts.Task(_NAME, stage.fingerprint("pipelines.passes.canaries", sections, [*inputs, texts]))
    if project.force or not trust.is_done(folder, task):
        progress.say(f"lqs: scoring {len(chosen)} canaries")
        found = canaries.measure(chosen, _tools(project, recipe, unigrams, bounds))
        parts.write_part(folder, parts.Part(task.name, task.fingerprint, found), found.schema)
    return parts.read_part(folder / _NAME, parts.Footer(folder / _NAME).columns)


def _tools(project: Project, recipe: Recipe, unigrams: Path, bounds: Mapping[str, Bounds]) -> Tools:
    config = project.section("tokens", TokensConfig)
    return Tools(
        clean=project.section("clean", CleanConfig),
        cleaner=clean.load(),
        tokens=config,
        tokenizer=models.load_tokenizer(config.tokenizer, project.root),
        gradients=recipe.config,
        loaded=recipe.load(),
        static=project.section("static", StaticConfig),
        unigrams=load_unigrams(unigrams),
        bounds=bounds,
    )


def _bounds(project: Project) -> dict[str, Bounds]:
    """Returns the corpus quantiles that the static stage scaled by."""
    try:
        found = json.loads(project.metrics("static").read_bytes())["quantiles"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            "the quantiles of the static stage are missing", where=str(project.metrics("static")),
            remedy="run gradsift run static",
        ) from error  # fmt: skip
    return {d: {g: (low, high) for g, (low, high) in groups.items()} for d, groups in found.items()}


def _choose(project: Project, config: CanaryConfig) -> Iterator[Canary]:
    """Yields good rows and the junk made from them, and the labelled rows."""
    if config.labelled is None:
        chosen = kept_texts.choose(project, config.rows, config.seed, better_half=True)
        yield from canaries.make(kept_texts.read(project, chosen, config.chars), seed=config.seed)
        return
    rows = [Canary(kind, text[: config.chars]) for kind, text in _labelled(project, config.labelled, config.seed)]
    good = [c.text for c in rows if c.kind == LABELLED_GOOD][: config.rows]
    yield from canaries.make(good, seed=config.seed)
    yield from rows


def _labelled(project: Project, source: LabelledSource, seed: int) -> list[tuple[str, str]]:
    """Returns kind and text of a seeded sample of the labelled rows."""
    label = LabelledSource(**{**asdict(source), "columns": (source.label,)})
    texts, labels = (read_texts(project.root, s, USE) for s in (source, label))
    good = {str(name) for name in source.good_labels}
    rows = [
        (LABELLED_GOOD if verdict in good else LABELLED_BAD, text)
        for text, verdict in zip(texts, labels, strict=True)
        if text.strip() and verdict
    ]
    if len({kind for kind, _ in rows}) < 2:
        raise ConfigError(
            f"all {len(rows)} rows of {source.name} are {'good' if rows and rows[0][0] == LABELLED_GOOD else 'bad'}",
            where=USE.where, remedy="set `label` to the label column and `good_labels` to the labels of good rows",
        )  # fmt: skip
    return sorted(rows, key=lambda row: hash64(seed, row[1]))[:MAX_LABELLED]


def require(auc: Mapping[str, float], config: LqsSection) -> None:
    """Raises DataError if the final score ranks some kind of junk above good rows too often."""
    low = {kind: value for kind, value in auc.items() if value < config.min_canary_auc}
    if low:
        shown = ", ".join(f"{kind} {value:.2f}" for kind, value in sorted(low.items(), key=lambda x: x[1]))
        raise DataError(
            f"the score cannot separate junk from good rows: AUC of {shown}, below {config.min_canary_auc}",
            where="lqs.min_canary_auc; see metrics/lqs.json for all figures",
            remedy="train the reference longer (reference.steps), use a pretrained one, set gradients.target to good "
            "texts, lower lqs.alpha, or lower lqs.min_canary_auc if your data has no such junk",
        )


def summary(measured: pa.RecordBatch | None, found: Mapping[str, Mapping[str, float]]) -> JsonObject:
    """Returns what metrics say: `canary_auc` of the final score by kind, and of every signal."""
    rows = measured.num_rows if measured is not None else 0
    signals = {signal: {k: round(v, 4) for k, v in kinds.items()} for signal, kinds in found.items()}
    return {"canaries": rows, "canary_auc": signals.get("score", {}), "canary_auc_by_signal": signals}
