"""Files that specs are found in: those that a spec or the settings name by a path or a pattern, and those that ship with Assay.

Specs, suites and teams that ship with Assay are the YAML files in `builtin`, known to commands by their names.
"""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path


def match_files(folder: Path, pattern: str) -> list[Path]:
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


_BUILTIN = Path(__file__).resolve().parent.parent / "builtin"
_SUITES = ("puzzles",)


def builtin_specs() -> dict[str, Path]:
    return {path.stem: path for path in sorted((_BUILTIN / "specs").glob("*.yaml"))}


def builtin_suites() -> dict[str, Path]:
    """Find the built-in suites, in the installed package or, in a repository, among the examples."""
    places = (_BUILTIN / "suites", _BUILTIN.parents[2] / "examples")
    found = {name: [place / name / f"{name}.yaml" for place in places] for name in _SUITES}
    return {name: file for name, files in found.items() for file in files if file.is_file()}


def builtin_teams() -> dict[str, Path]:
    return {path.stem: path for path in sorted((_BUILTIN / "teams").glob("*.yaml"))}


def description_of(file: Path) -> str:
    """What a shipped file is for: the comment at its beginning.

    The file is not parsed for it, as `assay list` shows all of them and should be fast.
    """
    lines = file.read_text(encoding="utf-8").splitlines()
    comment = list(takewhile(lambda line: line.startswith("#"), lines))
    return " ".join(line.lstrip("# ") for line in comment)
