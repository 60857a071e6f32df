"""A last layer for the first token alone gives the values of the whole one."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

from scoring.models import first_token

SIZES = {"vocab_size": 31, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 24,
         "max_position_embeddings": 20, "initializer_range": 0.5, "num_labels": 3, "pad_token_id": 0}  # fmt: skip


def made(family: str, **more: Any) -> Any:
    torch.manual_seed(3)
    config = getattr(tf, f"{family}Config")(**SIZES, **more)
    return getattr(tf, f"{family}ForSequenceClassification")(config).eval()


def logits(model: Any, lengths: list[int]) -> np.ndarray:
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(1, 31, mask.shape, generator=torch.Generator().manual_seed(5)) * mask
    with torch.inference_mode():
        return np.asarray(model(input_ids=ids, attention_mask=mask).logits.numpy())


@pytest.mark.parametrize("family", ["Bert", "Roberta", "XLMRoberta"])
@pytest.mark.parametrize("lengths", [[1], [7], [6, 6, 6], [9, 4, 1]])
def test_values_are_those_of_the_whole_layer(family: str, lengths: list[int]) -> None:
    wanted = logits(made(family), lengths)
    model = first_token.shortened(made(family))
    sizes = []
    model.base_model.encoder.layer[-1].output.register_forward_hook(lambda _, __, out: sizes.append(out.shape[1]))
    np.testing.assert_allclose(logits(model, lengths), wanted, atol=1e-5)
    assert sizes == [1]


def test_other_families_and_decoders_pass_as_they_are() -> None:
    config = tf.DistilBertConfig(vocab_size=31, dim=16, n_layers=2, n_heads=4, hidden_dim=24)
    for model in (tf.DistilBertForSequenceClassification(config).eval(), made("Bert", is_decoder=True)):
        wanted = logits(model, [5, 3])
        assert np.array_equal(logits(first_token.shortened(model), [5, 3]), wanted)
