"""The twelve dimensions of the static score (docs/scoring.md)."""

DIMENSIONS = (
    "length", "lexical_diversity", "rare_words", "syntactic_variety", "reading_difficulty", "compression",
    "knowledge_density", "semantic_breadth", "coherence", "predictability", "originality", "cleanliness",
)  # fmt: skip
