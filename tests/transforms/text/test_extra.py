import pyarrow as pa
import pytest

from transforms.core import schemas
from transforms.text import extra


@pytest.mark.parametrize("code", extra.modules())
def test_each_rule_tells_its_two_sentences_apart(code: str) -> None:
    module = extra.modules()[code]
    rule, params = module.RULE, {"extra": {code: module.BOUND}}
    values = extra.measure(pa.array([module.FAILS, module.PASSES], pa.large_string()), {code: module.BOUND})
    assert rule.drops(values[rule.value].to_numpy(zero_copy_only=False), params).tolist() == [True, False]
    assert rule.threshold == f"extra.{code}"
    assert rule.is_on(params)
    assert not rule.is_on({"extra": {}})
    assert rule.value == f"extra_{module.__name__.rpartition('.')[2]}"
    assert rule.value in schemas.CLEAN.names
    assert rule.sentence


def test_a_rule_that_is_not_named_is_not_measured() -> None:
    found = extra.measure(pa.array(["ANY", None], pa.large_string()), {})
    assert all(values.to_pylist() == [None, None] for values in found.values())


def test_odd_texts_have_a_value_or_none() -> None:
    texts = pa.array([None, "", "123 汉字", "Aa", "É"], pa.large_string())
    assert extra.measure(texts, {"shouting": 1.0})["extra_shouting"].to_pylist() == [None, None, None, 0.5, 1.0]
