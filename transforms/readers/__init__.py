"""Readers: one module a file format; each yields records or rejects, never raises for one bad row."""
