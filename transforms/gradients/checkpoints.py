"""The reference's checkpoints as loaded by a worker, and their directions on disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from scoring.core.errors import ConfigError
from scoring.gradients import layers
from scoring.gradients.losses import Objective, Row
from scoring.gradients.order_gain import Words
from scoring.gradients.scorer import Floats, Scorer
from scoring.models import load as models
from scoring.models.types import Model, Module, Tensor, Tokenizer
from scoring.reference.config import CHARS_PER_TOKEN
from transforms.gradients.config import GradientsConfig


class Rows(NamedTuple):
    """Tokenized texts."""

    ids: list[Row]
    words: list[Words]  # the word of each token


@dataclass(frozen=True)
class Checkpoint:
    """A loaded reference checkpoint, and what scores rows along the directions of it."""

    model: Model
    scorer: Scorer  # of two directions: the target's gradient and, but for the last checkpoint, the costate
    norms: Floats  # (k,) of the directions


@dataclass(frozen=True)
class Loaded:
    """All checkpoints in training order, and their tokenizer. One thread at a time: the models carry hooks."""

    tokenizer: Tokenizer
    objective: Objective
    checkpoints: tuple[Checkpoint, ...]
    lock: Lock


@dataclass(frozen=True)
class Recipe:
    """How a worker gets its models: names for `scoring.models.load`, and one file of directions a checkpoint."""

    config: GradientsConfig
    root: Path
    threads: int
    names: tuple[str, ...]
    directions: tuple[Path, ...]

    def load(self) -> Loaded:
        """Returns the loaded checkpoints.

        Raises:
          ConfigError: max_tokens or layers do not fit the model.
          ToolError: a model is not on this machine.
        """
        models.use_threads(self.threads)
        tokenizer = models.load_tokenizer(self.names[0], self.root)
        found = tuple(self._checkpoint(n, p) for n, p in zip(self.names, self.directions, strict=True))
        return Loaded(tokenizer, Objective.of(found[0].model, tokenizer), found, Lock())

    def _checkpoint(self, name: str, path: Path) -> Checkpoint:
        model = load_model(self.config, name, self.root)
        directions = read_directions(path)
        norms = sum(d.double().square().flatten(1).sum(1) for d in directions.values())
        projection = self.config.projection if self.config.sketches else None
        scorer = Scorer(model, scored_layers(model, self.config), directions, projection)
        return Checkpoint(model, scorer, norms.sqrt().numpy())


def scored_layers(model: Model, config: GradientsConfig) -> dict[str, Module]:
    """Returns the layers of `model` that params name."""
    return layers.scored_layers(model, config.scored, embeddings=config.embeddings)


def load_model(config: GradientsConfig, name: str, root: Path) -> Model:
    """Returns the language model `name`, which is known to take rows of `max_tokens`, on the GPU if there is one.

    Raises:
      ConfigError: it does not.
    """
    import torch

    model = models.load_reference(name, root, dtype=config.dtype)
    longest = getattr(model.config, "max_position_embeddings", None)
    if longest and config.max_tokens > longest:
        raise ConfigError(
            f"gradients.max_tokens is {config.max_tokens}, but the reference model accepts at most {longest} tokens",
            where=name,
            remedy=f"set gradients.max_tokens to {longest} or less, or reference.context to {config.max_tokens}",
        )
    return model.to("cuda") if torch.cuda.is_available() else model


def write_directions(path: str, target: Mapping[str, Tensor], costate: Mapping[str, Tensor] | None) -> None:
    """Writes the directions of one checkpoint as safetensors."""
    from safetensors.torch import save
    from torch import stack

    stacked = {n: stack([d, costate[n]] if costate else [d]).cpu() for n, d in sorted(target.items())}
    Path(path).write_bytes(save(stacked))  # an OSError on a full disk, which safetensors' own writer hides


def read_directions(path: Path) -> dict[str, Tensor]:
    """Returns what `write_directions` wrote, {layer: (k, o, i)}."""
    from safetensors.torch import load_file

    return dict(load_file(path))


def token_rows(tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int) -> Rows:
    """Returns the first `max_tokens` tokens of each text, with the special tokens that the model begins with."""
    cut = [text[: max_tokens * CHARS_PER_TOKEN] for text in texts]
    records = tokenizer.backend_tokenizer.encode_batch(cut)
    return Rows([r.ids[:max_tokens] for r in records], [r.word_ids[:max_tokens] for r in records])
