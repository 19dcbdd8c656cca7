"""Turns errors of a database driver into messages for the user.

`StoreAway` is an error that may pass by itself, such as a lock or a server that restarts: the outbox waits and tries again.
`StoreFull` ends a run but keeps its results. Any other `StoreError` says what the user can do about it. Errors that the user
cannot do anything about are left as they are and keep their traceback.
"""

from __future__ import annotations

import shutil
import sqlite3

import sqlalchemy as sa

from assay.errors import StoreAway, StoreError, StoreFull
from assay.store import column_values as plain
from assay.store.address import Address

_LEAST_SPACE = 1 << 20
"""Bytes that must be free on the disk; with less, an I/O error of SQLite counts as a full disk."""

_SQLITE = {
    "SQLITE_BUSY": "Another program has kept '{}' locked. Wait until it is done, then try again.",
    "SQLITE_LOCKED": "Another program has kept '{}' locked. Wait until it is done, then try again.",
    "SQLITE_READONLY": "'{}' cannot be written. Check the permissions of the file and of its folder.",
    "SQLITE_PERM": "'{}' cannot be opened. Check the permissions of the file and of its folder.",
    "SQLITE_CANTOPEN": "'{}' cannot be opened or created. Check that its folder exists and is writable.",
    "SQLITE_NOTADB": "'{}' is not a database. Use a different file with --db, or move or rename this one.",
    "SQLITE_CORRUPT": "'{}' is damaged. Restore a backup, or move it away to start over.",
    "SQLITE_IOERR": "Reading or writing '{}' failed. Check the disk that it is on.",
}

_POSTGRES = {
    "42501": "The user of '{}' lacks a permission. Ask the database's owner to grant CREATE on the schema.",
    "53300": "The server of '{}' has no free connection. Try again later.",
    "55P03": "Another program has kept a run in '{}' locked. Wait until it is done, then try again.",
}
_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")
_TRANSIENT = ("53300", "55P03")


def listen(engine: sa.Engine, address: Address) -> None:
    """Convert errors of this engine that the user can fix to StoreError, from now on."""

    def handle(context: sa.ExceptionContext) -> StoreError | None:
        # A ping that fails is no fault: the pool makes a new connection in its place.
        return None if context.is_pre_ping else translate(context.original_exception, address)

    sa.event.listen(engine, "handle_error", handle, retval=True)


def build_damage_error(error: BaseException, address: Address) -> StoreError:
    """The error for a stored value that is not of the kind that its column holds."""
    reason = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
    return StoreError(
        f"'{address.place}' is damaged: a stored value cannot be read ({plain.text(reason)}). "
        "Restore a backup, or use a different database with --db"
    )


def translate(error: BaseException, address: Address) -> StoreError | None:
    """The error of a driver as one for the user; None where there is nothing that the user could do."""
    if isinstance(error, sqlite3.Error) and "Could not decode to UTF-8" in str(error):
        return build_damage_error(error, address)
    if _lacks_a_part(error):
        return StoreError(
            f"'{address.place}' has an incomplete schema: {str(error).partition(chr(10))[0]}. "
            "Restore a backup, or use a different database with --db"
        )
    if name := getattr(error, "sqlite_errorname", None):
        return _translate_sqlite(name, address)
    if type(error).__module__.startswith("psycopg"):
        return _translate_postgres(error, address)
    return None


def _lacks_a_part(error: BaseException) -> bool:
    """Whether a table or a column is missing: somebody changed the database by hand, or restored half of it.

    SQLite has one code for all errors in SQL, so its message decides. PostgreSQL's codes are undefined_column (42703) and
    undefined_table (42P01).
    """
    if getattr(error, "sqlite_errorname", None) == "SQLITE_ERROR":
        return str(error).startswith(("no such column", "no such table")) or " has no column named " in str(
            error
        )
    return getattr(error, "sqlstate", None) in ("42703", "42P01")


def full(address: Address) -> StoreFull:
    return StoreFull(
        f"There is no space left for '{address.shown}'. What was stored before is kept: "
        "free some space, then continue with assay run --resume RUN"
    )


def _translate_sqlite(name: str, address: Address) -> StoreError | None:
    """The error for one of SQLite's result codes; None for a code that only a bug can cause, such as a misuse of the
    library."""
    # A full disk may also show as an error of reading or writing.
    is_io_error = name.startswith("SQLITE_IOERR") and address.file is not None
    if name == "SQLITE_FULL" or (
        is_io_error and address.file and shutil.disk_usage(address.file.parent).free < _LEAST_SPACE
    ):
        return full(address)
    # Extended names, such as SQLITE_READONLY_DIRECTORY, begin with the plain one.
    message = next((_SQLITE[known] for known in _SQLITE if name.startswith(known)), None)
    kind = StoreAway if name.startswith(_LOCKED) else StoreError
    return kind(message.format(address.place)) if message else None


def _translate_postgres(error: BaseException, address: Address) -> StoreError | None:
    """The error for a SQLSTATE, or for a connection that was lost, which has none."""
    # SQLSTATE, appendix A of PostgreSQL's manual: 53100 disk_full, class 08 connection exceptions, 57P operator intervention,
    # as when the server is shut down.
    state = str(getattr(error, "sqlstate", None) or "")
    if state == "53100":
        return full(address)
    if state in _POSTGRES:
        kind = StoreAway if state in _TRANSIENT else StoreError
        return kind(_POSTGRES[state].format(address.shown))
    # By name, so that psycopg need not be imported where it is not installed.
    is_operational = any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)
    if state.startswith(("08", "57P")) or (not state and is_operational):
        return unreachable(error, address)
    return None


def unreachable(error: BaseException, address: Address) -> StoreAway:
    reason = str(error).strip().partition("\n")[0].removeprefix("connection failed: ").rstrip(".")
    return StoreAway(
        f"'{address.place}' cannot be reached: {address.redact(reason)}. Check the URL and the server."
    )
