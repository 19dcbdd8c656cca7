"""The schema of a database: made when there is none, checked when there is one, upgraded when asked."""

from __future__ import annotations

import sqlite3
import time
from importlib import resources

import sqlalchemy as sa

from assay.errors import NewerSchema, StoreError
from assay.store import database, faults
from assay.store.address import Address, read_address
from assay.store.tables import DEFAULT_WORKSPACE, REVISIONS, metadata, revision, workspaces

HEAD = REVISIONS[-1]
_VIEW_REVISION = "0003"
_WORDS = {
    "sqlite": {
        "{json}": "TEXT",
        "{configuration}": "json_object('type', json_extract(trials.agent_use, '$.type'), "
        "'model', json_extract(trials.agent_use, '$.options.model'), "
        "'params', json_extract(trials.agent_use, '$.options.params'))",
    },
    "postgresql": {
        "{json}": "JSONB",
        "{configuration}": "jsonb_build_object('type', trials.agent_use->'type', "
        "'model', trials.agent_use->'options'->'model', 'params', trials.agent_use->'options'->'params')",
    },
}
"""What each database has a word of its own for, in the text of the view."""
_LOCK = 0x61737361
"""Of PostgreSQL's advisory locks: one process at a time makes the schema."""


def ensure(engine: sa.Engine, address: Address) -> None:
    """Makes the schema in an empty database; refuses one that is not at the head revision."""
    with engine.connect() as connection:
        found = current(connection)
    if found is None:
        _make(engine, address)
    elif found != HEAD:
        raise _unfit(found, address)


def current(connection: sa.Connection) -> str | None:
    """The revision of the schema; None when there is no schema of ours."""
    if not sa.inspect(connection).has_table(revision.name):
        return None
    return connection.scalar(sa.select(revision.c.version_num))


def upgrade(url: str) -> tuple[str, str]:
    """Brings the schema to the head revision; the revisions before and after, the first empty for a new database."""
    address = read_address(url)
    # Some changes make SQLite copy a table and drop the old one; with foreign keys on, that would delete what refers to it.
    engine = database.connect(address, foreign_keys=False)
    try:
        with database.writing(engine).begin() as connection:
            before = current(connection) or ""
            if before and before not in REVISIONS:
                raise _unfit(before, address)
            _migrate(connection)
            return before, current(connection) or ""
    finally:
        engine.dispose()


def view_statement(of_revision: str, dialect: str) -> str:
    """The view `benchmark_executions` as it was made in a revision."""
    file = resources.files("assay.store") / "views" / f"benchmark_executions.{of_revision}.sql"
    statement = file.read_text(encoding="utf-8")
    for placeholder, word in _WORDS[dialect].items():
        statement = statement.replace(placeholder, word)
    return statement


def _migrate(connection: sa.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "assay.store:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _make(engine: sa.Engine, address: Address) -> None:
    if address.file:
        _prepare_file(engine, address)
    with database.writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        found = current(connection)
        if found is None:
            _create(connection, address)
        elif found != HEAD:
            raise _unfit(found, address)


def _create(connection: sa.Connection, address: Address) -> None:
    present = set(sa.inspect(connection).get_table_names())
    taken = present if connection.dialect.name == "sqlite" else present & set(metadata.tables)
    if taken:
        tables = ", ".join(sorted(taken)[:3])
        raise StoreError(
            f"'{address.place}' is a database of another program (it has {tables}). Name another with --db"
        )
    metadata.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(view_statement(_VIEW_REVISION, connection.dialect.name))
    connection.execute(workspaces.insert().values(id=DEFAULT_WORKSPACE, name="default"))
    connection.execute(revision.insert().values(version_num=HEAD))


def _prepare_file(engine: sa.Engine, address: Address) -> None:
    """Modes that a file keeps; they can be chosen only outside transactions."""
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _choose_wal(cursor)
    except sqlite3.Error as error:
        raise faults.fault(error, address) or error from error
    finally:
        connection.close()


def _choose_wal(cursor: sa.engine.interfaces.DBAPICursor) -> None:
    # SQLite does not wait for a lock here, whatever the timeout: another process may be making the same file.
    for _ in range(100):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY":
                raise
            time.sleep(0.02)


def _unfit(found: str, address: Address) -> StoreError:
    if found in REVISIONS:
        return StoreError(
            f"'{address.place}' has the schema {found}, this Assay needs {HEAD}. Upgrade it: assay db upgrade"
        )
    return NewerSchema(
        f"'{address.place}' was written by a later Assay (schema {found}, this one knows up to {HEAD}). "
        "Use that version, or name another database with --db"
    )
