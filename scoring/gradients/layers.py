"""Which weights of a model are scored, and how a backward pass hands over what their gradients are made of.

A scored weight is used by one module, or by two where the output layer is tied to the token embeddings.
Position and type tables, norms, biases and poolers are never scored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from scoring.core.errors import ConfigError
from scoring.models.types import Model, Module, Tensor

Layers = Mapping[str, Module]  # name → linear module or token embedding table
Tensors = Mapping[str, Tensor]  # layer name → tensor

_REMEDY = "use another reference.model or gradients.layers"


@dataclass(frozen=True)
class Use:
    """A module that multiplies by the weight of a scored layer; two may have one name.

    A `table` looks token embeddings up, and a `head` is an output layer tied to it; else it is `linear`.
    """

    name: str
    module: Module
    kind: str


Take = Callable[[Use, slice, Tensor, Tensor], None]  # (use, rows of the batch, inputs a, gradients of the outputs b)


def scored_layers(model: Model, which: str, *, embeddings: bool = False) -> dict[str, Module]:
    """Returns the linear layers of `model` by name: `all`, or those of its `last:K` transformer blocks.

    With `embeddings` also the table of token embeddings, under the table's name, with the output layer that is
    tied to it as a part of it: one weight, one gradient. Without, a tied output layer is no scored layer.

    Raises:
      ConfigError: there is none, there are fewer than K blocks, two layers share a weight, or experts that a
        row is sent to hold their weights together.
    """
    prefixes = ("",) if which == "all" else _last_blocks(model, int(which.removeprefix("last:")))
    embedded = {id(m.weight) for m in model.modules() if _is_embedding(m)}
    found = {
        name: module
        for name, module in model.named_modules()
        if _is_linear(module) and name.startswith(prefixes) and id(module.weight) not in embedded and _kept(name)
    }
    if embeddings:
        found = {**_token_table(model), **found}
    if not found:
        raise ConfigError("the model has no linear layers to score", where=f"gradients.layers: {which}")
    if len({id(m.weight) for m in found.values()}) < len(found):
        raise ConfigError("two layers share one weight", remedy="use another reference.model")
    _refuse_experts(model, prefixes)
    return found


def _kept(name: str) -> bool:
    return "pooler" not in name.split(".")


def _is_embedding(module: Module) -> bool:
    from torch import nn

    return isinstance(module, nn.Embedding)


def _is_linear(module: Module) -> bool:
    from torch import nn
    from transformers.pytorch_utils import Conv1D  # GPT-2's linear layer, its weight transposed

    return isinstance(module, nn.Linear | Conv1D)


def _last_blocks(model: Model, count: int) -> tuple[str, ...]:
    """Returns the name prefixes of the last `count` transformer blocks."""
    from torch import nn

    total = model.config.num_hidden_layers
    stacks = [n for n, m in model.named_modules() if isinstance(m, nn.ModuleList) and len(m) == total]
    if not stacks or count > total:
        raise ConfigError(
            f"the model has {total if stacks else 'no'} transformer blocks",
            where=f"gradients.layers: last:{count}",
            remedy="set gradients.layers to all or to fewer blocks",
        )
    return tuple(f"{stacks[0]}.{k}." for k in range(total - count, total))


def _token_table(model: Model) -> dict[str, Module]:
    """Returns the token embeddings by name; a subclass that rescales what it looks up would be scored wrongly."""
    from torch import nn

    table = model.get_input_embeddings()
    if type(table) is not nn.Embedding:
        raise ConfigError(f"token embeddings of type {type(table).__name__} cannot be scored", remedy=_REMEDY)
    return {next(n for n, m in model.named_modules() if m is table): table}


def _refuse_experts(model: Model, prefixes: tuple[str, ...]) -> None:
    for name, parameter in model.named_parameters():
        if name.startswith(prefixes) and parameter.ndim > 2:
            raise ConfigError(
                f"weight {name} of shape {tuple(parameter.shape)} does not belong to a linear layer",
                remedy=f"mixture-of-experts layers with a shared weight cannot be scored: {_REMEDY}",
            )


def oriented(module: Module, weight: Tensor) -> Tensor:
    """Returns `weight`, of the shape of the module's, as (o, i); a table is (vocabulary, width)."""
    from transformers.pytorch_utils import Conv1D

    return weight.T if isinstance(module, Conv1D) else weight


def shapes(layers: Layers) -> dict[str, tuple[int, int]]:
    """Returns the shape (o, i) of the gradient of each layer."""
    return {n: tuple(oriented(m, m.weight).shape) for n, m in layers.items()}


def uses(model: Model, layers: Layers) -> list[Use]:
    """Returns every use of the weights of `layers` in `model`."""
    found = [Use(n, m, "table" if _is_embedding(m) else "linear") for n, m in layers.items()]
    head = model.get_output_embeddings() if any(u.kind == "table" for u in found) else None
    tied = [u for u in found if head is not None and u.module is not head and u.module.weight is head.weight]
    return found + [Use(u.name, head, "head") for u in tied]


@contextmanager
def requiring_grad(model: Model, weights: Sequence[Tensor]) -> Iterator[None]:
    """Lets gradients flow to `weights` alone; afterwards, to what they flowed to before."""
    before = {p: p.requires_grad for p in model.parameters()}
    wanted = set(weights)
    try:
        for parameter in before:
            parameter.requires_grad_(parameter in wanted)
        yield
    finally:
        for parameter, flag in before.items():
            parameter.requires_grad_(flag)


@contextmanager
def tapped(found: Sequence[Use], shape: Sequence[int], take: Take) -> Iterator[None]:
    """Calls `take` for every use that the backward pass reaches: a (b, t, i) or token ids (b, t), b (b, t, o).

    `shape` (b, t) is the batch's.
    """
    seen: set[Module] = set()
    handles = [use.module.register_forward_hook(_hook(use, shape, take, seen)) for use in found]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hook(use: Use, shape: Sequence[int], take: Take, seen: set[Module]) -> Callable[..., None]:
    def forward(module: Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if module in seen:
            raise ConfigError(
                f"layer {use.name} is used twice in one forward pass",
                remedy=f"layers shared between blocks cannot be scored: {_REMEDY}",
            )
        seen.add(module)
        if output.shape[:-1] != shape:
            raise ConfigError(
                f"layer {use.name} has inputs of shape {tuple(inputs[0].shape)}, not (rows, tokens, features)",
                remedy=f"mixture-of-experts layers that share a batch cannot be scored: {_REMEDY}",
            )
        if not output.requires_grad:  # the first scored layer: the backward pass need go no further
            output.requires_grad_()
        held = [inputs[0].detach()]  # let go as soon as it has been used, while the pass goes on
        output.register_hook(lambda b: take(use, slice(None), held.pop(), b))

    return forward
