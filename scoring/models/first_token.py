"""Classifiers that only use their first token: the last layer need not compute the others."""

from functools import partial

from scoring.models.types import Model, Module, Tensor

_FAMILIES = ("Bert", "Roberta", "XLMRoberta")


def shortened(model: Model) -> Model:
    """Returns the same classifier, its last layer cut to the first token where the head reads no other.

    Values are equal but for rounding; of L layers nearly one is saved. Other families pass as they are.
    """
    named = type(model).__name__.removesuffix("ForSequenceClassification")
    if named in _FAMILIES and not model.config.is_decoder:
        attention = model.base_model.encoder.layer[-1].attention
        attention.forward = partial(_first_token, attention)
    return model


def _first_token(attention: Module, hidden: Tensor, mask: Tensor | None = None, **_: object) -> tuple[Tensor, None]:
    """Returns (b, 1, d): the attention block of (b, t, d) hidden states for their first token.

    `mask` is (b, 1, t or 1, t), true or 0 where a token may be seen; None where all may.
    """
    from torch.nn.functional import scaled_dot_product_attention

    own, first = attention.self, hidden[:, :1]
    query, key, value = (
        layer(states).unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)
        for layer, states in ((own.query, first), (own.key, hidden), (own.value, hidden))
    )
    seen = None if mask is None else mask[:, :, :1]
    mixed = scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=own.scaling)
    return attention.output(mixed.transpose(1, 2).flatten(2), first), None
