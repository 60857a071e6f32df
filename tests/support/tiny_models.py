"""Untrained transformers of every family that is scored, small enough for oracles."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import transformers as tf

VOCABULARY = 23
MASK, SPECIAL = 5, frozenset({0, 1})

_SIZES = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": VOCABULARY,
          "intermediate_size": 12}  # fmt: skip
_TOKENS = {"bos_token_id": None, "eos_token_id": 1, "pad_token_id": 2}


def _decoder(kind: str, *, tied: bool, groups: int = 2, **more: Any) -> Any:
    config = getattr(tf, f"{kind}Config")(
        **_SIZES, **_TOKENS, num_key_value_heads=groups, tie_word_embeddings=tied, max_position_embeddings=64, **more
    )
    return getattr(tf, f"{kind}ForCausalLM")(config)


def _gpt2() -> Any:
    return tf.GPT2LMHeadModel(
        tf.GPT2Config(n_embd=8, n_head=2, n_layer=2, vocab_size=VOCABULARY, n_positions=16, **_TOKENS)
    )


def _bert(*, tied: bool) -> Any:
    config = tf.BertConfig(**_SIZES, max_position_embeddings=16, pad_token_id=0, tie_word_embeddings=tied)
    return tf.BertForMaskedLM(config)


_MAKERS: dict[str, Callable[[], Any]] = {
    "llama": lambda: _decoder("Llama", tied=False),
    "llama, tied": lambda: _decoder("Llama", tied=True),
    "qwen2: tied, biases": lambda: _decoder("Qwen2", tied=True),
    "qwen3, grouped queries": lambda: _decoder("Qwen3", tied=False, groups=1, head_dim=4),
    "mistral, grouped queries": lambda: _decoder("Mistral", tied=False, groups=1),
    "gpt2: tied, Conv1D, biases": _gpt2,
    "bert, tied": lambda: _bert(tied=True),
    "bert": lambda: _bert(tied=False),
}
FAMILIES = tuple(_MAKERS)
CAUSAL = tuple(name for name in FAMILIES if not name.startswith("bert"))


@cache
def shared(name: str, dtype: torch.dtype = torch.float64) -> Any:
    """Returns the model that all tests share; none may change it."""
    return made(name, dtype)


def made(name: str, dtype: torch.dtype = torch.float64) -> Any:
    """Returns a model of a test's own."""
    with torch.random.fork_rng():
        torch.manual_seed(FAMILIES.index(name))
        model = _MAKERS[name]().to(dtype).eval()
    return _in_float64(model) if dtype is torch.float64 else model


def _in_float64(model: Any) -> Any:
    """Returns `model` with torch's own root mean square norms: transformers' round to float32 on the way."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child).__name__.endswith("RMSNorm"):
                norm = torch.nn.RMSNorm(child.weight.shape, eps=child.variance_epsilon, dtype=torch.float64)
                setattr(module, name, norm)
    return model


def directions(shapes: dict[str, tuple[int, int]], k: int, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    """Returns `k` random directions, {layer: (k, o, i)}; no layer for none."""
    generator = torch.Generator().manual_seed(3)
    return {n: torch.randn(k, *s, generator=generator, dtype=dtype) for n, s in shapes.items()} if k else {}
