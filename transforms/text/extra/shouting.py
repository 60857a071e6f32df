"""Too many capitals: the share of a text's cased letters that are capitals."""

import pyarrow as pa
import pyarrow.compute as pc

from transforms.core.rules import Rule

RULE = Rule("shouting", "clean", "extra_shouting", "max", "extra.shouting", "too many letters are upper-case")
BOUND = 0.5
FAILS = "CALL NOW and save ON EVERYTHING!"
PASSES = "NASA and ESA launched the probe in May."


def measure(texts: pa.LargeStringArray) -> pa.Array:
    """Returns capitals / cased letters, (n,) float64; null for a text without cased letters."""
    capitals = pc.count_substring_regex(texts, r"\p{Lu}")
    cased = pc.count_substring_regex(texts, r"\p{Lu}|\p{Ll}")
    none = pc.equal(cased, 0)
    return pc.if_else(none, None, pc.divide(pc.cast(capitals, pa.float64()), pc.if_else(none, 1, cased)))
