"""Beam counters, diagnostics only: retries inflate them. Published totals come from DuckDB."""

import apache_beam as beam

NAMES = ("parts", "rows", "rejects")


def count(name: str, value: int = 1) -> None:
    """Adds `value` to the counter `name`, one of `NAMES`."""
    if name not in NAMES:
        raise ValueError(f"unknown counter {name!r}: one of {NAMES}")
    beam.metrics.Metrics.counter("gradsift", name).inc(value)
