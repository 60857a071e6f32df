"""`gradsift init DIR`: a new project, with what `gradsift run` and `dvc repro` need.

Writes: `params.yaml`, its JSON schema, `dvc.yaml`, `.gitignore`, `.dvcignore`, `.dvc/`, `logs/`; a Git repository,
unless the folder lies in one, as DVC ties versions of data to commits.
Guarantees: files of yours are replaced only with --force; ignore files are added to, never replaced.
"""

import shlex
import shutil
import subprocess
from pathlib import Path

from pipelines.commands import params_schema
from scoring.core import files
from scoring.core.errors import ConfigError

TEMPLATES = Path(__file__).parent / "new_project"
IGNORED = {
    ".gitignore": ("/data/", "/logs/", "/reports/", ".venv/"),
    ".dvcignore": (".venv", "__pycache__/"),
    ".dvc/.gitignore": ("/config.local", "/tmp", "/cache"),  # noqa: S108 (of .dvc)
}
DVC_CONFIG = "[core]\n    analytics = false\n    check_update = false\n"
WITHOUT_GIT = "    no_scm = true\n"


def main(folder: Path, *, force: bool) -> None:
    """Makes the project `folder` and prints what to do next.

    Raises:
      ConfigError: a file of the project is there already, and `force` is false.
    """
    texts = {name: (TEMPLATES / name).read_text(encoding="utf-8") for name in ("params.yaml", "dvc.yaml")}
    texts[params_schema.NAME] = params_schema.text()
    _refuse_to_replace([folder / name for name in texts], force)
    made = _git(folder)
    for name, text in texts.items():
        files.write_text(folder / name, text)
    for name, lines in IGNORED.items():
        _add_lines(folder / name, lines)
    config = folder / ".dvc/config"
    if not config.exists():
        files.write_text(config, DVC_CONFIG if _in_git(folder) else DVC_CONFIG + WITHOUT_GIT)
    (folder / "logs").mkdir(exist_ok=True)
    print(
        "\n".join([f"wrote {', '.join([*texts, *IGNORED, '.dvc/config', 'logs/'])} in {folder}", *made, *_next(folder)])
    )


def _refuse_to_replace(paths: list[Path], force: bool) -> None:
    found = [p.name for p in paths if p.exists()]
    if found and not force:
        raise ConfigError(
            f"already there: {', '.join(found)}",
            where=str(paths[0].parent),
            remedy="choose another folder, or pass --force to replace these files",
        )


def _git(folder: Path) -> list[str]:
    """Makes a Git repository of `folder`, unless it lies in one or there is no Git; returns what to say."""
    folder.mkdir(parents=True, exist_ok=True)
    if _in_git(folder):
        return []
    git = shutil.which("git")
    if git is None:
        return ["git is not installed: DVC will work without versions (core.no_scm in .dvc/config)"]
    subprocess.run([git, "init", "-q", str(folder)], check=True)
    return ["made a Git repository"]


def _in_git(folder: Path) -> bool:
    return any((place / ".git").exists() for place in (folder.resolve(), *folder.resolve().parents))


def _add_lines(path: Path, lines: tuple[str, ...]) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    missing = [line for line in lines if line not in before.splitlines()]
    if missing:
        joint = "" if before.endswith("\n") or not before else "\n"
        files.write_text(path, before + joint + "\n".join(missing) + "\n")


def _next(folder: Path) -> list[str]:
    go = [] if folder.resolve() == Path.cwd() else [f"  cd {shlex.quote(str(folder))}"]
    return [
        "next:",
        *go,
        "  gradsift run              # on the embedded corpus; params.yaml shows how to name your own data",
        "  gradsift query sources",
        "  dvc repro                 # the same work, in versions: commit dvc.lock, params.lock.yaml and metrics",
    ]
