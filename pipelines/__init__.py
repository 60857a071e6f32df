"""What runs: the stages, their params, Beam options, the command line and DuckDB."""

import logging


def _not_about_gcs(record: logging.LogRecord) -> bool:
    """Beam warns on every import that the Google Cloud client is absent; nothing here uses it."""
    return "apitools not found" not in record.getMessage()


logging.getLogger().addFilter(_not_about_gcs)
