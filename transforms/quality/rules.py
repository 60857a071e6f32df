"""The rule of stage `quality`."""

from transforms.core.rules import Rule

RULES = (Rule("low_quality", "quality", "quality", "min", "min_quality", "the quality score is too low"),)
