"""Where the project and the shared data lie."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
SHIPPED = ROOT / "pipelines/core/defaults.yaml"
