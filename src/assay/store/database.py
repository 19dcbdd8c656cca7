"""Makes an engine for an address: drivers, pragmas, transactions.

SQLite and PostgreSQL differ here and in `schema.py`, `leases.py` and `bulk.py`; everything else of the store is the same SQL.
SQLite runs in WAL mode with foreign keys on and one writer at a time. Its driver is kept from beginning transactions by
itself, as it would begin them too late; SQLAlchemy does that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from assay.errors import MissingExtra, StoreError
from assay.plugin.private_files import create_private, make_folder
from assay.store import column_values as plain
from assay.store import driver_errors
from assay.store.address import Address

_PATIENCE = {"timeout": "30"}
"""Seconds that a SQLite writer waits for its turn."""
_CACHE_KIB = 500
"""What a SQLite connection keeps of the file. The default, 2 MB, makes nothing faster: the system has the file in its own cache."""

_LOST = {"connect_timeout": "10", "tcp_user_timeout": "20000"}
"""Options for PostgreSQL: seconds until a server that does not answer a connection counts as away, and milliseconds until one
does that stops answering."""


def connect(address: Address, *, foreign_keys: bool = True) -> sa.Engine:
    """An engine that has reached its database once, so that an error in the address is reported now."""
    engine = (
        _sqlite(address, foreign_keys) if address.url.get_backend_name() == "sqlite" else _postgres(address)
    )
    driver_errors.listen(engine, address)
    try:
        with engine.connect():
            return engine
    except sa.exc.DBAPIError as error:
        raise driver_errors.unreachable(error.orig or error, address) from error


def writing(engine: sa.Engine) -> sa.Engine:
    """The same engine, whose transactions take SQLite's write lock at once.

    A transaction that reads first and writes later fails at the first neighbour that wrote in between, without waiting.
    """
    return engine.execution_options(immediate=True)


def _sqlite(address: Address, foreign_keys: bool) -> sa.Engine:
    """An engine for a file or for memory.

    A database in memory has one connection, which all threads share: a second one would open another, empty database. Files
    have a pool, and each connection waits for other writers instead of failing at once.
    """
    if address.file:
        _make_room(address)
    options: dict[str, Any] = {} if address.file else {"poolclass": sa.StaticPool}
    is_read_only = False
    if address.file and address.file.is_file():
        is_read_only = not (os.access(address.file, os.W_OK) and os.access(address.file.parent, os.W_OK))
    if address.file and is_read_only:
        options = {"creator": _read_only_opener(address.file), "poolclass": sa.QueuePool}
    try:
        url = address.url if "timeout" in address.url.query else address.url.update_query_dict(_PATIENCE)
        engine = sa.create_engine(url, connect_args={"check_same_thread": False}, **options)
    except (TypeError, ValueError) as error:
        raise StoreError(f"The database URL '{address.shown}' has a wrong option: {error}.") from None
    except sa.exc.ArgumentError:
        raise StoreError(
            f"The database URL '{address.shown}' names a host. A file has none: sqlite:///FILE"
        ) from None
    if address.file:
        # SQLite would make the file readable by everybody; those beside it get the permissions that this one has.
        with contextlib.suppress(OSError):  # It says itself what is wrong when it opens the file.
            create_private(address.file)

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # SQLAlchemy begins transactions, see below, not the driver
        try:
            # In WAL mode NORMAL cannot damage the file. A power cut may lose the last transactions, which a resumed run
            # executes again; FULL would wait for the disk at every batch.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        except UnicodeDecodeError as error:  # SQLite's own message quotes the damaged bytes of the schema.
            raise driver_errors.build_damage_error(error, address) from None
        if is_read_only:
            connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")

    # Python's driver would begin a transaction only before the first INSERT, UPDATE or DELETE, after the reads that these rest
    # on: another process could write in between. SQLAlchemy calls this at the start of every transaction instead.
    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        immediate = connection.get_execution_options().get("immediate")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _make_room(address: Address) -> None:
    """Make the folder of a database file; refuse a path that cannot be one, with the reason."""
    assert address.file is not None
    folder = address.file.parent
    try:
        is_folder = address.file.is_dir()
        is_special = address.file.exists() and not (is_folder or address.file.is_file())
        make_folder(folder)
    except (FileExistsError, NotADirectoryError):
        raise StoreError(
            f"The folder '{folder}' cannot be created: a file has that name. Move it away."
        ) from None
    except OSError as error:
        raise StoreError(
            f"The folder '{folder}' cannot be used: {error.strerror}. Use a different one with --db"
        ) from None
    if is_folder:
        raise StoreError(
            f"'{address.file}' is a folder. Name a file in it: sqlite:///{address.file / 'assay.db'}"
        )
    if is_special:
        raise StoreError(
            f"'{address.file}' is not a regular file, but a device or a pipe. Use a different one with --db"
        )


def _postgres(address: Address) -> sa.Engine:
    """An engine for a server.

    JSON goes through our own functions, which write what PostgreSQL would refuse in a readable form.
    """
    try:
        return sa.create_engine(
            address.url,
            json_serializer=plain.to_json,
            json_deserializer=plain.from_json,
            # A connection that a restart of the server has cut is replaced before it is used, so that reading commands
            # survive it without retries of their own.
            pool_pre_ping=True,
            connect_args={name: value for name, value in _LOST.items() if name not in address.url.query},
        )
    except ImportError:
        raise MissingExtra(
            "PostgreSQL needs the package 'psycopg', which is not installed. Get it: pip install 'assay-bench[postgres]'"
        ) from None


def _read_only_opener(file: Path) -> Callable[[], sqlite3.Connection]:
    """A function that opens connections to a file on read-only media, or without permission to write.

    SQLite keeps a log and its index beside a file, and to read them it wants to write the index. Where there is no log, the
    file is all there is, and can be read as one that does not change. Where there is one, a copy is read if SQLite cannot read the file itself.
    """
    log = file.with_name(file.name + "-wal")
    if not (log.is_file() and log.stat().st_size):
        return partial(_open_uri, file, "immutable=1")
    connect = partial(_open_uri, file, "mode=ro")
    try:
        connection = connect()
        try:
            connection.execute("SELECT count(*) FROM sqlite_master")
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return _TemporaryCopy(file, log)
    return connect


def _open_uri(file: Path, option: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{option}", uri=True, timeout=30, check_same_thread=False)


class _TemporaryCopy:
    """A copy of the file and its log, which lasts as long as this object."""

    def __init__(self, file: Path, log: Path) -> None:
        folder = Path(tempfile.mkdtemp(prefix="assay-copy-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        for part in (file, log):
            shutil.copyfile(part, folder / part.name)
        self._file = folder / file.name

    def __call__(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=30, check_same_thread=False)
