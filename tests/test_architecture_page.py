"""The map of the code names every folder, and no file that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "assay"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def quoted() -> set[str]:
    return set(re.findall(r"`([\w/]+(?:\.py)?)`", PAGE))


def test_every_folder_is_on_the_map() -> None:
    folders = {
        str(folder.relative_to(SOURCES))
        for folder in SOURCES.rglob("*")
        if folder.is_dir() and folder.name != "__pycache__" and any(folder.iterdir())
    }
    assert folders - quoted() == set()


def test_every_file_on_the_map_is_there() -> None:
    files = {name for name in quoted() if "/" in name and name.endswith(".py")}
    assert files
    assert [name for name in sorted(files) if not (SOURCES / name).is_file()] == []
