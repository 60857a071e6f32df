"""The gradients config, and the token rows that gradients are taken of."""

from typing import Any

import pytest

from scoring.reference import train as reference
from transforms.gradients.checkpoints import token_rows
from transforms.gradients.config import GradientsConfig, SketchConfig

CONFIG = {
    "precision": "exact", "layers": "all", "embeddings": False, "dtype": "float32", "max_tokens": 8, "batch_tokens": 64,
    "target": None, "target_rows": 4, "contrast": 0.5, "costate": "full", "costate_rate": 0.01,
    "sketch": SketchConfig(keep="all", rank=4, width=64), "max_load": 0.8, "proxy_ratio": 0.5, "refresh_ratio": 0.1,
    "seed": 7,
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("layers", "last:0"), ("layers", "first:2"), ("layers", "last:"), ("max_tokens", 1), ("batch_tokens", 0),
        ("target_rows", 0), ("refresh_ratio", -0.1), ("seed", -1), ("contrast", 1.5),
        ("proxy_ratio", 0.0), ("max_load", 2.0),
    ],
)  # fmt: skip
def test_config_refuses(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{field} must .*{value}"):
        GradientsConfig(**{**CONFIG, field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("layers", ["all", "last:1", "last:12"])
def test_config_takes(layers: str) -> None:
    assert GradientsConfig(**{**CONFIG, "layers": layers})  # type: ignore[arg-type].layers == layers


def test_token_rows_are_cut_without_reading_a_huge_text() -> None:
    tokenizer = reference.train_tokenizer(["river water stone " * 3], 300)
    whole = tokenizer.backend_tokenizer.encode("river stone river water river stone water").ids
    assert token_rows(tokenizer, ["river stone river water river stone water"], 5).ids == [whole[:5]]
    assert token_rows(tokenizer, ["river stone " * 1_000_000], 5) == token_rows(tokenizer, ["river stone " * 9], 5)
    assert token_rows(tokenizer, [], 5) == ([], [])
    assert token_rows(tokenizer, [""], 5) == ([[]], [[]])
