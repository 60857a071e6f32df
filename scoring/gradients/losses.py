"""The loss of a row on a language model, and its way back to the activations.

Causal models: the mean of -log p(token | tokens before it) over all tokens of the row but the first.
Masked models (BERT and its kin): the mean of -log p over the row's masked positions, which depend on the row
alone: of its tokens, counted from 0, numbers 3, 10, 17 … that are not special; where there is none, the last
token that is not special. Each is replaced by the mask token.

Padding is on the right. A causal model never attends to it, a masked model is masked to attend to
none of it, and it has no loss: it is exact.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scoring.core.errors import ConfigError
from scoring.models import windows
from scoring.models.config import MIN_TOKENS
from scoring.models.types import Device, Model, Module, Tensor, Tokenizer

Row = Sequence[int]  # token ids of one sample
TakeHead = Callable[[slice, Tensor, Tensor], None]  # (rows of the batch, inputs a, gradients of the outputs b)
Numbered = tuple[list[int], "Batch"]

MASK_FROM = 3  # not the first words, which have too little before them
MASK_EVERY = 7  # about 15 %, as BERT was trained (Devlin et al. 2019)

_PLAIN = {f"{name}ForCausalLM" for name in ("Llama", "Mistral", "Qwen2", "Qwen3")} | {"GPT2LMHeadModel"}
_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}  # at a time: 64 MB of them, and of their gradients in their place


@dataclass(frozen=True)
class Objective:
    """What a masked model needs to be asked with; a causal model needs nothing."""

    mask_id: int | None = None
    special_ids: frozenset[int] = frozenset()

    @classmethod
    def of(cls, model: Model, tokenizer: Tokenizer) -> "Objective":
        """Returns the objective of a model and its tokenizer."""
        return cls(tokenizer.mask_token_id, frozenset(tokenizer.all_special_ids)) if is_masked(model) else cls()


@dataclass(frozen=True)
class Batch:
    """Rows as tensors, (b, t) each."""

    ids: Tensor
    labels: Tensor  # the token to predict at each place
    weights: Tensor  # float64, its share in the mean loss of its row; 0 where nothing is predicted
    attention: Tensor | None  # 1 on tokens, 0 on padding, for a model that looks both ways


def is_masked(model: Model) -> bool:
    """Returns whether `model` predicts masked tokens, by its class: no causal model is one."""
    from transformers.models.auto import modeling_auto as auto

    name = type(model).__name__
    causal = set(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    return name in set(auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()) - causal


def masked_places(row: Row, special_ids: frozenset[int]) -> list[int]:
    """Returns the places of `row` that a masked model has to predict; none in a row of special tokens alone."""
    plain = [n for n in range(len(row)) if row[n] not in special_ids]
    return [n for n in plain if n % MASK_EVERY == MASK_FROM] or plain[-1:]


def batches(model: Model, rows: Sequence[Row], batch_tokens: int, objective: Objective) -> Iterator[Numbered]:
    """Yields indices and tensors of rows of similar lengths, of at most `batch_tokens` padded tokens.

    A row that has nothing to predict is in none: its loss and its gradient are 0.
    """
    masked, asked = is_masked(model), able(model, rows, objective)
    if masked and objective.mask_id is None:
        raise ConfigError("a masked language model needs a mask token to be scored", remedy="use its own tokenizer")
    device = next(model.parameters()).device
    for picked in windows.batches([len(rows[n]) for n in asked], batch_tokens):
        ids, lengths = padded([rows[asked[n]] for n in picked])
        batch = _masked(ids, lengths, objective) if masked else causal(ids, lengths)
        yield [asked[n] for n in picked], _moved(batch, device)


def able(model: Model, rows: Sequence[Row], objective: Objective) -> list[int]:
    """Returns the numbers of the rows that have something to predict."""
    if is_masked(model):
        return [n for n, row in enumerate(rows) if masked_places(row, objective.special_ids)]
    return [n for n, row in enumerate(rows) if len(row) >= MIN_TOKENS]


def _moved(batch: Batch, device: Device) -> Batch:
    return Batch(*(None if x is None else x.to(device) for x in vars(batch).values()))


def padded(rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """Returns token ids (b, t), padded on the right, and lengths (b,).

    A row is padded with its own last token: no other token's weights, be they infinite, touch it.
    """
    import torch

    lengths = [len(r) for r in rows]
    ids = [[*row, *[row[-1]] * (max(lengths) - len(row))] for row in rows]
    return torch.tensor(ids), torch.tensor(lengths)


def causal(ids: Tensor, lengths: Tensor) -> Batch:
    """Returns the batch in which every token but the first of a row is predicted."""
    import torch

    real = torch.arange(1, ids.shape[1] + 1, device=ids.device) < lengths[:, None]
    return Batch(ids, ids.roll(-1, dims=1), real.double() / (lengths[:, None] - 1).clamp(min=1), None)


def _masked(ids: Tensor, lengths: Tensor, objective: Objective) -> Batch:
    """Returns the batch in which the masked places of each row are predicted."""
    import torch

    weights = torch.zeros(ids.shape, dtype=torch.float64)
    for n, length in enumerate(lengths.tolist()):
        places = masked_places(ids[n, :length].tolist(), objective.special_ids)
        weights[n, places] = 1 / len(places)
    attention = (torch.arange(ids.shape[1]) < lengths[:, None]).long()
    return Batch(ids.where(weights == 0, objective.mask_id), ids, weights, attention)


def row_losses(model: Model, ids: Tensor, lengths: Tensor) -> Tensor:
    """Returns the mean token loss (b,) of each row of `ids` (b, t) on a causal model, ready for autograd."""
    return batch_losses(model, causal(ids, lengths))


def batch_losses(model: Model, batch: Batch) -> Tensor:
    """Returns the loss (b,) of each row, ready for autograd."""
    from torch.nn.functional import cross_entropy

    logits = _logits(model, batch)
    losses = cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="none").view(batch.ids.shape)
    return losses.where(batch.weights > 0, 0.0).mul(batch.weights.to(losses.dtype)).sum(1)


def _asked(batch: Batch) -> dict[str, Tensor]:
    """Returns how a transformer is called."""
    if batch.attention is None:
        return {"input_ids": batch.ids, "use_cache": False}
    return {"input_ids": batch.ids, "attention_mask": batch.attention}


def _logits(model: Model, batch: Batch) -> Tensor:
    return model(**_asked(batch)).logits


def plain_head(model: Model) -> Module | None:
    """Returns the output layer of a model whose logits are that layer of its hidden states and nothing else."""
    return model.get_output_embeddings() if type(model).__name__ in _PLAIN else None


def backpropagate(model: Model, batch: Batch, take: TakeHead) -> Tensor:
    """Returns the losses (b,) of `batch`, and sends their gradients back through the activations of `model`.

    The largest tensor there is, the logits of all tokens, is never made where the model has a plain head:
    a few rows at a time pass through it, and `take(rows, a, b)` sees its inputs and output gradients.
    Elsewhere `take` is not called, and hooks see the head as any other layer.
    """
    head = plain_head(model)
    if head is None:
        logits = _logits(model, batch)
        losses, gradient = _with_gradient(logits.detach().clone(), batch.labels, batch.weights)
        logits.backward(gradient)
        return losses
    hidden = model.base_model(**_asked(batch)).last_hidden_state
    losses, gradient = _through_head(head, hidden.detach(), batch, take)
    if hidden.requires_grad:
        hidden.backward(gradient)
    return losses


def _through_head(head: Module, hidden: Tensor, batch: Batch, take: TakeHead) -> tuple[Tensor, Tensor]:
    """Returns the losses (b,) and the gradients of `hidden` (b, t, i)."""
    import torch
    from torch.nn.functional import linear

    each = hidden.shape[1] * head.weight.shape[0]
    size = max(1, _LOGITS.get(hidden.device.type, _LOGITS["cpu"]) // each)
    losses, gradients = [], torch.empty_like(hidden)
    for start in range(0, len(hidden), size):
        rows = slice(start, start + size)
        logits = linear(hidden[rows], head.weight, head.bias)
        found, b = _with_gradient(logits, batch.labels[rows], batch.weights[rows])
        losses.append(found)
        gradients[rows] = b @ head.weight
        take(rows, hidden[rows], b)
    return torch.cat(losses), gradients


def _with_gradient(logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the losses (b,) and their gradients with respect to `logits` (b, t, v), which are overwritten.

    The gradient of -log p(label) is p - onehot(label): written in place, it saves most passes over the logits.
    Half precision is widened: what it would lose of p would be lost in all that follows.
    """
    import torch

    wide = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
    weights = weights.to(wide.dtype)
    top = wide.amax(-1, keepdim=True)
    right = wide.gather(2, labels[..., None]) - top
    total = wide.sub_(top).exp_().sum(-1, keepdim=True)
    losses = (total.log() - right)[..., 0].where(weights > 0, 0.0).mul(weights).sum(1)
    gradient = wide.mul_(weights[..., None] / total)
    gradient.scatter_add_(2, labels[..., None], -weights[..., None])
    return losses, gradient.to(logits.dtype)
