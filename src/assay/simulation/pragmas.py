"""Profiles of SQLite settings, applied to a connection and read back from it.

Each profile is a complete set of pragmas. SQLite ignores a pragma that it does not know or cannot apply, so `settings_of` asks the
connection what is in effect.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Literal

Pragma = int | str
ProfileName = Literal["balanced", "performance", "safety", "memory"]

_OFF, _NORMAL, _FULL = 0, 1, 2  # of PRAGMA synchronous


def _settings(
    synchronous: int, journal: str, cache_mb: int, busy_s: int, **others: Pragma
) -> dict[str, Pragma]:
    pragmas: dict[str, Pragma] = {
        # First: once a database is in WAL mode its page size is fixed.
        "page_size": 4096,
        "journal_mode": journal,
        "synchronous": synchronous,
        "cache_size": -1024 * cache_mb,  # negative: in KiB, not in pages
        "busy_timeout": 1000 * busy_s,
        "mmap_size": 0,
        "automatic_index": 1,
        "foreign_keys": 1,
        "temp_store": 2,
    }
    return pragmas | others


PROFILES: Mapping[str, Mapping[str, Pragma]] = {
    "balanced": _settings(_NORMAL, "wal", cache_mb=200, busy_s=30),
    "performance": _settings(
        _OFF, "memory", cache_mb=200, busy_s=60, page_size=8192, mmap_size=2**30, automatic_index=0
    ),
    "safety": _settings(_FULL, "wal", cache_mb=100, busy_s=30),
    "memory": _settings(_NORMAL, "memory", cache_mb=50, busy_s=15),
}
_OF_FILES = ("journal_mode", "mmap_size")


def apply_profile(connection: sqlite3.Connection, profile: str) -> None:
    """Set the pragmas in the order of the profile: some decide what later ones may do."""
    for pragma, value in PROFILES[profile].items():
        connection.execute(f"PRAGMA {pragma} = {value}").close()


def settings_of(connection: sqlite3.Connection) -> dict[str, Pragma]:
    """What the database says of its settings, and the profile that has exactly these, or `none`.

    A database in memory has no journal to choose and no file to map, so there the other pragmas decide.
    """
    actual = {pragma: _pragma(connection, pragma) for pragma in PROFILES["balanced"]}
    decisive = [pragma for pragma in actual if is_on_disk(connection) or pragma not in _OF_FILES]
    profile = next(
        (
            name
            for name, settings in PROFILES.items()
            if all(settings[name] == actual[name] for name in decisive)
        ),
        "none",
    )
    return {"profile": profile, **actual}


def is_on_disk(connection: sqlite3.Connection) -> bool:
    """Whether the database is a file, as SQLite itself says."""
    return bool(connection.execute("PRAGMA database_list").fetchone()[2])


def size_of(connection: sqlite3.Connection) -> int:
    return int(_pragma(connection, "page_count")) * int(_pragma(connection, "page_size"))


def _pragma(connection: sqlite3.Connection, name: str) -> Pragma:
    answer = connection.execute(f"PRAGMA {name}").fetchone()
    value: Pragma = answer[0] if answer else ""  # SQLite says nothing about what it was built without
    return value
