"""What params may say of labels."""

from typing import Literal

Level = Literal["nominal", "ordinal", "interval"]
