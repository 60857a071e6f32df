"""The rule on texts that hold an item of a benchmark."""

from transforms.core.rules import Rule

RULES = (
    Rule(
        "contaminated", "clean", "benchmark_overlap", "max", "decontaminate.max_overlap",
        "too much of a benchmark item occurs in the text", "Brown et al. 2020, appendix C",
    ),
)  # fmt: skip
