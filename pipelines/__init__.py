"""What runs: the stages, their params, Beam options, the command line and DuckDB.

Public surface:
  gradsift                    the commands (cli.py; `gradsift --help`)
  python -m pipelines.STAGE   one stage: sample ingest clean dedup quality tokens reference gradients static lqs plan
                              shard report; `main(argv)` returns the exit code
  params.yaml, dvc.yaml       what a project holds (core/defaults.yaml describes every key; core/params.py)
  catalog/sql/NAME.sql        a built-in query
  commands/                   a command of its own
All else may change. docs/extending.md has worked examples.
"""

import logging
import os

# OpenMP threads that spin while they wait cost 3 to 6 times the run when another process wants the core; torch
# reads this once, when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# oneDNN keeps what it prepared for the last 1024 shapes: batches of many shapes grew the process by half.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")
# A child whose parent is process 1 is an orphan, unless that is us: the first process of a container.
os.environ["GRADSIFT_PID"] = str(os.getpid())


def _not_about_gcs(record: logging.LogRecord) -> bool:
    """Beam warns on every import that the Google Cloud client is absent; nothing here uses it."""
    return "apitools not found" not in record.getMessage()


logging.getLogger().addFilter(_not_about_gcs)
