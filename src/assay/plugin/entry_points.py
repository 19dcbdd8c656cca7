"""Entry points of installed distributions, read from their files.

`importlib.metadata` gives the same, but loads the package `email` to do so and looks at every distribution in full: a
quarter of what a worker's start takes, and each trial starts one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PREFIX = "assay."
_OURS = "assay-bench"


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A plug-in that an installed distribution declares; `value` is written `module:attribute`."""

    name: str
    value: str
    distribution: str


@cache
def entry_points() -> dict[str, dict[str, EntryPoint]]:
    """Group to name to entry point, of groups that are Assay's; of a distribution that is there twice, the first counts."""
    points: dict[str, dict[str, EntryPoint]] = {}
    seen: set[str] = set()
    for place in sys.path:
        for distribution, text in _find_declarations(place or "."):
            if distribution not in seen:
                seen.add(distribution)
                for group, point in _parse_entry_points(distribution, text):
                    points.setdefault(group, {}).setdefault(point.name, point)
    return points


def _find_declarations(place: str) -> Iterator[tuple[str, str]]:
    """Distributions of a folder that declare anything for Assay, with what they declare."""
    if Path(place).is_file():
        yield from _find_declarations_in_archive(place)
        return
    with suppress(OSError):
        for folder in sorted(os.listdir(place)):
            if folder.endswith((".dist-info", ".egg-info")):
                with suppress(OSError):
                    text = Path(place, folder, "entry_points.txt").read_text(encoding="utf-8")
                    if f"[{_PREFIX}" in text:
                        yield _short_name(folder.partition("-")[0].replace("_", "-")), text


def _find_declarations_in_archive(place: str) -> Iterator[tuple[str, str]]:
    from importlib.metadata import distributions

    for distribution in distributions(path=[place]):
        text = distribution.read_text("entry_points.txt")
        if text and f"[{_PREFIX}" in text:
            yield _short_name(distribution.name), text


def _short_name(distribution: str) -> str:
    """Users know our own distribution by the name of the command and the import package."""
    return "assay" if distribution == _OURS else distribution


def _parse_entry_points(distribution: str, text: str) -> Iterator[tuple[str, EntryPoint]]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group.startswith(_PREFIX) and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            # Extras in brackets behind the value are an old custom, without meaning here.
            yield group, EntryPoint(name.strip(), value.partition("[")[0].strip(), distribution)
