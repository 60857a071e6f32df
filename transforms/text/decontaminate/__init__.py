"""Overlap of a text with benchmark items."""
