"""`gradsift deps`: lets `dvc repro` watch the sources that params name."""

from pathlib import Path

from pipelines.core import dvc_file, params


def main(path: Path) -> None:
    """Writes the sources of params file `path` into the dvc.yaml beside it, and prints them.

    Raises:
      ConfigError: params are wrong, or there is no dvc.yaml with a stage `ingest`.
    """
    found = params.read(path)
    found.check()
    watched = dvc_file.watch_sources(path.resolve().parent, found.tree)
    print(f"dvc.yaml: stage ingest watches {', '.join(watched)}")
