"""Files that a spec or the settings name by a path or a pattern."""

from __future__ import annotations

from pathlib import Path


def matching(folder: Path, pattern: str) -> list[Path]:
    """The files that a path or a pattern such as `experiments/*.py` stands for, counted from a folder."""
    path = folder / pattern
    fixed = Path(path.anchor)
    try:
        if path.is_file():
            return [path]
        return sorted(match for match in fixed.glob(str(path.relative_to(fixed))) if match.is_file())
    # IndexError is pathlib's answer to the pattern "/" before Python 3.12.
    except (ValueError, OSError, IndexError):
        return []


def resolve_experiment(experiment: str, folder: Path) -> str:
    """An experiment's name; `file.py::name` with its path counted from the folder of the file that names it."""
    file, separator, name = experiment.partition("::")
    return f"{(folder / file).resolve()}::{name}" if separator and file.endswith(".py") else experiment
