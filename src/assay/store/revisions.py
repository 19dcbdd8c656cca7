"""Every revision of the schema; apart from the tables, for what has to know no more than this."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

REVISIONS = tuple(f"{number:04}" for number in range(1, 16))
"""The newest last: known here so that opening a store need not load Alembic."""
HEAD = REVISIONS[-1]
_SCHEME = "sqlite:///"


def will_open(url: str) -> bool:
    """Whether this is a SQLite database that is sure to open, as far as one can tell without SQLAlchemy.

    It is at the newest revision and may be written to, or may be made. Of any other database only the store can tell.
    """
    path = url.removeprefix(_SCHEME)
    if path == url or not path or path.startswith((":", "~")) or "?" in path or not path.isprintable():
        return False
    file = Path(path)
    try:
        if file.exists():
            if not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
                return False
            # Only read, and without waiting for writers.
            source = f"{file.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(source, timeout=0, uri=True)) as connection:
                [(revision,)] = connection.execute("SELECT version_num FROM assay_revision").fetchall()
            return bool(revision == HEAD)
        folder = next(folder for folder in file.absolute().parents if folder.exists())
        return folder.is_dir() and os.access(folder, os.W_OK)
    except (OSError, sqlite3.Error, ValueError):
        return False
