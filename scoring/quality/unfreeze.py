"""Fine-tunes the last layers of an encoder to separate good texts from others, before a head is fitted on it.

A small linear head on the mean-pooled embedding begins as the regression on the frozen ones, so that the first steps
do not undo what the encoder knows (Kumar et al. 2022, "Fine-tuning can distort pretrained features"). It is thrown
away: what scores rows is fitted afterwards, as on any encoder.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.core.errors import ConfigError
from scoring.models import encoding
from scoring.models.encoding import Ints
from scoring.models.types import Model, Module, Tensor, Tokenizer
from scoring.quality import head as quality_head
from scoring.quality.head import Bools

EPOCHS = 3

_BATCH_ROWS = 16
_ENCODER_RATE = 3e-5  # of AdamW, as for BERT (Devlin et al. 2019, A.3)
_HEAD_RATE = 1e-3
_WARMUP = 0.1  # of all steps
_MAX_NORM = 1.0  # of the gradient
_MEASURED_TOKENS = 4096  # padded tokens per batch of the frozen embeddings

Floats = npt.NDArray[np.float32]


def layers_of(model: Model, name: str) -> Sequence[Module]:
    """Returns the transformer layers of `model`, the first one first.

    Raises:
      ConfigError: it has no list of them that can be trained: an ONNX file, or layers that share their weights.
    """
    import torch

    wanted = getattr(model.config, "num_hidden_layers", None)
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)] if hasattr(model, "modules") else []
    for found in lists:
        if len(found) == wanted:
            return list(found)
    raise ConfigError(
        f"a {type(model).__name__} has no list of layers to fine-tune",
        where=f"--unfreeze, model {name}",
        remedy="use a BERT-like encoder with safetensors, or omit --unfreeze",
    )


def last_layers(model: Model, name: str, count: int) -> list[Module]:
    """Returns the last `count` transformer layers of `model`.

    Raises:
      ConfigError: it has fewer, `count` is below 1, or it has no list of them.
    """
    layers = layers_of(model, name)
    if not 1 <= count <= len(layers):
        raise ConfigError(
            f"--unfreeze is {count}, but the model has {len(layers)} transformer layers",
            where=f"model {name}",
            remedy=f"pass a number from 1 to {len(layers)}",
        )
    return list(layers[-count:])


def train(
    model: Model,
    tokenizer: Tokenizer,
    layers: Sequence[Module],
    found: Sequence[Ints],
    good: Bools,
    *,
    seed: int,
    say: Callable[[str], None],
) -> None:
    """Trains `layers` of `model` in place on windows `found`, of which `good` (n,) come from good rows.

    The loss is the binary cross-entropy of windows, both classes weighing the same. The same seed, windows and number
    of threads give the same weights.
    """
    import torch

    with torch.random.fork_rng(devices=[]):  # the caller's draws stay what they were
        torch.manual_seed(seed)
        task = _Task(model, tokenizer, _first_head(model, tokenizer, found, good), found, good)
        model.train().requires_grad_(False)
        for layer in layers:
            layer.requires_grad_(True)
        _run(task, [p for layer in layers for p in layer.parameters()], seed, say)
    model.eval().requires_grad_(False)


class _Task(NamedTuple):
    """What is trained, and the windows that it learns from."""

    model: Model
    tokenizer: Tokenizer
    head: Module
    found: Sequence[Ints]
    good: Bools

    def loss(self, rows: npt.NDArray[np.int64]) -> Tensor:
        """Returns the mean loss of the windows `rows`."""
        good = self.good[rows]
        weights = 0.5 / np.where(good, self.good.mean(), 1 - self.good.mean())
        return _loss(self.model, self.tokenizer, self.head, [self.found[k] for k in rows], good, weights)


def _run(task: _Task, own: Sequence[Tensor], seed: int, say: Callable[[str], None]) -> None:
    """Trains the parameters `own` of the encoder, and the head."""
    import torch

    small, steps = list(task.head.parameters()), EPOCHS * -(-len(task.found) // _BATCH_ROWS)
    optimizer = torch.optim.AdamW([{"params": own, "lr": _ENCODER_RATE}, {"params": small, "lr": _HEAD_RATE}])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
    for epoch in range(EPOCHS):
        losses = []
        for rows in _batches(len(task.found), seed, epoch):
            loss = task.loss(rows)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*own, *small], _MAX_NORM)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
        say(f"quality: epoch {epoch + 1} of {EPOCHS}, loss {np.mean(losses):.3f}")


def _first_head(model: Model, tokenizer: Tokenizer, found: Sequence[Ints], good: Bools) -> Module:
    """Returns the regression on the frozen embeddings as a layer (d → 1)."""
    import torch

    embeddings = encoding.embed(model, tokenizer, found, _MEASURED_TOKENS)
    linear = quality_head.fit_linear(embeddings, good)
    head = torch.nn.Linear(embeddings.shape[1], 1)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(linear.weights)[None])
        head.bias.fill_(linear.bias)
    return head


def _rate(step: int, steps: int) -> float:
    """Returns the factor of the learning rate: up over the warm-up, then down to 0."""
    warm = max(1.0, _WARMUP * steps)
    return min((step + 1) / warm, (steps - step) / max(1.0, steps - warm), 1.0)


def _batches(n: int, seed: int, epoch: int) -> Iterator[npt.NDArray[np.int64]]:
    order = np.random.default_rng([seed, epoch]).permutation(n)
    for start in range(0, n, _BATCH_ROWS):
        yield order[start : start + _BATCH_ROWS]


def _loss(
    model: Model,
    tokenizer: Tokenizer,
    head: Module,
    found: Sequence[Ints],
    good: Bools,
    weights: npt.NDArray[np.float64],
) -> Tensor:
    import torch

    before, after = encoding.frame(tokenizer)
    rows = [torch.tensor([*before, *window.tolist(), *after]) for window in found]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=tokenizer.pad_token_id or 0)
    mask = torch.arange(ids.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
    logits = head(encoding.mean_pooled(model, ids, mask.long()))[:, 0]
    wanted, factors = torch.tensor(good.astype(np.float32)), torch.tensor(weights.astype(np.float32))
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted, weight=factors)
