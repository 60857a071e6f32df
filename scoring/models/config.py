"""What params may say of any model."""

from typing import Literal

Dtype = Literal["float32", "bfloat16"]


Wanted = Literal["auto", "float32", "bfloat16"]


MIN_TOKENS = 2  # of a causal model: one to see, one to predict
