"""Specs, suites and teams that come with Assay: the YAML files in `builtin`, by the names that commands take."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

_BUILTIN = Path(__file__).parent.parent / "builtin"


def builtin_specs() -> dict[str, Path]:
    return {path.stem: path for path in sorted((_BUILTIN / "specs").glob("*.yaml"))}


def builtin_suites() -> dict[str, Path]:
    return {path.stem: path for path in sorted((_BUILTIN / "suites").glob("*.yaml"))}


def builtin_teams() -> dict[str, Path]:
    return {path.stem: path for path in sorted((_BUILTIN / "teams").glob("*.yaml"))}


def description_of(file: Path) -> str:
    """What a shipped file is for: the comment at its beginning."""
    lines = file.read_text(encoding="utf-8").splitlines()
    comment = list(takewhile(lambda line: line.startswith("#"), lines))
    return " ".join(line.lstrip("# ") for line in comment)
