"""The schema of a database: made when there is none, checked when there is one, upgraded when the user asks for it.

A new database is made from `tables.py` at once, at the newest revision; an older one is brought there by the Alembic scripts in
`migrations`, which tests hold to give the same schema. Views are SQL files in `views`, with placeholders for what the two databases
write differently. An upgrade always goes to the newest revision, so that only the newest form of a view is kept: the migration
that changed it last drops the old view and makes the new one, and earlier migrations leave it out.
"""

from __future__ import annotations

import sqlite3
import time
from functools import cache
from importlib import resources

import sqlalchemy as sa

from assay.errors import NewerSchema, StoreAway, StoreError
from assay.model import DIMENSIONS
from assay.model.workspace import DEFAULT
from assay.store import database, driver_errors
from assay.store.address import Address, read_address
from assay.store.revisions import HEAD, REVISIONS
from assay.store.tables import DEFAULT_WORKSPACE, metadata, revision, workspaces
from assay.text import shell_command

_WORDS = {
    "sqlite": {
        "{json}": "TEXT",
        "{configuration}": "json_object('type', json_extract(trials.agent_use, '$.type'), "
        "'model', json_extract(trials.agent_use, '$.options.model'), "
        "'params', json_extract(trials.agent_use, '$.options.params'))",
        "{stored}": "",
        "{object}": "json_object",
        "{30 days ago}": "datetime('now', '-30 days')",
        **{f"{{weight:{name}}}": f"json_extract(ratings.weights, '$.{name}')" for name in DIMENSIONS},
    },
    "postgresql": {
        "{json}": "JSONB",
        "{configuration}": "jsonb_build_object('type', trials.agent_use->'type', "
        "'model', trials.agent_use->'options'->'model', 'params', trials.agent_use->'options'->'params')",
        "{stored}": "MATERIALIZED ",
        "{object}": "jsonb_build_object",
        "{30 days ago}": "now() - INTERVAL '30 days'",
        **{f"{{weight:{name}}}": f"CAST(ratings.weights->>'{name}' AS FLOAT)" for name in DIMENSIONS},
    },
}
"""The placeholders in the SQL of the views, and what each database writes in their place."""
_KEY = "CREATE UNIQUE INDEX uq_agent_comparison_matrix ON agent_comparison_matrix (workspace_id, suite_id, agent_id)"
"""Without it PostgreSQL could refresh the matrix only by keeping everybody from reading it."""
_LOCK = 0x61737361
"""The number of an advisory lock on PostgreSQL: one process at a time makes the schema."""
_LOCK_SECONDS = 10
"""How long an upgrade tries to get the tables for itself."""
_ATTEMPT_MS = 300
"""How long each of its attempts lets others wait; less than the second after which PostgreSQL looks for a deadlock."""
_REFRESH = 0x61737363
"""The number of another one: one process at a time refreshes the matrix."""
_WAITING = 0x61737364
"""The number of a third one: one process at a time waits to refresh it."""


def ensure(engine: sa.Engine, address: Address) -> None:
    """Make the schema in an empty database; raise StoreError for one that is not at the newest revision."""
    with engine.connect() as connection:
        found = current(connection, address)
        if found is None:
            try:
                _refuse_foreign(connection, address)  # before anything is changed in its file
            except StoreError:
                # Another process may have made the schema since we looked for it.
                found = current(connection, address)
                if found is None:
                    raise
    if found is None:
        _make(engine, address)
    elif found != HEAD:
        raise _unfit(found, address)


def current(connection: sa.Connection, address: Address) -> str | None:
    """The revision of the schema; None when there is no schema of ours."""
    inspector = sa.inspect(connection)
    if not inspector.has_table(revision.name):
        return None
    if revision.c.version_num.name not in {column["name"] for column in inspector.get_columns(revision.name)}:
        return None
    found = connection.scalars(sa.select(revision.c.version_num)).all()
    if len(found) != 1 or not isinstance(found[0], str):
        raise StoreError(
            f"'{address.place}' does not say which schema it has: its table {revision.name} should hold one text. "
            "Restore a backup, or use a different database with --db"
        )
    return found[0]


def upgrade(url: str) -> tuple[str, str]:
    """Bring the schema to the newest revision; returns the revisions before ("" for a new database) and after."""
    address = read_address(url)
    # Some changes make SQLite copy a table and drop the old one; with foreign keys on, that would delete what refers to it.
    engine = database.connect(address, foreign_keys=False)
    try:
        with database.writing(engine).begin() as connection:
            before = current(connection, address) or ""
            if before and before not in REVISIONS:
                raise _unfit(before, address)
            if not before:
                _refuse_foreign(connection, address)
            if before != HEAD:
                _migrate(connection, address)
            after = current(connection, address) or ""
        _build_indexes(engine)
        return before, after
    finally:
        engine.dispose()


def _build_indexes(engine: sa.Engine) -> None:
    """Build the indexes of PostgreSQL that are missing, while others read and write; slow on a large database, and harmless.

    Migrations since 0014 leave them out. Where building one was interrupted, the next upgrade builds it again.
    """
    if engine.dialect.name != "postgresql":
        return
    query = sa.text(
        "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
        "WHERE relnamespace = current_schema()::regnamespace"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        is_valid = {row.relname: row.indisvalid for row in connection.execute(query)}
        for index in (index for table in metadata.sorted_tables for index in table.indexes):
            name = str(index.name)
            if is_valid.get(name):
                continue
            if name in is_valid:
                connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY {name}")
            assert index.table is not None
            columns = ", ".join(index.columns.keys())
            connection.exec_driver_sql(
                f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {index.table.name} ({columns})"
            )


def view_statement(name: str, dialect: str) -> str:
    """The statement that makes a view."""
    statement = read_sql(name)
    for board, since in (("suite", ""), ("category", " AND started > {30 days ago}")):
        placeholder = f"{{ranking:{board}}}"
        if placeholder in statement:
            ranking = read_sql("ranking").replace("{board}", board).replace("{since}", since)
            statement = statement.replace(placeholder, ranking)
    for placeholder, word in _WORDS[dialect].items():
        statement = statement.replace(placeholder, word)
    return statement


def read_sql(name: str) -> str:
    file = resources.files("assay.store") / "views" / f"{name}.sql"
    return file.read_text(encoding="utf-8")


def standing_statements(dialect: str) -> list[str]:
    """The statements that make the views that rank agents; each builds on those before it."""
    names = ("rated_trials", "agent_comparison_matrix", "benchmark_leaderboard")
    statements = [view_statement(name, dialect) for name in names]
    return [*statements, _KEY] if dialect == "postgresql" else statements


def refresh(engine: sa.Engine) -> None:
    """Refresh the materialized view of PostgreSQL; others may read it and refresh it at the same time.

    With 500,000 rated trials that takes seconds. Where one process refreshes and another waits for its turn, a third has nothing to do:
    the one that waits will begin after the third has committed.
    """
    if engine.dialect.name != "postgresql":
        return
    with engine.begin() as connection:
        if not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(_WAITING))):
            return
        try:
            # In turn, and each by a statement that begins only then: one that has waited could otherwise put back what it saw before.
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_REFRESH)))
        finally:
            connection.execute(sa.select(sa.func.pg_advisory_unlock(_WAITING)))
        # PostgreSQL expects one row of each step and would join thousands by trying every pair, which takes minutes.
        connection.exec_driver_sql("SET LOCAL enable_nestloop = off")
        connection.exec_driver_sql("REFRESH MATERIALIZED VIEW CONCURRENTLY agent_comparison_matrix")


def _migrate(connection: sa.Connection, address: Address) -> None:
    """Bring the schema to the newest revision, or leave everything as it is: all happens in the caller's transaction."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "assay.store:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    if connection.dialect.name == "postgresql":
        _lock_tables(connection, address)
    try:
        command.upgrade(config, "head")
    except (sa.exc.ProgrammingError, sa.exc.OperationalError, sa.exc.NoSuchTableError, CommandError) as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0].rstrip(".")
        raise StoreError(
            f"'{address.place}' cannot be upgraded, because its tables are not those of its schema: {reason}. "
            "Nothing was changed. Restore a backup, or use a different database with --db"
        ) from error


def _lock_tables(connection: sa.Connection, address: Address) -> None:
    """Lock the tables of PostgreSQL all at once, for as long as the transaction lasts.

    Migrations that locked one after the other would meet writers who have the second and wait for the first: PostgreSQL ends one of the
    two after a second. Who waits for a lock keeps everybody after it waiting too, so each attempt gives up soon, with all it has.
    """
    present = set(sa.inspect(connection).get_table_names()) & set(metadata.tables) - {revision.name}
    if not present:
        return
    # Those that a migration still has to wait for, such as views.
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            with connection.begin_nested():
                connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{_ATTEMPT_MS}ms'")
                connection.exec_driver_sql(
                    f"LOCK TABLE {', '.join(sorted(present))} IN ACCESS EXCLUSIVE MODE"
                )
                connection.exec_driver_sql("SET LOCAL statement_timeout = DEFAULT")
                return
        except sa.exc.OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != "57014":  # query_canceled: the time is over
                raise
            if time.monotonic() > end:
                raise StoreAway(
                    f"Another program has kept tables of '{address.place}' locked for {_LOCK_SECONDS} s. "
                    "Nothing was changed. Wait until it is done, then try again."
                ) from error
        time.sleep(_ATTEMPT_MS / 1000)


def _make(engine: sa.Engine, address: Address) -> None:
    """Make the schema unless another process is quicker: it is looked for once more under the lock."""
    if address.file:
        _prepare_file(engine, address)
    with database.writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        found = current(connection, address)
        if found is None:
            _create(connection, address)
        elif found != HEAD:
            raise _unfit(found, address)


def _refuse_foreign(connection: sa.Connection, address: Address) -> None:
    """Raise StoreError for a database of another program. A server may hold other tables beside ours, a file may not."""
    present = set(sa.inspect(connection).get_table_names())
    is_file = connection.dialect.name == "sqlite"
    taken = sorted(present if is_file else present & set(metadata.tables))
    if not taken and is_file:
        pragmas = ("application_id", "user_version")
        taken = [name for name in pragmas if connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()]
    if taken:
        raise StoreError(
            f"'{address.place}' is a database of another program (it has {', '.join(taken[:3])}). "
            "Use a different one with --db"
        )


def _create(connection: sa.Connection, address: Address) -> None:
    """The newest schema from `tables.py`. Alembic is not imported for it, so that the first command of a new user starts fast."""
    _refuse_foreign(connection, address)
    for statement in _statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    connection.execute(workspaces.insert().values(id=DEFAULT_WORKSPACE, name=DEFAULT))
    connection.execute(revision.insert().values(version_num=HEAD))


@cache
def _statements(dialect: str) -> list[str]:
    """All that makes the newest schema, in order. Compiling it takes longer than executing it, and it never changes."""
    written: list[str] = []

    def write(statement: sa.schema.ExecutableDDLElement, *_: object, **__: object) -> None:
        written.append(str(statement.compile(dialect=engine.dialect)))

    driver = "postgresql+psycopg" if dialect == "postgresql" else dialect
    engine = sa.create_mock_engine(f"{driver}://", write)
    metadata.create_all(engine, checkfirst=False)
    for name in ("live_trial_totals", "benchmark_executions"):
        written.append(view_statement(name, dialect))
    if dialect == "postgresql":
        written.append(read_sql("trial_rows"))
    return [*written, *standing_statements(dialect)]


def _prepare_file(engine: sa.Engine, address: Address) -> None:
    """Set the modes that a SQLite file keeps; that is possible only outside of transactions."""
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        # This mode can only be chosen while the file is empty. It lets `assay runs prune` give space back to the disk.
        cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _choose_wal(cursor)
    except sqlite3.Error as error:
        raise driver_errors.translate(error, address) or error from error
    finally:
        connection.close()


def _choose_wal(cursor: sa.engine.interfaces.DBAPICursor) -> None:
    """Switch the file to write-ahead logging, which lets readers continue while one process writes.

    The mode is stored in the file.
    """
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
    """The message for a schema of a different version: an older one can be upgraded, a newer one cannot be read at all."""
    if found in REVISIONS:
        # With a password the URL cannot be shown, so the settings have to give it again.
        options = ["--db", address.shown] if address.has_nothing_hidden else []
        return StoreError(
            f"'{address.place}' has the schema {found}, this Assay needs {HEAD}. "
            f"Upgrade it: {shell_command('db upgrade', options=options)}"
        )
    return NewerSchema(
        f"'{address.place}' was written by a later version of Assay (schema {found}, this one knows up to {HEAD}). "
        "Use that version, or a different database with --db"
    )
