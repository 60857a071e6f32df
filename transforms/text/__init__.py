"""Text: normalisation, words, and one module a published rule family."""
