"""Text rules, one module a published family: Gopher, repetition, C4, FineWeb."""
