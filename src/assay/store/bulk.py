"""Many rows at once, as tuples straight to and from the driver: SQLAlchemy's own way costs more than SQLite itself.

SQLAlchemy has no part in it, so the driver's errors are wrapped here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect

Rows = Sequence[tuple[Any, ...]]

_FETCHED = 2000


def insert_rows(connection: sa.Connection, table: sa.Table, rows: Rows) -> None:
    """Insert rows whose values are in the order of the table's columns and as the driver takes them: no type is converted."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        _copy(connection, table, rows)
    else:
        connection.exec_driver_sql(_insert(table), list(rows))


@cache
def _insert(table: sa.Table) -> str:
    return str(table.insert().compile(dialect=DefaultDialect(paramstyle="qmark")))


def _copy(connection: sa.Connection, table: sa.Table, rows: Rows) -> None:
    """PostgreSQL's COPY, twice as fast as INSERT."""
    statement = f"COPY {table.name} ({', '.join(table.c.keys())}) FROM STDIN"
    cursor: Any = connection.connection.cursor()
    try:
        with _wrap_driver_errors(connection, statement), cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    finally:
        cursor.close()


def fetch_rows(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[Rows]:
    """A long result in chunks, its values as the driver gives them: for numbers and text only."""
    streaming = connection.execution_options(stream_results=True, max_row_buffer=_FETCHED)
    with streaming.execute(query) as result, _wrap_driver_errors(connection, query):
        # SQLAlchemy takes the first row of a streamed result from the driver at once: it has to be asked for that one.
        first = result.fetchone()
        if first is None:
            return
        yield [tuple(first)]
        cursor: Any = result.cursor
        while chunk := cursor.fetchmany(_FETCHED):
            yield chunk


@contextmanager
def _wrap_driver_errors(connection: sa.Connection, statement: str | sa.Select[Any]) -> Iterator[None]:
    """Raise the driver's errors as SQLAlchemy would, so that `Store` needs one way to translate them."""
    driver: Any = connection.dialect.loaded_dbapi
    try:
        yield
    except driver.Error as error:
        raise sa.exc.DBAPIError.instance(str(statement), None, error, driver.Error) from error
