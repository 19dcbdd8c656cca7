"""SQLite files that cannot be written: on read-only media, or without the permission."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import quote

_LOG_SUFFIX = "-wal"


def is_read_only(file: Path) -> bool:
    return file.is_file() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))


def opener(file: Path) -> Callable[[], sqlite3.Connection]:
    """What opens connections to the file.

    SQLite keeps a log and its index beside a file, and to read them it wants to write the index. Where there is no log, the
    file is all there is, and can be read as one that does not change. Where there is one, a copy is read if SQLite cannot.
    """
    log = file.with_name(file.name + _LOG_SUFFIX)
    if not (log.is_file() and log.stat().st_size):
        return partial(_open, file, "immutable=1")
    connect = partial(_open, file, "mode=ro")
    try:
        connection = connect()
        try:
            connection.execute("SELECT count(*) FROM sqlite_master")
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return _Copy(file, log)
    return connect


def _open(file: Path, option: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{option}", uri=True, timeout=30, check_same_thread=False)


class _Copy:
    """A copy of the file and its log, which lasts as long as this object."""

    def __init__(self, file: Path, log: Path) -> None:
        folder = Path(tempfile.mkdtemp(prefix="assay-copy-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        for part in (file, log):
            shutil.copyfile(part, folder / part.name)
        self._file = folder / file.name

    def __call__(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=30, check_same_thread=False)
