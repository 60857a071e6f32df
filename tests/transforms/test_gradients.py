"""The gradients config, and the token rows that gradients are taken of."""

from typing import Any

import pytest

from scoring import reference
from transforms.gradients import GradientsConfig, token_rows

CONFIG = {"layers": "all", "max_tokens": 8, "batch_tokens": 64, "target_rows": 4, "refresh_ratio": 0.1, "seed": 7}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("layers", "last:0"), ("layers", "first:2"), ("layers", "last:"), ("max_tokens", 1), ("batch_tokens", 0),
        ("target_rows", 0), ("refresh_ratio", -0.1), ("seed", -1),
    ],
)  # fmt: skip
def test_config_refuses(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{field} must .*{value}"):
        GradientsConfig(**{**CONFIG, field: value})


@pytest.mark.parametrize("layers", ["all", "last:1", "last:12"])
def test_config_takes(layers: str) -> None:
    assert GradientsConfig(**{**CONFIG, "layers": layers}).layers == layers


def test_token_rows_are_cut_without_reading_a_huge_text() -> None:
    tokenizer = reference.train_tokenizer(["river water stone " * 3], 300)
    whole = tokenizer.backend_tokenizer.encode("river stone river water river stone water").ids
    assert token_rows(tokenizer, ["river stone river water river stone water"], 5) == [whole[:5]]
    assert token_rows(tokenizer, ["river stone " * 1_000_000], 5) == token_rows(tokenizer, ["river stone " * 9], 5)
    assert token_rows(tokenizer, [], 5) == []
    assert token_rows(tokenizer, [""], 5) == [[]]
