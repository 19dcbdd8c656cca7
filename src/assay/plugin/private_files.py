"""Files that Assay writes: only their owner may read them, and no secret gets into them.

Results hold whatever an agent said. A file that exists keeps its permissions, so a user who wants to share a report creates the
file, or changes its mode, once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from assay.model.redaction import known_secrets

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_OWN_FOLDER = ".assay"


def open_private(path: str | Path, mode: str = "w", **options: Any) -> IO[Any]:
    """Like open(); a file that it makes belongs to its owner alone from the first moment."""
    if "b" not in mode:
        options.setdefault("encoding", "utf-8")
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, PRIVATE_FILE), **options)


def write_private(path: Path, content: str | bytes) -> None:
    """Write a whole file, without the values of known secrets where it is text; an OSError names the file."""
    try:
        if isinstance(content, bytes):
            with open_private(path, "wb") as file:
                file.write(content)
        else:
            with open_private(path) as file:
                file.write(known_secrets().redact_values(content))
    except OSError as error:
        # Python names the file where it cannot be opened, but not where the disk gets full.
        error.filename = error.filename or str(path)
        raise


def create_private(path: Path) -> None:
    """Make an empty file for a program that would make it readable by others; one that is there stays as it is."""
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))


def make_folder(path: Path) -> None:
    """Make a folder with its parents; no other user may enter one that is named `.assay`."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=PRIVATE_FOLDER if folder.name == _OWN_FOLDER else 0o777, exist_ok=True)
    # Says what is wrong where a file is in its place.
    path.mkdir(exist_ok=True)
